// How the server has been in the last minutes or hours, as it remembers it itself.
import {api, url_of} from "../api.js";
import {clock_text, h, put, set_text, time_of} from "../dom.js";
import {while_visible} from "../visible.js";
import {Chart} from "./chart.js";

export const title = "Metrics";

const ranges = [
  {name: "15m", label: "15 min", step: "1s", step_ms: 1_000, steps: 900, ago: "15 min ago", each: "second"},
  {name: "24h", label: "24 h", step: "60s", step_ms: 60_000, steps: 1_440, ago: "24 h ago", each: "minute"},
];

// What is shown: the series by name, together in one chart if there are several.
const charts = [
  {series: ["acquires"], title: "Acquires", about: "granted"},
  {series: ["conflicts"], title: "Conflicts", about: "none free"},
  {series: ["wait_p50", "wait_p95"], lines: ["p50", "p95"], title: "Wait", about: "for a slot"},
  {series: ["holds"], title: "Slots held", about: "in all pools"},
  {series: ["waiting"], title: "Waiting", about: "for a slot"},
  {series: ["expiries"], title: "Leases expired", about: "of holds"},
  {series: ["backlog"], title: "Tasks waiting", about: "for a worker"},
  {series: ["task_latency_p95"], title: "Task latency p95", about: "to its start"},
  {series: ["timer_lag_p99"], title: "Timer lag p99", about: "after due"},
  {series: ["commit_latency_p95"], title: "Commit p95", about: "to disk"},
  {series: ["requests"], title: "Requests", about: "answered"},
  {series: ["long_polls"], title: "Long polls", about: "open now"},
  {series: ["event_streams"], title: "Event streams", about: "open now"},
];

export function open(root, context) {
  return new MetricsPage(root, context);
}

class MetricsPage {
  #context;
  #range;
  #note = h("p", {class: "dim total"});
  #grid = h("div", {class: "metrics"});
  #charts = new Map();  // the first series' name -> its chart
  #inputs;
  #end;
  #stop = () => {};

  constructor(root, context) {
    this.#context = context;
    this.#inputs = ranges.map(({name}) => h("input", {type: "radio", name: "range", value: name, onchange: () => {
      context.set_query({range: name === ranges[0].name ? "" : name});
      this.navigated();
    }}));
    put(context.tools, h("fieldset", {class: "choice"}, h("legend", {class: "off-screen"}, "Range"),
      ranges.map(({label}, i) => h("label", {}, this.#inputs[i], h("span", {}, label)))));
    put(root, this.#note, this.#grid, about_prometheus());
    this.navigated();
  }

  navigated() {
    const asked = this.#context.query.get("range");
    this.#range = ranges.find(({name}) => name === asked) ?? ranges[0];
    this.#inputs.forEach((input) => (input.checked = input.value === this.#range.name));
    this.#stop();
    set_text(this.#note, "Asking the server…");
    this.#stop = while_visible(this.#range.step_ms, (signal) => this.#ask(this.#range, signal));
  }

  close() {
    this.#stop();
  }

  async #ask(range, signal) {
    try {
      const history = await api.get("api/v1/server/history", {parameters: {step: range.step}, signal});
      if (signal.aborted) return false;
      this.#show(history, range);
    } catch (error) {
      if (signal.aborted) return false;
      if (error.status === 404 || error.status === 501) {
        put(this.#note);
        put(this.#grid, h("p", {class: "nothing dim"}, "This server does not remember its metrics. What they are now is under ",
          link_to_metrics(), "."));
        return false;
      }
      set_text(this.#note, `! ${error.message.charAt(0).toUpperCase()}${error.message.slice(1)}.` +
        (this.#end ? ` What is shown ends at ${clock_text(this.#end, this.#end)}.` : ""));
    }
    return true;
  }

  #show({series = [], end}, range) {
    const known = new Map(series.map((one) => [one.name, one]));
    const others = series.filter(({name}) => !charts.some((chart) => chart.series.includes(name)))
      .map(({name}) => ({series: [name], title: name, about: ""}));
    let count = 0;
    this.#end = time_of(end) ?? this.#context.state.now();
    for (const chart of [...charts, ...others]) {
      const shown = chart.series.map((name) => known.get(name)).filter(Boolean);
      if (shown.length < chart.series.length) continue;
      const values = shown.map((one) => (one.values ?? []).slice(-range.steps));
      count = Math.max(count, ...values.map((list) => list.length));
      this.#chart(chart).update({values, unit: shown[0].unit ?? "", metrics: shown.map(({metric}) => metric ?? ""),
        end: this.#end, step: range.step_ms, steps: range.steps, range_text: range.ago});
    }
    set_text(this.#note, note_text(count, this.#end, range));
  }

  #chart(chart) {
    const [key] = chart.series;
    if (!this.#charts.has(key)) {
      const made = new Chart(chart);
      this.#charts.set(key, made);
      this.#grid.append(made.element);
    }
    return this.#charts.get(key);
  }
}

function note_text(count, end, {steps, step_ms, each}) {
  if (count === 0) return `The server has just started: the first values come within a ${each}.`;
  const every = `A value each ${each}.`;
  if (count >= steps) return every;
  const start = clock_text(end - count * step_ms, end);
  return `${every} There are values since ${start}: the server keeps them in memory, and begins anew when it starts.`;
}

function link_to_metrics() {
  return h("a", {href: url_of("metrics").pathname}, h("code", {}, "/metrics"));
}

function about_prometheus() {
  return h("p", {class: "dim note"}, "To keep them for longer, let Prometheus scrape ", link_to_metrics(),
    ": it has all of these and more, by pool and queue. A dashboard for Grafana and rules for alerts come with Permit; ",
    h("code", {}, "docs/monitoring.md"), " says what each metric means. More about the server is under ", h("a", {href: "#/about"}, "About"), ".");
}
