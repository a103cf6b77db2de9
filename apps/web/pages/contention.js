// Which pools are asked for most: those that somebody waits for, and those with the most holds.
import {each_second} from "../clock.js";
import {duration_text, h, put, reconcile, set_text, ticking_text, time_of} from "../dom.js";

const pools_shown = 8;

export class Contention {
  #list = h("ol", {class: "contended"});
  #none = h("p", {class: "dim"}, "No pool was used in the last 24 hours.");

  constructor() {
    this.element = h("section", {class: "card", "aria-labelledby": "most-contended"}, h("h2", {id: "most-contended"}, "Most contended"), this.#none, this.#list);
  }

  update(pools, recent) {
    const rows = pools.map((pool) => ({pool, waiting: pool.waiting ?? 0, oldest: time_of(pool.oldestWait),
      ended: (pool.lastDay ?? []).reduce((sum, {holds}) => sum + Number(holds), 0)}))
      .filter(({waiting, ended}) => waiting > 0 || ended > 0)
      .sort((a, b) => b.waiting - a.waiting || (a.oldest ?? Infinity) - (b.oldest ?? Infinity) || b.ended - a.ended)
      .slice(0, pools_shown);
    this.#none.hidden = rows.length > 0;
    reconcile(this.#list, rows, ({pool}) => pool.pool, ({pool}) => item_of(pool.pool),
      (item, row) => show(item, row, recent.of(row.pool.pool)));
  }
}

// An item stays while its numbers change, and so does the focus on its links.
function item_of(pool) {
  const query = `?pool=${encodeURIComponent(pool)}`;
  const [held, waiting, longest] = [h("span"), h("span"), h("span", {class: "ticks"})];
  const facts = h("span");
  const item = h("li", {}, h("div", {class: "contended-head"}, h("a", {class: "mono", href: `#/waiters${query}`}, pool), held, waiting, longest),
    h("div", {class: "dim small"}, facts, " · ", h("a", {href: `#/timeline${query}`, "aria-label": `Timeline of ${pool}`}, "timeline")));
  return Object.assign(item, {parts: {held, waiting, longest, facts}});
}

function show(item, {pool, waiting, oldest, ended}, {wait, hold}) {
  const {parts} = item;
  put(parts.held, h("b", {}, `${pool.held ?? 0}/${pool.capacity ?? 0}`), " held");
  put(parts.waiting, h("b", {}, String(waiting)), " waiting");
  set_text(parts.facts, [`${ended.toLocaleString("en")} ${ended === 1 ? "hold" : "holds"} in 24 h`, hold !== undefined && `median hold ${duration_text(hold)}`,
    wait !== undefined && `median wait ${duration_text(wait)}`].filter(Boolean).join(", "));
  each_second(item, (now) => set_text(parts.longest, oldest === undefined ? "" : `longest ${ticking_text(Math.max(0, now - oldest))}`));
}
