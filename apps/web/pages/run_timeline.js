// What went on in a run, as bars over time; the same as a table below.
import {each_second} from "../clock.js";
import {chip, duration_text, h, put, reconcile, run_link, s, set_attribute, set_text, table, ticking_text, time_element} from "../dom.js";
import {Pager} from "../pager.js";
import {span_state} from "../run_open.js";

const row_height = 26;
const top = 26;       // for the axis
const rows_max = 100;
const letter_width = 6.6;
const steps = [0.1, 0.5, 1, 5, 10, 30, 60, 300, 600, 1_800, 3_600, 10_800, 21_600, 43_200, 86_400, 604_800].map((seconds) => seconds * 1000);

// The patterns that go with the colours: [class, width, height, path].
const patterns = [["lease_expired", 6, "M-1 7L7 -1"], ["holder_closed", 4, "M0 2H4"], ["force_released", 6, "M-1 7L7 -1M-1 -1L7 7"]];

export class TimelineTab {
  #model;
  #chart = h("div", {class: "chart"});
  #table = table("What went on", ["What", "Name", "State", "Began", {text: "Took", class: "right"}, "More"]);
  #twin = h("details", {class: "twin"}, h("summary", {}, "The same as a table"), this.#table.element);
  #pager = new Pager(rows_max, () => this.#draw());
  #spans = [];
  #from = 0;
  #until = 0;
  #open = [];   // [{span, bar, x}]: bars that grow
  #width = 0;
  #line;        // where now is
  #resize = new ResizeObserver(() => this.#draw());

  constructor(model) {
    this.#model = model;
    this.element = h("div", {class: "timeline"}, this.#chart, this.#pager.element, this.#twin);
    this.#twin.addEventListener("toggle", () => this.#fill_table());
    this.#resize.observe(this.#chart);
    each_second(this.#chart, (now) => this.#grow(now));
  }

  close() {
    this.#resize.disconnect();
  }

  update(what) {
    if (!what.has("events") && !what.has("permits") && !what.has("description")) return;
    const {feed} = this.#model;
    this.#spans = feed.fold.spans;
    this.#pager.set_count(this.#spans.length);
    this.#draw();
  }

  #x(time) {
    return this.#left + (this.#width - this.#left - 8) * Math.min(1, Math.max(0, (time - this.#from) / (this.#until - this.#from)));
  }
  get #left() {
    return Math.min(230, this.#width * 0.38);
  }

  #draw() {
    const {feed, context} = this.#model;
    this.#width = Math.floor(this.#chart.clientWidth);
    if (this.#width === 0 || !feed.run) return;
    const now = context.state.now();
    const shown = this.#spans.slice(this.#pager.first, this.#pager.last);
    if (shown.length === 0) {
      put(this.#chart, h("p", {class: "dim pad"}, feed.complete ? "It has done nothing yet that takes time: no activity, no timer, no child, no permit." : "Reading the history…"));
      return;
    }
    const paged = this.#spans.length > rows_max;
    this.#from = paged ? shown[0].from : feed.run.start;
    const end = Math.max(...shown.map((span) => span.to ?? now), paged ? 0 : feed.run.close ?? now);
    const grows = shown.some((span) => span.to === undefined) || (!paged && !feed.run.close);
    this.#until = this.#from + Math.max(10, (end - this.#from) * (grows ? 1.08 : 1));
    this.#open = [];
    this.#line = grows ? s("line", {class: "now", y1: top - 6, y2: top + shown.length * row_height}) : null;
    const height = top + shown.length * row_height + 6;
    put(this.#chart, s("svg", {role: "img", width: this.#width, height, viewBox: `0 0 ${this.#width} ${height}`,
      "aria-label": `${this.#summary(shown)} The same is in the table below.`}, this.#defs(), this.#axis(height),
    shown.map((span, i) => this.#row(span, i, now)), this.#line));
    this.#grow(now);
    this.#fill_table();
  }

  #summary(spans) {
    const counts = new Map();
    for (const {kind} of spans) counts.set(kind, (counts.get(kind) ?? 0) + 1);
    return `Timeline of ${[...counts].map(([kind, count]) => `${count} ${kind}${count === 1 ? "" : kind === "activity" ? " calls" : "s"}`).join(", ")}.`;
  }

  #defs() {
    return s("defs", {}, patterns.map(([name, size, path]) => s("pattern", {id: `bar-${name}`, width: size, height: size,
      patternUnits: "userSpaceOnUse"}, s("rect", {width: size, height: size, class: `is-${name} ground`}), s("path", {d: path, class: `is-${name} stripe`}))),
    s("clipPath", {id: "names"}, s("rect", {x: 0, y: 0, width: this.#left - 10, height: 1e6})));
  }

  #axis(height) {
    const range = this.#until - this.#from;
    const step = steps.find((known) => range / known <= Math.max(2, (this.#width - this.#left) / 90)) ?? Math.ceil(range / 6 / 604_800_000) * 604_800_000;
    const ticks = [];
    for (let time = 0; time <= range; time += step) {
      const x = this.#x(this.#from + time).toFixed(1);
      ticks.push(s("line", {class: "tick", x1: x, x2: x, y1: top - 4, y2: height}),
        x < this.#width - 60 && s("text", {class: "tick", x: Number(x) + 3, y: 14}, time === 0 ? "0" : `+${duration_text(time)}`));
    }
    return ticks;
  }

  #row(span, i, now) {
    const y = top + i * row_height;
    const x = this.#x(span.from);
    const bar = s("rect", {class: `span is-${span.look}`, x: x.toFixed(1), y: y + 5, height: row_height - 10, rx: 3});
    if (patterns.some(([name]) => name === span.look)) bar.style.setProperty("fill", `url(#bar-${span.look})`);
    const end = this.#x(span.to ?? now);
    bar.setAttribute("width", Math.max(3, end - x).toFixed(1));
    if (span.to === undefined) this.#open.push({bar, x});
    const label = s("text", {class: "name", x: 8, y: y + row_height / 2 + 4, "clip-path": "url(#names)"}, span.name || span.kind);
    const text = `${span_state(span, this.#model.feed)}${span.to > span.from ? `, ${duration_text(span.to - span.from)}` : ""}`;
    const {shown, ...place} = this.#beside(x, end, text);
    const words = s("text", {class: "words", y: y + row_height / 2 + 4, ...place}, shown);
    return s("g", {class: "bar-row"}, s("title", {}, `${span.kind} ${span.name}: ${text}${span.detail ? `, ${span.detail}` : ""}`), label, bar, words);
  }

  // Where the words of a bar have room: behind it, before it, in it, or cut where there is most.
  #beside(x, end, text) {
    const [before, behind] = [x - this.#left - 6, this.#width - 14 - end];
    const fits = (room) => room >= text.length * letter_width;
    const cut = (room) => (fits(room) ? text : room < 5 * letter_width ? "" : `${text.slice(0, Math.floor(room / letter_width) - 1)}…`);
    if (fits(behind) || (!fits(before) && behind >= Math.max(before, end - x - 16))) return {x: end + 6, shown: cut(behind)};
    if (fits(before) || before >= end - x - 16) return {x: x - 6, "text-anchor": "end", shown: cut(before)};
    return {x: x + 8, class: "words inside", shown: cut(end - x - 16)};
  }

  // Bars that are open end at now; all is drawn anew when that comes to the edge.
  #grow(now) {
    if (!this.#line) return;
    if (now > this.#until) {
      this.#draw();
      return;
    }
    const x = this.#x(now);
    set_attribute(this.#line, "x1", x.toFixed(1));
    set_attribute(this.#line, "x2", x.toFixed(1));
    for (const open of this.#open) set_attribute(open.bar, "width", Math.max(3, x - open.x).toFixed(1));
  }

  #fill_table() {
    const {feed, context} = this.#model;
    if (!this.#twin.open) return;
    const now = context.state.now();
    const key_of = (span) => JSON.stringify([span.key, span_state(span, feed), span.to, span.detail]);
    reconcile(this.#table.body, this.#spans.slice(this.#pager.first, this.#pager.last), key_of, (span) => span_row(span, now, feed));
  }
}

const outcome_looks = new Set(["held", "released", "lease_expired", "holder_closed", "force_released"]);

// A span as a row of a table: also that of relationships.
export function span_row(span, now, feed) {
  const took = h("td", {class: "right ticks"}, span.to === undefined ? "" : duration_text(span.to - span.from));
  if (span.to === undefined) each_second(took, (time) => set_text(took, ticking_text(Math.max(0, time - span.from))));
  const name = span.run ? h("a", {class: "mono", href: run_link(span.id, span.run)}, span.name) : h("span", {class: "mono"}, span.name);
  const state = span.kind === "permit" && outcome_looks.has(span.state) ? chip(span.state) : span_state(span, feed);
  return h("tr", {}, h("td", {}, span.kind), h("td", {}, name), h("td", {}, state),
    h("td", {class: "nowrap"}, time_element(new Date(span.from).toISOString(), now)), took, h("td", {class: "gist dim"}, span.detail));
}
