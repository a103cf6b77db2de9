// One who waits, as a row of the table: its place, how long it has waited, and what it waits for.
import {remove_waiter} from "../actions.js";
import {chip, duration_text, h, put, run_link, set_attribute, set_text, ticking_text, time_of} from "../dom.js";
import {holder_element, left_text} from "../holds.js";

// From when on a wait is worth a word.
const levels = [{from: 300_000, word: "very long", class: "very-long"}, {from: 30_000, word: "long", class: "long"},
  {from: 5_000, word: "slow", class: "slow"}];

export function level_of(waited) {
  return levels.find(({from}) => waited >= from);
}

// "1.8 × median wait (20s)", by {wait, hold} of RecentWaits; "" if nothing is known.
export function ratio_text(waited, {wait, hold}) {
  const [measure, name] = wait !== undefined ? [wait, "wait"] : [hold, "hold"];
  if (!measure) return "";
  const ratio = waited / measure;
  const number = ratio >= 100 ? Math.round(ratio).toLocaleString("en") : ratio.toFixed(1);
  return `${number} × median ${name} (${duration_text(measure)})`;
}

export class WaiterRow {
  #place = h("td", {class: "right nowrap"});
  #who = h("td", {class: "who-cell"});
  #pool = h("td", {class: "mono"});
  #waited = h("b", {class: "ticks"});
  #level = h("span", {class: "level"});
  #ratio = h("div", {class: "dim small"});
  #how = h("td");
  #until = h("div", {class: "dim small ticks"});
  #why = h("div", {class: "why dim small"}, "asking…");
  #first = h("div");
  #others = h("ul", {class: "blockers"});
  #more = h("summary");
  #details = h("details", {hidden: true}, this.#more, this.#others);
  #action = h("td", {class: "right"});
  #ticking = [];  // {element, deadline} of what blocks it
  #made_for = "";

  constructor(context) {
    this.context = context;
    this.element = h("tr", {}, this.#place, this.#who, h("td", {}, h("div", {class: "nowrap"}, this.#waited, " ", this.#level), this.#ratio),
      this.#pool, this.#how, h("td", {}, this.#first, this.#details, this.#why), this.#action);
  }

  // usual: {wait, hold}, medians of its pool.
  update(waiter, usual) {
    Object.assign(this, {waiter, usual});
    const made_for = JSON.stringify(waiter);
    if (made_for === this.#made_for) return;
    this.#made_for = made_for;
    const {position = 0, priority, order, count, probes = 0, holder, pool} = waiter;
    put(this.#place, position > 0 ? h("b", {}, String(position)) : h("span", {class: "dim"}, "-"));
    put(this.#who, holder_element(waiter), waiter.reason && h("div", {class: "dim small cut", title: waiter.reason}, waiter.reason));
    set_text(this.#pool, pool);
    const details = [order, order === "fair" && priority && `priority ${priority}`, count > 1 && `wants ${count} slots`,
      probes > 0 && `asked ${probes} ${probes === 1 ? "time" : "times"} before`].filter(Boolean).join(", ");
    put(this.#how, waiter.state === "backing_off" ? chip("backing_off", {text: "waiting", title: "between two tries: it has no place in line"}) : chip("waiting"),
      h("div", {class: "small"}, details), this.#until);
    put(this.#action, waiter.state === "in_line" ?
      h("button", {type: "button", "aria-label": `Remove ${holder} from the line of ${pool}`, onclick: () => remove_waiter(this.context, this.waiter)}, "Remove…") :
      h("span", {class: "dim small"}, "asks by itself"));
  }

  tick(now) {
    const {since, expires, state} = this.waiter;
    const waited = Math.max(0, now - time_of(since));
    const level = level_of(waited);
    set_text(this.#waited, ticking_text(waited));
    set_text(this.#level, level ? `! ${level.word}` : "");
    set_attribute(this.#level, "class", `level ${level?.class ?? ""}`);
    set_text(this.#ratio, ratio_text(waited, this.usual));
    const left = expires ? ticking_text(Math.max(0, time_of(expires) - now)) : "";
    set_text(this.#until, !expires ? "" : state === "backing_off" ? `asks again in ${left}, or when a slot is free` : `gives up in ${left}`);
    for (const {element, deadline} of this.#ticking) set_text(element, left_text(deadline, now));
  }

  // What the server says of why it waits.
  explain({message = "", blockedBy = []}, now) {
    const holds = blockedBy.toSorted((a, b) => time_of(a.deadline) - time_of(b.deadline));
    this.#ticking = [];
    put(this.#first, holds.length > 0 && this.#blocker(holds[0]));
    put(this.#others, holds.slice(1).map((hold) => h("li", {}, this.#blocker(hold))));
    this.#details.hidden = holds.length < 2;
    set_text(this.#more, `and ${holds.length - 1} more`);
    set_text(this.#why, message);
    this.tick(now);
  }

  fail(error) {
    set_text(this.#why, `why is not known: ${error.message}`);
  }

  #blocker(hold) {
    const left = h("span", {class: "ticks nowrap"});
    this.#ticking.push({element: left, deadline: time_of(hold.deadline)});
    return h("span", {class: "blocker"}, h("a", {class: "mono", href: run_link(hold.id, hold.runId)}, `slot ${hold.slot}`), holder_element(hold),
      h("span", {class: "dim nowrap"}, "lease ", left));
  }
}
