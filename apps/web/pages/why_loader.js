// Asks the server why somebody waits: for the rows that are in view only, a few at a time, and again
// when their line has changed.
import {api} from "../api.js";

const at_once = 3;
const again_after = 2_000;

export class WhyLoader {
  #now;
  #rows = new Map();     // element -> {row, stale, asked_at}
  #in_view = new Set();
  #asking = 0;
  #timer = 0;
  #closed = false;
  #observer = new IntersectionObserver((entries) => {
    for (const {target, isIntersecting} of entries) {
      if (isIntersecting) this.#in_view.add(target);
      else this.#in_view.delete(target);
    }
    this.#ask();
  });

  constructor(now) {
    this.#now = now;
  }

  watch(row) {
    this.#rows.set(row.element, {row, stale: true, asked_at: -Infinity});
    this.#observer.observe(row.element);
  }

  forget(row) {
    this.#observer.unobserve(row.element);
    this.#rows.delete(row.element);
    this.#in_view.delete(row.element);
  }

  // What was said of these waiters may be another by now.
  changed(pool) {
    for (const entry of this.#rows.values()) if (entry.row.waiter.pool === pool) entry.stale = true;
    this.#ask();
  }

  close() {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#observer.disconnect();
  }

  #ask() {
    clearTimeout(this.#timer);
    const now = performance.now();
    let next = Infinity;
    for (const element of this.#in_view) {
      const entry = this.#rows.get(element);
      if (!entry?.stale) continue;
      const due = entry.asked_at + again_after;
      if (due > now) next = Math.min(next, due);
      else if (this.#asking < at_once) this.#ask_about(entry);
    }
    if (next < Infinity) this.#timer = setTimeout(() => this.#ask(), next - now);
  }

  async #ask_about(entry) {
    Object.assign(entry, {stale: false, asked_at: performance.now()});
    this.#asking++;
    try {
      const answer = await api.get(`/waiters/${entry.row.waiter.id}/why`);
      if (!this.#closed) entry.row.explain(answer, this.#now());
    } catch (error) {
      if (error.status === 0) entry.stale = true;
      if (!this.#closed && error.status !== 404) entry.row.fail(error);  // 404: it has left meanwhile
    }
    this.#asking--;
    if (!this.#closed) this.#ask();
  }
}
