// How long the last holds of each pool were waited for, and lasted: what a wait is measured by.
import {api} from "../api.js";
import {time_of} from "../dom.js";

const holds_read = 1000;
const holds_kept = 5000;
const samples_min = 3;  // fewer say nothing

export class RecentWaits {
  #holds = new Map();  // run id -> {pool, waited, length: undefined while it is open}

  // The last of one pool, or of all.
  async load(pool, signal) {
    const {permits = []} = await api.get("/permits", {parameters: {pool, pageSize: holds_read}, signal});
    this.add(permits.reverse());
  }

  add(holds) {
    for (const hold of holds) {
      const since = time_of(hold.since);
      const asked = time_of(hold.requestedAt);
      this.#holds.delete(hold.runId);
      this.#holds.set(hold.runId, {pool: hold.pool, waited: asked === undefined ? 0 : Math.max(0, since - asked),
        length: hold.state === "held" ? undefined : time_of(hold.closedAt) - since});
    }
    for (const id of this.#holds.keys()) {
      if (this.#holds.size <= holds_kept) break;
      this.#holds.delete(id);
    }
  }

  // {waits: of all holds, 0 for those granted at once; wait, hold: medians of those that did wait and
  // of the holds, undefined if there are too few} of a pool ("": of all).
  of(pool) {
    const holds = [...this.#holds.values()].filter((hold) => pool === "" || hold.pool === pool);
    const waits = holds.map(({waited}) => waited);
    return {waits, wait: median(waits.filter((waited) => waited > 0)),
      hold: median(holds.map(({length}) => length).filter((length) => length !== undefined))};
  }
}

export function median(numbers) {
  if (numbers.length < samples_min) return undefined;
  const sorted = numbers.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}
