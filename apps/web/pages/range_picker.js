// Which stretch of time is shown: the last so many minutes, which go on, or from one time to
// another. It is in the address: range=1h, or from= and to=.
import {h, set_attribute, set_text} from "../dom.js";

const minute = 60_000;
const presets = [["15m", 15 * minute], ["1h", 60 * minute], ["6h", 360 * minute], ["24h", 1440 * minute]];
const standard = "1h";
const shortest = 1000;
const longest = 400 * 1440 * minute;
const ahead = .06;  // of the time to come, for the leases that are left

// A Range is {length} (up to now) or {from, to}, in milliseconds.
export function range_of(query) {
  const [from, to] = [Date.parse(query.get("from") ?? ""), Date.parse(query.get("to") ?? "")];
  if (to - from >= shortest && to - from <= longest) return {from, to};
  const [, number, unit] = /^(\d+(?:\.\d+)?)(s|m|h|d)$/.exec(query.get("range") ?? "") ?? [];
  const length = number * {s: 1000, m: minute, h: 60 * minute, d: 1440 * minute}[unit];
  if (length >= shortest && length <= longest) return {length};
  return {length: new Map(presets).get(standard)};
}

// What of it is in the address.
export function range_query(range) {
  const iso = (time) => new Date(time).toISOString();
  if (range.length === undefined) return {range: "", from: iso(range.from), to: iso(range.to)};
  const preset = presets.find(([, length]) => length === range.length)?.[0];
  return {range: preset === standard ? "" : preset ?? `${range.length / 1000}s`, from: "", to: ""};
}

// {from, to} by now.
export function bounds_of(range, now) {
  if (range.length === undefined) return range;
  return {from: now - range.length, to: now + range.length * ahead / (1 - ahead)};
}

// `factor` times as long. About a time, or what ends now goes on ending now.
export function zoomed(range, factor, middle, now) {
  const clamp = (length) => Math.min(longest, Math.max(shortest, length));
  if (range.length !== undefined && middle === undefined) return {length: Math.round(clamp(range.length * factor))};
  const {from, to} = bounds_of(range, now);
  const center = middle ?? (from + to) / 2;
  const length = clamp((to - from) * factor);
  const start = Math.round(center - length * ((center - from) / (to - from)));
  return {from: start, to: Math.round(start + length)};
}

export function panned(range, direction, now) {
  if (range.length !== undefined && direction > 0) return range;
  const {from, to} = bounds_of(range, now);
  const by = (to - from) / 2 * direction;
  if (direction > 0 && to + by > now) return {length: Math.round((to - from) * (1 - ahead))};
  return {from: Math.round(from + by), to: Math.round(to + by)};
}

export class RangePicker {
  #set;
  #buttons;
  #custom = h("button", {type: "button", "aria-expanded": "false", onclick: () => this.#toggle()}, "Custom…");
  #from = h("input", {type: "datetime-local", step: "1", id: "range-from"});
  #to = h("input", {type: "datetime-local", step: "1", id: "range-to"});
  #problem = h("p", {class: "problem", role: "alert"});
  #form = h("form", {class: "range-form", hidden: true, novalidate: true, onsubmit: (event) => this.#apply(event)},
    h("label", {for: "range-from"}, "From"), this.#from, h("label", {for: "range-to"}, "to"), this.#to,
    h("button", {type: "submit", class: "primary"}, "Show"), this.#problem);

  // set(range) when another is chosen; step(kind) for "in", "out", "earlier", "later" and "now".
  constructor(set, step) {
    this.#set = set;
    this.#buttons = presets.map(([text, length]) => ({length, button: h("button", {type: "button", onclick: () => set({length})}, text)}));
    const small = (text, label, kind) => h("button", {type: "button", class: "icon", "aria-label": label, title: label, onclick: () => step(kind)}, text);
    this.element = h("div", {class: "ranges"},
      h("div", {class: "joined", role: "group", "aria-label": "Range"}, this.#buttons.map(({button}) => button), this.#custom),
      h("div", {class: "joined", role: "group", "aria-label": "Move and zoom"}, small("‹", "Earlier", "earlier"),
        small("−", "Zoom out", "out"), small("+", "Zoom in", "in"), small("›", "Later", "later"),
        h("button", {type: "button", onclick: () => step("now")}, "Now")), this.#form);
  }

  show(range, now) {
    for (const {length, button} of this.#buttons) set_attribute(button, "aria-pressed", String(length === range.length));
    const preset = this.#buttons.some(({length}) => length === range.length);
    set_attribute(this.#custom, "aria-pressed", String(!preset));
    if (this.#form.contains(document.activeElement)) return;
    const {from, to} = bounds_of(range, now);
    this.#from.value = local_text(from);
    this.#to.value = local_text(Math.min(to, Math.max(now, from)));
    if (range.length === undefined) this.#to.value = local_text(to);
  }

  #toggle() {
    this.#form.hidden = !this.#form.hidden;
    set_attribute(this.#custom, "aria-expanded", String(!this.#form.hidden));
    if (!this.#form.hidden) this.#from.focus();
  }

  #apply(event) {
    event.preventDefault();
    const [from, to] = [Date.parse(this.#from.value), Date.parse(this.#to.value)];
    const problem = Number.isNaN(from) || Number.isNaN(to) ? "Give both times." :
      to - from < shortest ? "The second time must be after the first one." :
        to - from > longest ? "That is more than 400 days." : "";
    set_text(this.#problem, problem);
    if (problem) return;
    this.#custom.focus();
    this.#set({from, to});
  }
}

// In the reader's zone, as the field wants it.
function local_text(time) {
  const date = new Date(time);
  return new Date(time - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}
