// The timeline as a table: the same holds, sorted by any column, a page at a time.
import {chip, duration_text, h, put, reconcile, run_link, set_attribute, set_text, short_id,
  time_element} from "../dom.js";
import {holder_element} from "../holds.js";
import {sort_button} from "../sorting.js";
import {by_name} from "../state.js";
import {length_of, overlap_words, sort_keys} from "./hold_words.js";

const page_rows = 25;
const columns = [["pool", "Slot"], ["outcome", "Outcome"], ["holder", "Holder"], ["held", "Held"], ["since", "Since"],
  ["ended", "Ended"], ["fence", "Fence"], ["run", "Run"]];
const collated_max = 3000;
const numbers = new Set(["held", "since", "ended", "fence"]);

export class HoldTable {
  #records = [];   // all that are shown, in no order
  #order;          // of them, as far as it was needed
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
      const head = h("th", {scope: "col", class: "sorts"}, sort_button(text, () => this.#sort_by(name)));
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
    this.#sort = Object.hasOwn(sort_keys, name) ? sort : "-since";
    for (const [column, head] of this.#heads) {
      set_attribute(head, "aria-sort", column !== name ? null : this.#sort.startsWith("-") ? "descending" : "ascending");
    }
  }

  // All of what the page shows; what was on the page of the table stays there if it can.
  show(records, now) {
    this.#records = records;
    this.#order = unsorted(records, this.#sort, now);
    this.#now = now;
    this.#page = Math.min(this.#page, Math.max(0, Math.ceil(records.length / page_rows) - 1));
    this.#show_page();
  }

  first_page() {
    this.#page = 0;
  }

  // All of them, in the order of the table.
  sorted() {
    return part_sorted(this.#order, 0, this.#records.length);
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
    const shown = part_sorted(this.#order, first, Math.min(count, first + page_rows));
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
    return h("tr", {}, h("td", {class: "mono place", title: `${hold.pool} ${hold.slot}`}, `${hold.pool} ${hold.slot}`),
      h("td", {}, chip(kind, {cause: hold.cause}), overlap && h("div", {class: "alarm-text small"}, `! ${overlap}`)),
      h("td", {class: "holder-cell"}, holder_element(hold), hold.reason && h("div", {class: "dim small cut", title: hold.reason}, hold.reason)),
      h("td", {class: "nowrap"}, duration_text(length_of(record, this.#now))),
      h("td", {class: "nowrap"}, time_element(hold.since, this.#now)),
      h("td", {class: "nowrap"}, hold.closedAt ? time_element(hold.closedAt, this.#now) : "-"),
      h("td", {}, String(hold.fence)),
      h("td", {class: "mono"}, h("a", {href: run_link(hold.id, hold.runId), "aria-label": `Run ${short_id(hold.runId)}`}, short_id(hold.runId))));
  }
}

// --- Order ---

// Compares two places in `records` by a column; the newest hold first among equals.
function order_of(records, sort, now) {
  const name = sort.replace(/^-/, "");
  const sign = sort.startsWith("-") ? -1 : 1;
  const keys = records.map((record) => sort_keys[name](record, now));
  const by_number = (a, b) => sign * (keys[a] - keys[b]);
  const by_text = (a, b) => (keys[a] === keys[b] ? 0 : keys[a] < keys[b] ? -sign : sign);
  const by_words = (a, b) => sign * by_name(keys[a], keys[b]);  // 2 before 10, which takes its time
  const compare = numbers.has(name) ? by_number : records.length > collated_max ? by_text : by_words;
  return (a, b) => compare(a, b) || records[b].hold.fence - records[a].hold.fence;
}

// What part_sorted() works on: the places of the records, which it moves towards their order.
export function unsorted(records, sort, now) {
  return {records, compare: order_of(records, sort, now), places: Array.from(records, (_, i) => i)};
}

// The records from `first` to before `end` in their order, without sorting all of them: there may be
// fifty thousand, and a reader who waits for the first page.
export function part_sorted({records, compare, places}, first, end) {
  if (first > 0) select(places, first, compare, 0);
  if (end < places.length) select(places, end, compare, first);
  return places.slice(first, end).sort(compare).map((i) => records[i]);
}

// Moves places until what is before `at` would be sorted before it, and the rest behind; quickselect.
function select(places, at, compare, from) {
  let [low, high] = [from, places.length - 1];
  while (low < high) {
    const pivot = places[(low + high) >> 1];
    let [i, j] = [low, high];
    while (i <= j) {
      while (compare(places[i], pivot) < 0) i++;
      while (compare(places[j], pivot) > 0) j--;
      if (i > j) break;
      [places[i], places[j]] = [places[j], places[i]];
      i++;
      j--;
    }
    if (at <= j) high = j;
    else if (at >= i) low = i;
    else return;
  }
}
