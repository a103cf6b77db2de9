// Which of many items are shown: a page of them, and buttons for the others.
import {h, put} from "./dom.js";

export class Pager {
  element = h("nav", {class: "pager", "aria-label": "Pages"});
  #size;
  #first = 0;
  #count = 0;
  #turned;

  // turned(): after the reader has gone to another page.
  constructor(size, turned) {
    this.#size = size;
    this.#turned = turned;
  }

  get first() {
    return this.#first;
  }
  get last() {
    return Math.min(this.#count, this.#first + this.#size);
  }

  // How many items there are now; stays where it is as far as it can.
  set_count(count, size = this.#size) {
    const changed = count !== this.#count || size !== this.#size;
    this.#count = count;
    this.#size = size;
    const last_page = Math.max(0, Math.ceil(count / size) - 1) * size;
    this.#first = Math.min(Math.floor(this.#first / size) * size, last_page);
    if (changed) this.#draw();
  }

  to_start() {
    this.#first = 0;
    this.#draw();
  }

  #go(first) {
    this.#first = Math.max(0, Math.min(first, Math.max(0, Math.ceil(this.#count / this.#size) - 1) * this.#size));
    this.#draw();
    this.#turned();
  }

  #draw() {
    const at_start = this.#first === 0;
    const at_end = this.last >= this.#count;
    const focused = this.element.contains(document.activeElement) ? document.activeElement.dataset.to : undefined;
    const button = (to, label, disabled, first) => h("button", {type: "button", disabled, data: {to}, onclick: () => this.#go(first)}, label);
    const number = (value) => value.toLocaleString("en");
    put(this.element, this.#count > this.#size && [
      button("first", "First", at_start, 0), button("previous", "Previous", at_start, this.#first - this.#size),
      h("span", {}, `${number(this.#first + 1)}–${number(this.last)} of ${number(this.#count)}`),
      button("next", "Next", at_end, this.#first + this.#size), button("last", "Last", at_end, this.#count)]);
    if (focused) (this.element.querySelector(`[data-to="${focused}"]:enabled`) ?? this.element.querySelector("button:enabled"))?.focus();
  }
}
