// The slots of a pool as tiles: who holds each, its lease running down, the last sign of life.
import {each_second} from "../clock.js";
import {chip, h, put, reconcile, run_link, set_attribute,
  set_text, ticking_text, time_of} from "../dom.js";
import {heartbeat_at, holder_element, left_text, progress_of, set_ago, slot_matches, standing_of, times_of,
  worker_of} from "../holds.js";
import {menu_button} from "../menu.js";
import {slot_items} from "./slot_menu.js";

export class SlotTiles {
  #context;
  #tiles = new Map();  // slot -> its tile

  constructor(context, pool) {
    this.#context = context;
    this.element = h("ul", {class: "tiles", "aria-label": `Slots of ${pool}`});
  }

  update(pool) {
    reconcile(this.element, pool.slots, (slot) => slot.slot, (slot) => {
      const tile = new Tile(this.#context);
      this.#tiles.set(slot.slot, tile);
      return tile.element;
    });
    for (const name of this.#tiles.keys()) {
      if (!this.element.by_key.has(name)) this.#tiles.delete(name);
    }
    for (const slot of pool.slots) this.#tiles.get(slot.slot).update(pool, slot);
  }

  // Shows the slots that are like the text (all: ""); returns how many.
  filter(text) {
    let shown = 0;
    for (const tile of this.#tiles.values()) {
      tile.element.hidden = text !== "" && !slot_matches(tile.slot, text);
      shown += tile.element.hidden ? 0 : 1;
    }
    return shown;
  }
}

class Tile {
  #context;
  #pool;
  #standing = h("span");
  #name = h("h3", {class: "mono"});
  #device = h("span", {class: "dim mono device"});
  #body = h("div", {class: "tile-body"});
  #shown;  // what the body was made for
  #times;
  #parts;  // the elements of the body that count

  constructor(context) {
    this.#context = context;
    this.menu = menu_button("Actions", h("span", {class: "dots", "aria-hidden": "true"}),
      () => slot_items(context, this.#pool, this.slot), {class: "quiet icon"});
    this.element = h("li", {class: "tile"}, h("div", {class: "tile-head"}, this.#name, this.#device,
      this.#standing, this.menu), this.#body);
  }

  update(pool, slot) {
    const standing = standing_of(slot, pool.drained);
    if (slot === this.slot && standing === this.standing) {
      this.#pool = pool;
      return;
    }
    Object.assign(this, {slot, standing});
    this.#pool = pool;
    set_text(this.#name, slot.slot);
    set_text(this.#device, slot.device ?? "");
    set_attribute(this.menu, "aria-label", `Actions on ${pool.pool} slot ${slot.slot}`);
    put(this.#standing, chip(standing));
    this.element.className = `tile is-${standing}`;
    const {permit} = slot;
    const shown = permit ? [permit.runId, permit.holder, worker_of(permit), permit.fence].join() : "";
    if (shown !== this.#shown || !permit) {
      this.#shown = shown;
      if (permit) this.#make_held(permit);
      else this.#make_free(slot, standing);
    }
    if (permit) {
      this.#times = {...times_of(permit), heartbeat: heartbeat_at(permit)};
      set_text(this.#parts.progress, progress_of(permit));
    }
    each_second(this.element, (now) => this.#tick(now));
  }

  #make_held(permit) {
    const label = `lease left on ${permit.pool} slot ${permit.slot}`;
    const parts = this.#parts = {
      held: h("b", {class: "ticks"}), bar: h("i"), heartbeat: h("span", {class: "ticks"}),
      left: h("b", {class: "ticks", role: "timer", "aria-label": label}), progress: h("span", {class: "progress"}),
      mark: h("span", {class: "mark", "aria-hidden": "true"}),
    };
    const worker = worker_of(permit);
    put(this.#body,
      h("div", {class: "who"}, holder_element(permit), worker && worker !== permit.holder &&
        h("span", {class: "dim cut-line", title: worker}, worker)),
      permit.reason && h("div", {class: "dim cut-line", title: permit.reason}, permit.reason),
      h("div", {class: "bar", "aria-hidden": "true"}, parts.bar),
      h("div", {class: "times"}, h("span", {}, "held ", parts.held),
        h("span", {class: "left"}, parts.mark, "lease ", parts.left)),
      h("div", {class: "dim foot"}, h("span", {}, parts.heartbeat, " ", parts.progress),
        h("span", {class: "nowrap"}, `fence ${permit.fence}`)));
  }

  #make_free(slot, standing) {
    const since = h("b", {class: "ticks"});
    this.#parts = {since};
    this.#times = {free: time_of(slot.freeSince)};
    const last = this.#context.state.holds_of(this.#pool.pool).find((hold) => hold.slot === slot.slot);
    put(this.#body, h("p", {class: "dim"}, standing === "drained" ? "nothing is granted here" :
      slot.freeSince ? ["free for ", since] : last ? "free" : "never held"),
    last && h("div", {class: "last"}, h("span", {class: "dim"}, "last"), chip(last.outcome, {
      href: run_link(last.id, last.runId), title: `held by ${last.holder}`}),
    h("span", {class: "dim mono cut-line", title: last.holder}, last.holder)));
  }

  #tick(now) {
    const {since, deadline, lease, late, heartbeat, free} = this.#times;
    const parts = this.#parts;
    if (!this.slot.permit) {
      if (free) set_text(parts.since, ticking_text(Math.max(0, now - free)));
      return;
    }
    const left = deadline - now;
    const is_late = left < late;
    set_text(parts.held, ticking_text(Math.max(0, now - since)));
    set_text(parts.left, left <= 0 ? "over" : `${left_text(deadline, now)} left`);
    set_ago(parts.heartbeat, "heartbeat ", heartbeat, now);
    this.element.classList.toggle("late", is_late);
    set_text(parts.mark, is_late ? "! " : "");
    const share = lease > 0 ? Math.min(1, Math.max(0, left / lease)) : 0;
    parts.bar.style.setProperty("transform", `scaleX(${share.toFixed(4)})`);
  }
}
