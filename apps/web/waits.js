// Which runs want a permit and have none. The stream tells of the first 50 of a line; of longer
// lines the others are asked for, not more often than each 3 s.
import {api, part} from "./api.js";

const ask_every = 3_000;

export class Waits {
  #state;
  #told;
  #more = new Map();    // pool -> all of its waiters
  #timer = 0;
  #asked_at = -Infinity;
  #closed = false;
  #by_run = new Map();  // run id -> its waiters

  // told(): after what was asked for has come.
  constructor(state, told) {
    this.#state = state;
    this.#told = told;
    this.update();
  }

  has(run_id) {
    return this.#by_run.has(run_id);
  }
  // The waiters that a run is.
  of(run_id) {
    return this.#by_run.get(run_id) ?? [];
  }

  // After the stream has told of lines.
  update() {
    const long = [...this.#state.lines.values()].filter((line) => (line.waiting ?? 0) > (line.waiters ?? []).length);
    for (const pool of this.#more.keys()) {
      if (!long.some((line) => line.pool === pool)) this.#more.delete(pool);
    }
    this.#index();
    if (long.length === 0 || this.#timer !== 0) return;
    this.#timer = setTimeout(() => this.#ask(long), Math.max(0, this.#asked_at + ask_every - performance.now()));
  }

  close() {
    this.#closed = true;
    clearTimeout(this.#timer);
  }

  #index() {
    this.#by_run = new Map();
    for (const line of this.#state.lines.values()) {
      const known = this.#more.get(line.pool) ?? line.waiters ?? [];
      for (const waiter of known) {
        if (!waiter.holderRunId) continue;
        this.#by_run.set(waiter.holderRunId, [...this.of(waiter.holderRunId), waiter]);
      }
    }
  }

  async #ask(lines) {
    for (const {pool} of lines) {
      try {
        this.#more.set(pool, (await api.get(`/pools/${part(pool)}/waiters`)).waiters ?? []);
      } catch {
        // The pool has gone, or the server has; the stream tells.
      }
    }
    this.#timer = 0;
    this.#asked_at = performance.now();
    if (this.#closed) return;
    this.#index();
    this.#told();
  }
}
