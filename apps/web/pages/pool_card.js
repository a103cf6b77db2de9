// One pool: how full it is, its slots, how its last holds ended, what operators did to it.
import {each_second} from "../clock.js";
import {chip, duration_text, h, put, reconcile, run_link, set_text, table, ticking_text, time_element,
  time_of} from "../dom.js";
import {count_slots} from "../holds.js";
import {menu_button} from "../menu.js";
import {pool_items} from "./slot_menu.js";
import {SlotSquares} from "./slot_squares.js";
import {SlotTiles} from "./slot_tiles.js";

const tiles_max = 64;
const outcomes_shown = 10;

export class PoolCard {
  #context;
  #name;
  #pool;
  #slots;  // SlotTiles or SlotSquares
  #badges = h("span", {class: "badges"});
  #summary = h("div", {class: "summary"});
  #place = h("div");
  #outcomes = h("ul", {class: "outcomes", "aria-label": "Last outcomes, newest first"});
  #outcome_row;
  #changes = table("Changes by hand", ["When", "What", "By", "Reason"]);
  #changes_title = h("summary");
  #changes_shown = "";
  #details;
  #waited_since;

  constructor(context, name) {
    this.#context = context;
    this.#name = name;
    const id = `pool-${name}`;
    this.#details = h("details", {class: "changes"}, this.#changes_title, this.#changes.element);
    this.#outcome_row = h("div", {class: "outcome-row"}, h("span", {class: "dim"}, "Last outcomes"), this.#outcomes);
    this.element = h("section", {class: "pool", "aria-labelledby": id},
      h("div", {class: "pool-head"}, h("h2", {id}, name), this.#badges,
        menu_button(`Actions on ${name}`, ["Actions", h("span", {class: "down", "aria-hidden": "true"})],
          () => pool_items(context, this.#pool))),
      this.#summary, this.#place, this.#outcome_row, this.#details);
  }

  update(pool) {
    this.#pool = pool;
    this.#show_badges(pool);
    this.#show_summary(pool);
    this.#show_slots(pool);
    this.#show_outcomes();
    this.#show_changes(pool.changes ?? []);
  }

  // Whether the pool is shown for this text: by its name with all its slots, or some of its slots.
  filter(text) {
    const by_name = text === "" || this.#name.toLowerCase().includes(text);
    const slots = this.#slots?.filter(by_name ? "" : text) ?? 0;
    this.element.hidden = !by_name && slots === 0;
    return !this.element.hidden;
  }

  #show_badges({configured, drained, order, rate}) {
    put(this.#badges, drained && chip("drained"),
      order && h("span", {class: "badge"}, order === "fair" ? "fair line" : "any order"),
      rate && h("span", {class: "badge"}, `at most ${rate.perSecond}/s, burst ${rate.burst}`),
      !configured && h("span", {class: "badge", title: "Its slots were learned from those who ask for them"}, "not configured"));
  }

  #show_summary(pool) {
    const counts = count_slots(pool);
    const waiting = pool.waiting ?? 0;
    const number = (count, word, class_name) => h("span", {class: class_name}, h("b", {}, String(count)), ` ${word}`);
    const wait = h("b", {class: "ticks"});
    const query = `?pool=${encodeURIComponent(pool.pool)}`;
    put(this.#summary,
      number(`${counts.held}/${pool.capacity ?? 0}`, "held", "first"), number(counts.free, "free"),
      counts.drained > 0 && number(counts.drained, "drained"),
      waiting > 0 ? h("a", {href: `#/waiters${query}`}, h("b", {}, String(waiting)), " waiting") : number(0, "waiting"),
      waiting > 0 && h("span", {}, "longest wait ", wait), this.#last_day(pool.lastDay ?? []));
    const line = this.#context.state.lines.get(pool.pool);
    const since = pool.oldestWait ?? line?.waiters?.map((waiter) => waiter.since).sort()[0];
    this.#waited_since = waiting > 0 && since ? time_of(since) : undefined;
    each_second(this.#summary, (now) => {
      if (this.#waited_since) set_text(wait, ticking_text(Math.max(0, now - this.#waited_since)));
    });
  }

  #last_day(last_day) {
    const sums = new Map();
    for (const {outcome, holds} of last_day) sums.set(outcome, (sums.get(outcome) ?? 0) + Number(holds));
    return h("span", {class: "day"}, h("span", {class: "dim"}, "24 h"), sums.size === 0 ?
      h("span", {class: "dim"}, "nothing ended") : [...sums].map(([outcome, holds]) =>
        chip(outcome, {text: `${holds} ${outcome}`, title: causes_of(last_day, outcome)})));
  }

  #show_slots(pool) {
    const Kind = pool.slots.length > tiles_max ? SlotSquares : SlotTiles;
    if (!(this.#slots instanceof Kind)) {
      this.#slots = new Kind(this.#context, this.#name);
      put(this.#place, this.#slots.element);
    }
    this.#slots.update(pool);
  }

  #show_outcomes() {
    const holds = this.#context.state.holds_of(this.#name).slice(0, outcomes_shown);
    this.#outcome_row.hidden = holds.length === 0;
    reconcile(this.#outcomes, holds, (hold) => hold.runId + hold.outcome, (hold) => {
      const length = duration_text(time_of(hold.closedAt) - time_of(hold.since));
      const more = `slot ${hold.slot}, ${hold.holder}, held ${length}` +
        (hold.cause ? `, cause ${hold.cause}` : "") + (hold.possibleOverlap ? ", possible overlap" : "");
      const link = chip(hold.outcome, {href: run_link(hold.id, hold.runId), title: more});
      link.append(h("span", {class: "off-screen"}, `, ${more}`));
      return h("li", {}, link);
    });
  }

  #show_changes(changes) {
    this.#details.hidden = changes.length === 0;
    const shown = JSON.stringify(changes);
    if (shown === this.#changes_shown) return;
    this.#changes_shown = shown;
    const now = this.#context.state.now();
    set_text(this.#changes_title, changes.length === 1 ? "1 change by hand" : `${changes.length} changes by hand`);
    put(this.#changes.body, changes.map((change) => h("tr", {}, h("td", {class: "nowrap"}, time_element(change.at, now)),
      h("td", {}, change.what), h("td", {}, change.by || "-"), h("td", {}, change.reason || "-"))));
  }
}

// "2 by timer, 1 by backstop"
function causes_of(last_day, outcome) {
  const causes = last_day.filter((row) => row.outcome === outcome && row.cause);
  return causes.map(({cause, holds}) => `${holds} by ${cause}`).join(", ") || null;
}
