// A small chart of what was measured step by step: one line or two, from 0 up, time to the right.
// Whoever points at it, or moves in it with the arrow keys, is told the values of a time; a table
// has all of them.
import {clock_text, copy_button, h, put, reconcile, s, set_attribute, set_text, table} from "../dom.js";
import {value_text} from "../numbers.js";

const height = 100;  // of the drawing, whose width is the number of steps
const keys = {ArrowLeft: -1, ArrowRight: 1, ArrowDown: -1, ArrowUp: 1, PageUp: -60, PageDown: 60,
  Home: -Infinity, End: Infinity};

export class Chart {
  #title;
  #lines = [];     // {label, values, path, area, now}
  #unit = "";
  #top = 0;        // the value at the upper edge
  #steps = 1;      // that the whole width stands for
  #count = 0;      // of values, the last of which is of #end
  #end = 0;
  #step = 1000;
  #at = null;      // the time that is looked at, in milliseconds; null: none
  #now = h("div", {class: "metric-now ticks"});
  #about;
  #about_shown = h("span");
  #extent = h("span");
  #upper = h("span");
  #plot;
  #svg = s("svg", {preserveAspectRatio: "none", "aria-hidden": "true"});
  #cursor = h("i", {class: "cursor", hidden: true});
  #foot = [h("span"), h("span", {class: "readout"}), h("span")];
  #name = h("span", {class: "metric-name"});
  #name_shown = "";
  #table = null;
  #details;

  // lines: the labels, when there is more than one.
  constructor({title, about, lines = [""]}) {
    this.#title = title;
    this.#about = about;
    this.#lines = lines.map((label, i) => ({label, values: [], now: h("b"), path: s("path", {class: `line line-${i}`}),
      area: i === 0 && lines.length === 1 ? s("path", {class: "area"}) : null}));
    put(this.#now, this.#lines.map(({label, now}, i) => h("span", {}, label && [h("i", {class: `swatch swatch-${i}`}),
      h("span", {class: "dim"}, label, " ")], now)));
    put(this.#svg, this.#lines.map(({area}) => area), this.#lines.map(({path}) => path));
    this.#plot = h("div", {class: "plot", role: "slider", tabindex: "0", "aria-label": `${title} over time`,
      "aria-orientation": "horizontal", onpointermove: (event) => this.#point(event), onpointerleave: () => this.#look(null),
      onfocus: () => this.#plot.matches(":focus-visible") && this.#look(this.#at ?? this.#end), onblur: () => this.#look(null),
      onkeydown: (event) => this.#key(event)}, this.#svg, this.#cursor);
    this.#details = h("details", {ontoggle: () => this.#show_table()}, h("summary", {}, "As a table"));
    this.element = h("section", {class: "metric", "aria-label": title},
      h("div", {class: "metric-head"}, h("h2", {}, title), this.#now),
      h("div", {class: "metric-sub dim"}, this.#about_shown, this.#extent),
      h("div", {class: "plot-row"}, h("div", {class: "plot-axis dim", "aria-hidden": "true"}, this.#upper, h("span", {}, "0")), this.#plot),
      h("div", {class: "plot-foot dim"}, this.#foot), this.#name, this.#details);
  }

  // values: one list for each line, all as long; `metrics` their names for Prometheus.
  update({values, unit, metrics, end, step, steps, range_text}) {
    const count = Math.max(0, ...values.map((list) => list.length));
    if (step !== this.#step || unit !== this.#unit) this.#top = 0;
    this.#unit = unit;
    this.#steps = steps;
    this.#step = step;
    this.#count = count;
    this.#end = end;
    this.#lines.forEach((line, i) => (line.values = values[i] ?? []));
    this.#show_numbers();
    this.#draw();
    this.#show_name([...new Set(metrics)]);
    set_text(this.#foot[0], range_text);
    set_text(this.#foot[2], "now");
    this.#look(this.#at);
    this.#show_table();
  }

  #show_numbers() {
    const all = this.#lines.flatMap(({values}) => values).filter((value) => value !== null);
    const [min, max] = all.reduce(([low, high], value) => [Math.min(low, value), Math.max(high, value)], [Infinity, 0]);
    for (const {values, now} of this.#lines) set_text(now, this.#text(values.findLast((value) => value !== null)));
    const last = this.#lines[0].values.findLastIndex((value) => value !== null);
    const old = last >= 0 && last < this.#count - 1;
    set_text(this.#extent, all.length === 0 ? "nothing observed" : [`min ${this.#text(min)}`,
      `max ${this.#text(max)}`].join(" · "));
    set_text(this.#about_shown, old ? `at ${this.#clock(this.#time_of(last))}` : this.#about);
    const top = nice_top(max, this.#unit);
    if (top > this.#top || max < this.#top * 0.3) this.#top = top;  // no jump at each change
    set_text(this.#upper, this.#text(this.#top));
  }

  #draw() {
    set_attribute(this.#svg, "viewBox", `0 0 ${this.#steps} ${height}`);
    const left = this.#steps - this.#count + 0.5;
    for (const {values, path, area} of this.#lines) {
      let line = "";
      let filled = "";
      let began = -1;  // of the piece without a gap
      for (let i = 0; i <= values.length; ++i) {
        const value = values[i] ?? null;
        if (value !== null) {
          const at = `${left + i} ${(height - height * value / this.#top).toFixed(1)}`;
          line += began < 0 ? `M${at}l.01 0L${at}` : `L${at}`;
          if (area) filled += began < 0 ? `M${left + i} ${height}L${at}` : `L${at}`;
          if (began < 0) began = i;
        } else if (began >= 0) {
          if (area) filled += `L${left + i - 1} ${height}Z`;
          began = -1;
        }
      }
      path.setAttribute("d", line);
      area?.setAttribute("d", filled);
    }
  }

  #show_name(metrics) {
    if (metrics.join() === this.#name_shown) return;
    this.#name_shown = metrics.join();
    put(this.#name, metrics.filter(Boolean).map((metric) => [h("code", {class: "dim cut-line", title: metric}, metric),
      copy_button(metric, `the name ${metric}`)]));
  }

  #text(value) {
    return value_text(value, this.#unit);
  }
  #time_of(index) {
    return this.#end - (this.#count - 1 - index) * this.#step;
  }
  #clock(time) {
    return clock_text(time, this.#end);
  }

  // --- The values of a time ---

  #point(event) {
    const box = this.#plot.getBoundingClientRect();
    const from_right = Math.floor((box.right - event.clientX) / box.width * this.#steps);
    this.#look(this.#end - Math.max(0, from_right) * this.#step);
  }

  #key(event) {
    const by = keys[event.key];
    if (event.key === "Escape") this.#look(null);
    else if (by === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    else this.#look(Number.isFinite(by) ? (this.#at ?? this.#end) + by * this.#step : by < 0 ? 0 : this.#end);
    event.preventDefault();
  }

  // Looks at this time, or the nearest there is; null: at none.
  #look(time) {
    const start = this.#time_of(0);
    const is_none = time === null || this.#count === 0;
    this.#at = is_none ? null : Math.min(this.#end, Math.max(start, time));
    const at = this.#at ?? this.#end;
    const index = Math.round((at - start) / this.#step);
    const values = this.#lines.map(({label, values}) => `${label} ${this.#text(values[index])}`.trim()).join(" · ");
    set_attribute(this.#plot, "aria-valuemin", Math.round(start / 1000));
    set_attribute(this.#plot, "aria-valuemax", Math.round(this.#end / 1000));
    set_attribute(this.#plot, "aria-valuenow", Math.round(at / 1000));
    set_attribute(this.#plot, "aria-valuetext", this.#count === 0 ? "no values yet" : `${values} at ${this.#clock(at)}`);
    this.#cursor.hidden = is_none;
    this.#foot[0].hidden = this.#foot[2].hidden = !is_none;
    this.#foot[1].hidden = is_none;
    if (is_none) return;
    put(this.#foot[1], this.#clock(at), " ", h("b", {}, values));
    const share = 1 - (this.#count - index - 0.5) / this.#steps;
    this.#cursor.style.setProperty("left", `${(100 * share).toFixed(3)}%`);
  }

  // --- The same as a table, made when somebody opens it ---

  #show_table() {
    if (!this.#details.open) return;
    if (!this.#table) {
      this.#table = table(`${this.#title}, all values`, ["Time", ...this.#lines.map(({label}) => (
        {text: label || this.#title, class: "right"}))]);
      this.#table.element.classList.add("values");
      this.#details.append(this.#table.element);
    }
    const rows = [];
    for (let i = this.#count - 1; i >= 0; --i) rows.push({time: this.#time_of(i), values: this.#lines.map(({values}) => this.#text(values[i]))});
    reconcile(this.#table.body, rows, ({time}) => time, ({time, values}) => h("tr", {},
      h("td", {class: "nowrap"}, this.#clock(time)), values.map((text) => h("td", {class: "right nowrap"}, text))));
  }
}

// The next of 1, 2, 5, 10, 20, … that is not below.
function nice_top(max, unit) {
  const least = unit === "s" ? 0.001 : 1;
  if (max <= least) return least;
  const power = 10 ** Math.floor(Math.log10(max));
  return [1, 2, 5, 10].map((factor) => factor * power).find((top) => top >= max * 0.999999);
}
