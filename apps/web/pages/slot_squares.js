// The slots of a large pool as a field of squares, with the one that is looked at in words below.
// One tab stop: the arrows move within. Thousands of slots cost no more than their squares.
import {each_second} from "../clock.js";
import {chip, glyph_of, h, put, reconcile, set_attribute, set_text, ticking_text, time_of} from "../dom.js";
import {heartbeat_at, holder_element, left_text, set_ago, slot_matches, standing_of, times_of,
  worker_of} from "../holds.js";
import {show_menu} from "../menu.js";
import {slot_items} from "./slot_menu.js";

export class SlotSquares {
  #context;
  #pool;
  #squares = [];  // in order: {slot, standing, button, deadline, late, is_late}
  #by_name = new Map();
  #current;       // the square that Tab goes to
  #looked_at;     // the one in words
  #field;
  #words;

  constructor(context, pool) {
    this.#context = context;
    this.#words = h("div", {class: "looked-at", id: `looked-at-${pool}`});
    this.#field = h("div", {class: "squares", role: "group", "aria-label": `Slots of ${pool}; arrow keys move, Enter opens a menu`,
      onclick: (event) => this.#choose(event), onkeydown: (event) => this.#on_key(event),
      onfocusin: ({target}) => this.#look_at(target), onpointerover: ({target}) => this.#look_at(target)});
    this.element = h("div", {}, this.#field, this.#words);
    each_second(this.element, (now) => this.#tick(now));
  }

  update(pool) {
    this.#pool = pool;
    reconcile(this.#field, pool.slots, (slot) => slot.slot, (slot) => {
      const button = h("button", {type: "button", tabindex: "-1", "aria-haspopup": "menu",
        "aria-expanded": "false", data: {slot: slot.slot}});
      this.#by_name.set(slot.slot, {button});
      return button;
    });
    this.#squares = pool.slots.map((slot) => this.#show(this.#by_name.get(slot.slot), slot));
    if (this.#by_name.size > this.#squares.length) {
      this.#by_name = new Map(this.#squares.map((square) => [square.slot.slot, square]));
    }
    if (!this.#squares.includes(this.#current)) this.#make_current(this.#squares[0]);
    if (this.#looked_at && !this.#squares.includes(this.#looked_at)) this.#looked_at = undefined;
    this.#say();
    this.#tick(this.#context.state.now());
  }

  filter(text) {
    let shown = 0;
    for (const {slot, button} of this.#squares) {
      const matches = text === "" || slot_matches(slot, text);
      button.classList.toggle("other", !matches);
      shown += matches ? 1 : 0;
    }
    return shown;
  }

  #show(square, slot) {
    const standing = standing_of(slot, this.#pool.drained);
    if (square.slot === slot && square.standing === standing) return square;
    const times = slot.permit ? times_of(slot.permit) : {};
    Object.assign(square, {slot, standing, deadline: times.deadline, late: times.late, is_late: undefined});
    return square;
  }

  // A square is touched only when it turns into another.
  #tick(now) {
    for (const square of this.#squares) {
      const is_late = square.slot.permit !== undefined && square.deadline - now < square.late;
      if (is_late === square.is_late && square.named === square.standing) continue;
      Object.assign(square, {is_late, named: square.standing});
      const {button, slot, standing} = square;
      const other = button.classList.contains("other") ? " other" : "";
      button.className = (is_late ? "is-late" : `is-${standing}`) + other;
      set_text(button, is_late ? "!" : glyph_of(standing));
      set_attribute(button, "aria-label", `${slot.slot} ${standing}${is_late ? ", lease nearly over" : ""}`);
    }
  }

  // --- The one in words ---

  #look_at(target) {
    const square = this.#by_name.get(target.closest("[data-slot]")?.dataset.slot);
    if (!square || square === this.#looked_at) return;
    this.#looked_at?.button.removeAttribute("aria-describedby");
    this.#looked_at = square;
    square.button.setAttribute("aria-describedby", this.#words.id);
    this.#say();
  }

  #say() {
    const square = this.#looked_at;
    if (!square) {
      put(this.#words, h("span", {class: "dim"}, "Point at a square, or move there with the arrow keys."));
      return;
    }
    const {slot, standing} = square;
    const {permit} = slot;
    const counts = h("span", {class: "ticks"});
    put(this.#words, h("b", {class: "mono"}, slot.slot), chip(standing),
      slot.device && h("span", {class: "dim mono"}, slot.device), permit && holder_element(permit),
      permit && h("span", {class: "dim"}, worker_of(permit)), counts,
      permit && h("span", {class: "dim"}, `fence ${permit.fence}`));
    const heard = h("span", {class: "dim"});
    counts.after(heard);
    each_second(counts, (now) => {
      if (permit) {
        set_text(counts, `held ${ticking_text(now - time_of(permit.since))}, lease ` +
          `${left_text(square.deadline, now)}${square.deadline > now ? " left" : ""}`);
        set_ago(heard, "heartbeat ", heartbeat_at(permit), now);
      } else if (slot.freeSince) {
        set_text(counts, `free for ${ticking_text(now - time_of(slot.freeSince))}`);
      }
    });
  }

  // --- Moving and choosing ---

  #make_current(square) {
    this.#current?.button.setAttribute("tabindex", "-1");
    this.#current = square;
    square?.button.setAttribute("tabindex", "0");
  }

  #on_key(event) {
    const at = this.#squares.findIndex(({button}) => button === document.activeElement);
    if (at < 0 || event.ctrlKey || event.metaKey || event.altKey) return;
    const columns = () => getComputedStyle(this.#field).gridTemplateColumns.split(" ").length;
    const to = {ArrowLeft: () => at - 1, ArrowRight: () => at + 1, ArrowUp: () => at - columns(),
      ArrowDown: () => at + columns(), Home: () => 0, End: () => this.#squares.length - 1}[event.key]?.();
    if (to === undefined) return;
    event.preventDefault();
    const square = this.#squares[to];
    if (!square) return;
    this.#make_current(square);
    square.button.focus();
  }

  #choose({target}) {
    const square = this.#by_name.get(target.closest("[data-slot]")?.dataset.slot);
    if (!square) return;
    this.#make_current(square);
    const name = `Actions on ${this.#pool.pool} slot ${square.slot.slot}`;
    show_menu(square.button, name, slot_items(this.#context, this.#pool, square.slot));
  }
}
