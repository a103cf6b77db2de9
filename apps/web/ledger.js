// The holds that this tab knows: read page by page from the server's ledger (GET permits), kept as
// the stream tells of them, and remembered as long as the tab is open. One for the tab.
import {api} from "./api.js";
import {time_of} from "./dom.js";

const page_size = 1000;       // the server gives no larger ones
export const kept_by_server = 100;  // ended holds of a slot
const records_max = 120_000;
const margin = 30_000;  // for clocks that are put right meanwhile

let the_ledger;
export function ledger_of(state) {
  return the_ledger ??= new Ledger(state);
}

// A hold as it is drawn: {hold: as the API tells it, kind: held or its outcome, begin, end, deadline,
// late: when it was given back after it was lost; in milliseconds, undefined if there is none; the
// end of an open hold is Infinity; text: what the filter looks at}.
export function record_of(hold, known) {
  const whole = {...known?.hold, ...hold};
  return {
    hold: whole, kind: whole.state === "held" ? "held" : whole.outcome ?? "released", begin: time_of(whole.since),
    end: whole.state === "held" ? Infinity : time_of(whole.closedAt),
    deadline: time_of(whole.deadline), late: time_of(whole.lateReleaseAt),
    text: [whole.pool, whole.slot, whole.holder, whole.reason, whole.cause, whole.fence, whole.runId].join("\n").toLowerCase(),
  };
}

// All that is known of one slot: its records by their begin, which never overlap.
class LedgerRow {
  records = [];
  version = 0;            // another whenever the records are
  kept_from = -Infinity;  // the server has forgotten what ended before

  constructor(pool, slot) {
    Object.assign(this, {pool, slot});
  }

  // Returns how many more there are now.
  put(hold) {
    const {records} = this;
    const fence = hold.fence;
    let [low, high] = [0, records.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (records[middle].hold.fence < fence) low = middle + 1;
      else high = middle;
    }
    const known = records[low]?.hold.fence === fence ? records[low] : undefined;
    if (known && known.end !== Infinity && hold.state === "held") return 0;  // older news
    this.version++;
    records.splice(low, known ? 1 : 0, record_of(hold, known));
    return known ? 0 : 1;
  }

  // Keeps what the server keeps. Returns how many went.
  trim() {
    const excess = this.records.length - kept_by_server - 1;
    if (excess <= 0) return 0;
    this.records.splice(0, excess);
    this.kept_from = this.records[0].begin;
    this.version++;
    return excess;
  }

  // Drops an open hold that is no longer open; the ledger tells how it ended.
  close_all_but(run_id) {
    const count = this.records.length;
    this.records = this.records.filter(({end, hold}) => end !== Infinity || hold.runId === run_id);
    if (this.records.length < count) this.version++;
    return count - this.records.length;
  }
}

export class Ledger {
  rows = new Map();  // key_of(pool, slot) -> LedgerRow
  size = 0;
  version = 0;       // another whenever any row is
  loading = null;    // {pool, since, token, count, back_to, began}: what is being read
  error = null;      // why reading has stopped
  #state;
  #covered = new Map();  // pool ("": all) -> since when everything is known
  #gap = Infinity;       // what ended since then may have been missed
  #heard_at = 0;         // until then nothing was
  #paused = null;        // a load that was left off
  #abort = null;
  #listeners = new Set();

  constructor(state) {
    this.#state = state;
    this.#begin_anew();
    state.subscribe((changed) => (changed.all ? this.#begin_anew() : this.#follow(changed)));
  }

  // listener() after each change; returns how to stop.
  subscribe(listener) {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  // Sees to it that all holds of the pool ("": of all) are known that were open at `from` or later.
  want(pool, from) {
    if (!this.#state.loaded) return;
    const {loading} = this;
    if (loading && (loading.pool === "" || loading.pool === pool) && loading.since <= from) return;
    const known_since = Math.min(this.#covered.get("") ?? Infinity, this.#covered.get(pool) ?? Infinity);
    if (known_since <= from && this.#gap === Infinity) return;
    if (this.error && this.error.asked.pool === pool && this.error.asked.from - margin <= from) return;
    this.cancel();
    const paused = this.#paused;
    this.#paused = null;
    const asked = {pool, from};
    if (paused && paused.pool === pool && paused.since <= from) this.#load(paused);
    else if (known_since <= from) this.#load({asked, pool: "", since: this.#gap - margin, repairs: true});
    else this.#load({asked, pool, since: from - margin, repairs: pool === "" && from < this.#gap});
  }

  // Leaves a load off; want() goes on with it.
  cancel() {
    if (!this.loading) return;
    this.#abort.abort();
    this.#paused = this.loading;
    this.loading = null;
  }

  try_again() {
    this.error = null;
    this.#tell();
  }

  async #load(job) {
    const abort = this.#abort = new AbortController();
    this.loading = Object.assign(job, {began: performance.now(), count: job.count ?? 0, loaded: job.loaded ?? new Map(), back_to: job.back_to});
    this.error = null;
    try {
      do {
        const parameters = {pool: job.pool, since: new Date(job.since).toISOString(), pageSize: page_size,
          nextPageToken: job.token};
        const {permits = [], nextPageToken} = await api.get("/permits", {parameters, signal: abort.signal});
        if (abort.signal.aborted) return;
        for (const hold of permits) this.#read(job, hold);
        job.token = nextPageToken;
        if (job.token) this.#tell();
      } while (job.token);
      this.#loaded(job);
    } catch (error) {
      if (abort.signal.aborted) return;
      this.loading = null;
      this.#paused = job;
      this.error = Object.assign(error, {asked: job.asked});
    }
    this.#tell();
  }

  #read(job, hold) {
    job.count++;
    job.back_to = time_of(hold.since);
    const row = this.#put(hold);
    if (hold.state !== "held") job.loaded.set(row, (job.loaded.get(row) ?? 0) + 1);
  }

  // A slot of which the server gave as many as it keeps has had others before.
  #loaded(job) {
    this.loading = null;
    for (const [row, count] of job.loaded) {
      if (count >= kept_by_server) row.kept_from = Math.max(row.kept_from, row.records[0].begin);
    }
    const since = this.#covered.get(job.pool) ?? Infinity;
    this.#covered.set(job.pool, Math.min(since, job.since));
    if (job.repairs) this.#gap = Infinity;
  }

  // After a snapshot: what is open is told in it, of what ended only the last.
  #begin_anew() {
    if (!this.#state.loaded) return;
    if (this.#covered.size > 0 || this.loading) this.#gap = Math.min(this.#gap, this.#heard_at);
    this.cancel();
    this.#paused = null;
    this.error = null;
    for (const row of this.rows.values()) {
      this.size -= row.close_all_but(this.#state.slot(row.pool, row.slot)?.permit?.runId);
    }
    for (const hold of this.#state.open_holds()) this.#put(hold);
    for (const holds of this.#state.closed.values()) holds.forEach((hold) => this.#put(hold));
    this.#heard_at = this.#state.now();
    this.#tell();
  }

  #follow(changed) {
    this.#heard_at = this.#state.now();
    if (this.error?.status === 0) this.error = null;  // the server answers again
    if (changed.holds.length === 0) return;
    for (const hold of changed.holds) this.#put(hold);
    if (this.size > records_max) for (const row of this.rows.values()) this.size -= row.trim();
    this.#tell();
  }

  #put(hold) {
    const key = key_of(hold.pool, hold.slot);
    let row = this.rows.get(key);
    if (!row) this.rows.set(key, row = new LedgerRow(hold.pool, hold.slot));
    this.size += row.put(hold);
    return row;
  }

  #tell() {
    this.version++;
    for (const listener of this.#listeners) listener();
  }
}

export function key_of(pool, slot) {
  return JSON.stringify([pool, slot]);
}
