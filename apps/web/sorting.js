// A table that is sorted by a click on the head of a column.
import {by_name} from "./state.js";
import {h, set_attribute, table} from "./dom.js";

// What a head that sorts is made of; its th has the class "sorts", and aria-sort if it does.
export function sort_button(text, onclick) {
  return h("button", {type: "button", class: "sort", onclick}, text, h("span", {class: "arrow", "aria-hidden": "true"}));
}

// columns: [{key, text, class, value(item)}]; one without `value` does not sort. `sorted` is how it
// is sorted now, "key" or "-key" (downwards) or "" (as it comes), and changed(sorted) is told of a
// click. Has element, body, sorted, and sort(items).
export class SortedTable {
  sorted = "";
  #columns;
  #heads = new Map();

  constructor(label, columns, changed) {
    this.#columns = columns;
    const {element, body} = table(label, columns.map((column) => ({text: this.#head(column, changed),
      class: [column.class, column.value && "sorts"].filter(Boolean).join(" ") || null})));
    Object.assign(this, {element, body});
  }

  #head({key, text, value, first = "up"}, changed) {
    if (!value) return text;
    const button = sort_button(text, () => {
      const [one, two] = first === "down" ? [`-${key}`, key] : [key, `-${key}`];
      changed(this.sorted === one ? two : this.sorted === two ? "" : one);
    });
    this.#heads.set(key, button);
    return button;
  }

  // The items in order; those that have no value come last, either way.
  sort(items) {
    const down = this.sorted.startsWith("-");
    const column = this.#columns.find(({key, value}) => value && key === this.sorted.replace("-", ""));
    for (const [key, button] of this.#heads) {
      set_attribute(button.closest("th"), "aria-sort", key === column?.key ? (down ? "descending" : "ascending") : null);
    }
    if (!column) return items;
    const keyed = items.map((item) => [column.value(item), item]);
    const is_none = (value) => value === undefined || value === null || value === "";
    keyed.sort(([a], [b]) => {
      if (is_none(a) || is_none(b)) return is_none(a) - is_none(b);
      const order = typeof a === "number" ? a - b : by_name(a, b);
      return down ? -order : order;
    });
    return keyed.map(([, item]) => item);
  }
}
