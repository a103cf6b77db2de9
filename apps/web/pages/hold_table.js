// The timeline as a table: the same holds, sorted by any column, a page at a time.
import {chip, duration_text, h, put, reconcile, run_link, set_attribute, set_text, short_id,
  time_element} from "../dom.js";
import {holder_element} from "../holds.js";
import {by_name} from "../state.js";
import {length_of, overlap_words, sort_keys} from "./hold_words.js";

const page_rows = 25;
const columns = [["pool", "Slot"], ["outcome", "Outcome"], ["holder", "Holder"], ["held", "Held"], ["since", "Since"],
  ["ended", "Ended"], ["fence", "Fence"], ["run", "Run"]];
const numbers = new Set(["held", "since", "ended", "fence"]);

export class HoldTable {
  #records = [];   // all that are shown, in order
  #now = 0;
  #page = 0;
  #sort;
  #on_sort;
  #heads = new Map();
  #body = h("tbody");
  #range = h("span", {class: "dim"});
  #earlier = h("button", {type: "button", onclick: () => this.#turn(-1)}, "Previous");
  #later = h("button", {type: "button", onclick: () => this.#turn(1)}, "Next");

  // `sort`: a column's name, with - in front for the largest first; on_sort(it) when it changes.
  constructor(sort, on_sort) {
    this.#on_sort = on_sort;
    const heads = columns.map(([name, text]) => {
      const head = h("th", {scope: "col"}, h("button", {type: "button", class: "sort", onclick: () => this.#sort_by(name)}, text));
      this.#heads.set(name, head);
      return head;
    });
    this.element = h("div", {}, h("div", {class: "scroll", role: "region", "aria-label": "Holds as a table", tabindex: "0"},
      h("table", {class: "holds"}, h("thead", {}, h("tr", {}, heads)), this.#body)),
    h("div", {class: "pager"}, this.#range, this.#earlier, this.#later));
    this.set_sort(sort);
  }

  set_sort(sort) {
    const name = sort.replace(/^-/, "");
    this.#sort = sort_keys[name] ? sort : "-since";
    for (const [column, head] of this.#heads) {
      set_attribute(head, "aria-sort", column !== name ? null : this.#sort.startsWith("-") ? "descending" : "ascending");
    }
  }

  // All of what the page shows; what was on the page of the table stays there if it can.
  show(records, now) {
    this.#records = sorted(records, this.#sort, now);
    this.#now = now;
    this.#page = Math.min(this.#page, Math.max(0, Math.ceil(records.length / page_rows) - 1));
    this.#show_page();
  }

  first_page() {
    this.#page = 0;
  }

  // In the order of the table.
  get records() {
    return this.#records;
  }

  #sort_by(name) {
    const descending = this.#sort === name || (this.#sort !== `-${name}` && numbers.has(name));
    this.set_sort((descending ? "-" : "") + name);
    this.#on_sort(this.#sort);
    this.#page = 0;
    this.show(this.#records, this.#now);
  }

  #turn(pages) {
    this.#page += pages;
    this.#show_page();
    const [used, other] = pages < 0 ? [this.#earlier, this.#later] : [this.#later, this.#earlier];
    if (used.disabled) other.focus();
  }

  #show_page() {
    const first = this.#page * page_rows;
    const count = this.#records.length;
    const shown = this.#records.slice(first, first + page_rows);
    reconcile(this.#body, shown, ({hold, end, late}) => `${hold.fence} ${end} ${late}`, (record) => this.#make_row(record),
      (element, record) => {
        if (record.end === Infinity) set_text(element.cells[3], duration_text(length_of(record, this.#now)));
      });
    set_text(this.#range, count === 0 ? "no holds" : `${first + 1} to ${first + shown.length} of ${count.toLocaleString("en")}`);
    this.#earlier.disabled = first === 0;
    this.#later.disabled = first + page_rows >= count;
  }

  #make_row(record) {
    const {hold, kind} = record;
    const overlap = overlap_words(record);
    return h("tr", {}, h("td", {class: "mono"}, `${hold.pool} ${hold.slot}`),
      h("td", {}, chip(kind, {cause: hold.cause}), overlap && h("div", {class: "alarm-text small"}, `! ${overlap}`)),
      h("td", {class: "holder-cell"}, holder_element(hold), hold.reason && h("div", {class: "dim small cut", title: hold.reason}, hold.reason)),
      h("td", {class: "nowrap"}, duration_text(length_of(record, this.#now))),
      h("td", {class: "nowrap"}, time_element(hold.since, this.#now)),
      h("td", {class: "nowrap"}, hold.closedAt ? time_element(hold.closedAt, this.#now) : "-"),
      h("td", {}, String(hold.fence)),
      h("td", {class: "mono"}, h("a", {href: run_link(hold.id, hold.runId), "aria-label": `Run ${short_id(hold.runId)}`}, short_id(hold.runId))));
  }
}

// Names as they are compared elsewhere, but each only once: there may be fifty thousand.
function sorted(records, sort, now) {
  const name = sort.replace(/^-/, "");
  const sign = sort.startsWith("-") ? -1 : 1;
  let keys = records.map((record) => sort_keys[name](record, now));
  if (!numbers.has(name)) {
    const distinct = [...new Set(keys)];
    if (distinct.length < 2000) distinct.sort(by_name);
    else distinct.sort();
    const ranks = new Map(distinct.map((key, i) => [key, i]));
    keys = keys.map((key) => ranks.get(key));
  }
  const order = Array.from(records, (_, i) => i);
  order.sort((a, b) => sign * (keys[a] - keys[b]) || records[b].hold.fence - records[a].hold.fence);
  return order.map((i) => records[i]);
}
