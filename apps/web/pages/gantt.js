// The timeline's picture: a row for each slot, a bar for each hold. Only the rows that are in view
// are made. The bars are painted; over the current one lies a link, the picture's one tab stop,
// which the arrow keys move from bar to bar, and over the one pointed at another.
import {clock_text, duration_text, h, put, reconcile, set_attribute, set_text} from "../dom.js";
import {bar_at, bars_of} from "./bars.js";
import {Painter} from "./gantt_paint.js";
import {TimeScale} from "./time_scale.js";

const heights = {pool: 26, slot: 28};
const tick_gap = (width) => (width < 500 ? 62 : 90);

export class Gantt {
  #actions;
  #painter;
  #shown = {rows: [], from: 0, to: 1, now: 0, idle: []};
  #tops = [0];      // where each row begins
  #bars = [];       // row number -> its bars, if they were needed since the last show()
  #scale = new TimeScale(0, 1, 1);
  #left = 0;        // width of the labels
  #cursor = null;   // {row: key, record}: where the keyboard is
  #hovered = null;  // the same: where the pointer is
  #frame = 0;
  #axis = h("div", {class: "gantt-axis", "aria-hidden": "true"});
  #labels = h("div", {class: "gantt-labels"});
  #canvas = h("canvas", {role: "img"});
  #link = h("a", {class: "gantt-bar", hidden: true});
  #hover = h("a", {class: "gantt-bar hover", hidden: true, tabindex: "-1", "aria-hidden": "true"});
  #sheet = h("div", {class: "gantt-sheet"}, this.#canvas, this.#labels, this.#link, this.#hover);
  #scroll = h("div", {class: "gantt-scroll", role: "group", "aria-label": "Holds of each slot; arrow keys move among them, plus and minus zoom",
    onscroll: () => this.draw(), onkeydown: (event) => this.#on_key(event),
    onpointermove: (event) => this.#point(event), onpointerdown: (event) => this.#point(event),
    onpointerleave: () => this.#show_hover(null), onfocusin: () => this.#tell()}, this.#sheet);

  // actions: {describe(records, row) -> text, href(record), tell(records, row) or tell(null),
  // zoom(factor, time), zoom_to(from, to), pan(direction)}.
  constructor(actions) {
    this.#actions = actions;
    this.element = h("div", {class: "gantt"}, this.#axis, this.#scroll);
    this.#painter = new Painter(this.#canvas, this.element);
    new ResizeObserver(() => this.draw()).observe(this.#scroll);
    const themes = new MutationObserver(() => this.#repaint());
    themes.observe(document.documentElement, {attributeFilter: ["data-theme"]});
    const system = matchMedia("(prefers-color-scheme: dark)");
    const repaint = () => this.#repaint();
    system.addEventListener("change", repaint);
    this.close = () => {
      themes.disconnect();
      system.removeEventListener("change", repaint);
      cancelAnimationFrame(this.#frame);
    };
  }

  // rows: {key, kind: "pool" or "slot", label, title, records, kept_from}; idle: what is folded.
  show(shown) {
    this.#shown = shown;
    this.#tops = [0];
    for (const {kind} of shown.rows) this.#tops.push(this.#tops.at(-1) + heights[kind]);
    this.#sheet.style.setProperty("height", `${this.#tops.at(-1)}px`);
    this.draw();
  }

  // The picture in words.
  summarize(text) {
    set_attribute(this.#canvas, "aria-label", text);
  }

  // With the next frame.
  draw() {
    if (this.#frame === 0) this.#frame = requestAnimationFrame(() => this.#draw());
  }

  focus() {
    (this.#link.hidden ? this.#scroll : this.#link).focus();
  }

  // The time in the middle of what is looked at: the current bar, if the keyboard is there.
  middle() {
    const found = this.#scroll.contains(document.activeElement) ? this.#find(this.#cursor) : null;
    return found ? this.#scale.time((found.bar.x + found.bar.end) / 2) : undefined;
  }

  #repaint() {
    this.#painter.forget_colors();
    this.draw();
  }

  #draw() {
    this.#frame = 0;
    const {clientWidth: width, clientHeight: height, scrollTop: top} = this.#scroll;
    if (width === 0) return;
    const {rows, from, to, now, idle} = this.#shown;
    this.#left = Math.min(170, Math.max(84, width * .13));
    this.#scale = new TimeScale(from, to, width - this.#left - 6, idle);
    this.#bars = [];
    this.#draw_axis(now);
    const view = Math.min(height, Math.max(1, this.#tops.at(-1)));
    this.#painter.begin(width, view);
    for (const {x} of this.#scale.ticks(tick_gap(this.#scale.width))) this.#painter.line(this.#left + x, 0, view);
    for (const fold of this.#scale.folds()) this.#painter.field(this.#left + fold.x, 0, fold.width, view);
    const first = this.#row_at(top);
    const last = Math.min(rows.length, this.#row_at(top + view) + 1);
    for (let i = first; i < last; ++i) {
      if (rows[i].kind === "slot") this.#draw_slot(i, this.#tops[i] - top);
    }
    if (now >= from && now < to) this.#painter.line(this.#left + this.#scale.x(now), 0, view, true);
    this.#draw_labels(first, last);
    this.#place_cursor();
    if (this.#hovered) this.#show_hover(this.#find(this.#hovered));
  }

  #draw_slot(i, y) {
    const row = this.#shown.rows[i];
    if (row.kept_from > this.#scale.from) this.#painter.field(this.#left, y + 9, this.#scale.x(row.kept_from), heights.slot - 18);
    this.#painter.bars(this.#bars_of(i), this.#left, y, heights.slot);
  }

  #bars_of(i) {
    return this.#bars[i] ??= bars_of(this.#shown.rows[i].records, this.#scale, this.#shown.now);
  }

  #draw_axis(now) {
    const marks = this.#scale.folds().map(({from, to, x, width}) => ({x: x + width / 2, text: "⋯", title: `${duration_text(to - from)} without holds`}));
    if (now >= this.#scale.from && now < this.#scale.to) marks.push({x: this.#scale.x(now), text: "now", now: true});
    const ticks = this.#scale.ticks(tick_gap(this.#scale.width)).map(({time, x}) => ({x, text: clock_text(time, now).replace(/:00$/, "")}))
      .filter(({x, text}) => x > 14 && x < this.#scale.width - 20 && marks.every((mark) => Math.abs(mark.x - x) > 16 + 4 * text.length));
    put(this.#axis, [...ticks, ...marks].map((mark) => h("span", {class: mark.now ? "now" : null, title: mark.title,
      style: {left: `${this.#left + mark.x}px`}}, mark.text)));
  }

  #draw_labels(first, last) {
    const rows = this.#shown.rows.slice(first, last).map((row, i) => ({...row, top: this.#tops[first + i]}));
    this.#labels.style.setProperty("width", `${this.#left - 8}px`);
    reconcile(this.#labels, rows, ({key}) => key, ({kind}) => h("div", {class: `gantt-label of-${kind}`}), (element, row) => {
      set_text(element, row.label);
      set_attribute(element, "title", row.title ?? row.label);
      element.style.setProperty("top", `${row.top}px`);
    });
  }

  #row_at(y) {
    let [low, high] = [0, this.#shown.rows.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.#tops[middle] <= y) low = middle;
      else high = middle - 1;
    }
    return Math.max(0, low);
  }

  // --- The keyboard ---

  // {i, bar} of what was current; null if it is no longer shown.
  #find(place) {
    const i = place ? this.#shown.rows.findIndex(({key}) => key === place.row) : -1;
    if (i < 0) return null;
    const {records} = this.#shown.rows[i];
    const {fence} = place.record.hold;
    const bar = this.#bars_of(i).find(({first, last}) => records[first].hold.fence <= fence && fence <= records[last].hold.fence);
    return bar ? {i, bar} : null;
  }

  #place_cursor() {
    const found = this.#find(this.#cursor) ?? this.#first_bar();
    if (!found && document.activeElement === this.#link) this.#scroll.focus();
    this.#link.hidden = !found;
    set_attribute(this.#scroll, "tabindex", found ? null : "0");
    if (found) this.#put_link(this.#link, found);
    this.#cursor = found && this.#place_of(found);
  }

  #place_of(found) {
    return {row: this.#shown.rows[found.i].key, record: this.#records(found)[0]};
  }

  // The newest one of the first row that has any.
  #first_bar() {
    const {rows} = this.#shown;
    const start = this.#row_at(this.#scroll.scrollTop);
    for (let n = 0; n < rows.length; ++n) {
      const i = (start + n) % rows.length;
      const bars = rows[i].kind === "slot" ? this.#bars_of(i) : [];
      if (bars.length > 0) return {i, bar: bars.at(-1)};
    }
    return null;
  }

  #records({i, bar}) {
    return this.#shown.rows[i].records.slice(bar.first, bar.last + 1);
  }

  #put_link(link, {i, bar}) {
    const records = this.#records({i, bar});
    const x = Math.round(this.#left + bar.x);
    const width = Math.max(3, Math.round(this.#left + bar.end) - x);
    for (const [name, value] of [["left", x], ["top", this.#tops[i] + 3], ["width", width], ["height", heights.slot - 6]]) {
      link.style.setProperty(name, `${value}px`);
    }
    set_attribute(link, "aria-label", this.#actions.describe(records, this.#shown.rows[i]));
    set_attribute(link, "href", records.length === 1 ? this.#actions.href(records[0]) : location.hash);
    link.onclick = records.length === 1 ? null : (event) => {
      event.preventDefault();
      this.#actions.zoom_to(records[0].begin, Math.min(records.at(-1).end, this.#shown.now));
    };
  }

  // A new link each time, since screen readers tell of what gets the focus.
  #move_to(found) {
    const top = this.#tops[found.i];
    const {scrollTop, clientHeight} = this.#scroll;
    if (top < scrollTop + heights.pool) this.#scroll.scrollTop = top - heights.pool;
    else if (top + heights.slot > scrollTop + clientHeight) this.#scroll.scrollTop = top + heights.slot - clientHeight;
    this.#cursor = this.#place_of(found);
    const link = h("a", {class: "gantt-bar"});
    this.#put_link(link, found);
    this.#sheet.append(link);
    const old = this.#link;
    this.#link = link;
    link.focus({preventScroll: true});
    old.remove();
    this.#tell();
  }

  #on_key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const done = this.#zoom_key(event) || this.#move_key(event.key);
    if (done) event.preventDefault();
  }

  #zoom_key({key, shiftKey}) {
    if (key === "+" || key === "=") this.#actions.zoom(.5, this.middle());
    else if (key === "-") this.#actions.zoom(2, this.middle());
    else if (shiftKey && key === "ArrowLeft") this.#actions.pan(-1);
    else if (shiftKey && key === "ArrowRight") this.#actions.pan(1);
    else return false;
    return true;
  }

  #move_key(key) {
    const found = this.#find(this.#cursor);
    if (!found) return false;
    const bars = this.#bars_of(found.i);
    const at = bars.indexOf(found.bar);
    const to = {ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: bars.length - 1}[key];
    if (to !== undefined) {
      if (bars[to]) this.#move_to({i: found.i, bar: bars[to]});
      return true;
    }
    const [step, count] = {ArrowUp: [-1, 1], ArrowDown: [1, 1], PageUp: [-1, 10], PageDown: [1, 10]}[key] ?? [];
    if (!step) return false;
    this.#move_to(this.#bar_across(found, step, count));
    return true;
  }

  // The bar nearest in time, `count` rows with bars further up or down, or as far as there are any.
  #bar_across(found, step, count) {
    const {rows} = this.#shown;
    const x = (Math.max(0, found.bar.x) + found.bar.end) / 2;
    let best = found;
    for (let i = found.i + step; i >= 0 && i < rows.length && count > 0; i += step) {
      const bars = rows[i].kind === "slot" ? this.#bars_of(i) : [];
      if (bars.length === 0) continue;
      const away = (bar) => Math.max(bar.x - x, x - bar.end, 0);
      best = {i, bar: bars.reduce((a, b) => (away(b) < away(a) ? b : a))};
      count--;
    }
    return best;
  }

  #tell() {
    const found = this.#find(this.#hovered) ?? this.#find(this.#cursor);
    this.#actions.tell(found ? this.#records(found) : null, found && this.#shown.rows[found.i]);
  }

  // --- The pointer ---

  #point(event) {
    const box = this.#scroll.getBoundingClientRect();
    const y = event.clientY - box.top + this.#scroll.scrollTop;
    const i = this.#row_at(y);
    const in_row = this.#shown.rows[i]?.kind === "slot" && y < this.#tops[i + 1];
    const bar = in_row ? bar_at(this.#bars_of(i), event.clientX - box.left - this.#left) : undefined;
    this.#show_hover(bar ? {i, bar} : null);
  }

  #show_hover(found) {
    const before = this.#hovered?.record.hold.fence;
    this.#hovered = found && this.#place_of(found);
    this.#hover.hidden = !found;
    if (!found) return;
    this.#put_link(this.#hover, found);
    if (this.#hovered.record.hold.fence !== before) this.#tell();
  }
}
