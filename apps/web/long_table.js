// A table of any number of rows, all of one height, that scrolls in a region of its own: only the
// rows in sight, and the one that has the focus, are there.
import {h, set_attribute} from "./dom.js";

const row_height = 36;  // as the style sheet has it
const beyond = 6;       // rows above and below those in sight

const focusable = "a, button, input";

export class LongTable {
  #columns;
  #key_of;
  #fill;
  #items = [];
  #rows = new Map();  // key -> {item, element, place}
  #above = spacer();
  #below = spacer();
  #body = h("tbody");
  #table;
  #drawing = 0;

  // columns: [{name, label, class, head}], `head` in place of the label. fill(row, item) puts the
  // cells into a row; it is called again when the item is another object.
  constructor({label, columns, key_of, fill}) {
    this.#columns = columns;
    this.#key_of = key_of;
    this.#fill = fill;
    this.heads = columns.map((column) => h("th", {scope: "col", class: column.class}, column.head ?? column.label));
    this.#table = h("table", {}, h("thead", {}, h("tr", {"aria-rowindex": "1"}, this.heads)), this.#above, this.#body, this.#below);
    this.element = h("div", {class: "scroll long", role: "region", "aria-label": label, tabindex: "0",
      onscroll: () => this.#draw_soon()}, this.#table);
    new ResizeObserver(() => this.#draw_soon()).observe(this.element);
    this.#body.addEventListener("focusout", () => this.#draw_soon());
  }

  // Replaces the items; rows whose item is the same object stay as they are.
  set(items) {
    this.#items = items;
    this.draw();
  }

  // Every row anew, for what its item does not tell.
  refill() {
    for (const entry of this.#rows.values()) entry.item = undefined;
    this.draw();
  }

  // Calls action(row, item) for the rows that are there.
  each(action) {
    for (const {element, item} of this.#rows.values()) action(element, item);
  }

  scroll_to_start() {
    this.element.scrollTop = 0;
  }

  #draw_soon() {
    this.#drawing ||= requestAnimationFrame(() => this.draw());
  }

  draw() {
    cancelAnimationFrame(this.#drawing);
    this.#drawing = 0;
    const {scrollTop, clientHeight} = this.element;
    const count = this.#items.length;
    const seen = Math.ceil((clientHeight || innerHeight) / row_height);
    const first = Math.max(0, Math.min(Math.floor(scrollTop / row_height) - beyond, count - seen - beyond));
    const last = Math.min(count, first + seen + 2 * beyond);
    set_attribute(this.#table, "aria-rowcount", count + 1);
    const wanted = this.#items.slice(first, last).map((item, i) => [this.#key_of(item), item, first + i]);
    const pinned = this.#focused();
    const at = pinned === undefined ? -1 : this.#items.findIndex((item) => this.#key_of(item) === pinned);
    const outside = at >= 0 && (at < first || at >= last) ? (at < first ? -1 : 1) : 0;
    if (outside < 0) wanted.unshift([pinned, this.#items[at], at]);
    if (outside > 0) wanted.push([pinned, this.#items[at], at]);
    this.#place(wanted);
    space(this.#above, first - (outside < 0 ? 1 : 0), this.#columns.length);
    space(this.#below, count - last - (outside > 0 ? 1 : 0), this.#columns.length);
  }

  #focused() {
    const row = document.activeElement?.closest?.("tr");
    return row && this.#body.contains(row) ? row.key : undefined;
  }

  #place(wanted) {
    const keys = new Set(wanted.map(([key]) => key));
    for (const [key, {element}] of this.#rows) {
      if (keys.has(key)) continue;
      element.remove();
      this.#rows.delete(key);
    }
    let next = this.#body.firstElementChild;
    for (const [key, item, index] of wanted) {
      let entry = this.#rows.get(key);
      if (!entry) this.#rows.set(key, entry = {element: Object.assign(h("tr"), {key})});
      if (entry.item !== item) {
        refilled(entry.element, () => this.#fill(entry.element, item));
        entry.item = item;
      }
      set_attribute(entry.element, "aria-rowindex", index + 2);
      if (entry.element === next) next = next.nextElementSibling;
      else move(this.#body, entry.element, next);
    }
  }
}

function spacer() {
  return h("tbody", {class: "spacer", "aria-hidden": "true", hidden: true});
}

function space(body, rows, columns) {
  body.hidden = rows <= 0;
  body.firstElementChild ?? body.append(h("tr", {}, h("td", {colspan: columns})));
  body.style.setProperty("--rows", String(Math.max(0, rows)));
}

// The focus stays with the same link, button or box of a row.
function refilled(row, fill) {
  const at = row.contains(document.activeElement) ? [...row.querySelectorAll(focusable)].indexOf(document.activeElement) : -1;
  fill();
  if (at >= 0) row.querySelectorAll(focusable)[at]?.focus({preventScroll: true});
}

function move(body, row, next) {
  const focused = row.contains(document.activeElement) ? document.activeElement : null;
  body.insertBefore(row, next);
  if (focused && document.activeElement !== focused) focused.focus({preventScroll: true});
}
