// What is known of the server: the fold of the event stream's messages. The stream's worker keeps
// one to greet tabs that come later; each tab keeps its own and tells its pages what changed.

const closed_kept = 50;  // ended holds remembered per pool; the timeline asks for more itself
const runs_kept = 1000;

export class State {
  seq = 0;
  version = "";
  page_version = "";       // of the server that sent the page: the first one heard
  instance = "";
  loaded = false;          // a snapshot has come
  pools = new Map();       // name -> Pool, with all of its slots
  lines = new Map();       // name -> Line
  closed = new Map();      // name -> ended holds, the newest first
  workflows = new Map();   // run id -> what last changed of it; only of runs that changed
  queues = [];
  alerts = [];
  offset = undefined;      // the server's clock minus ours, in milliseconds
  #listeners = new Set();

  // The server's time in milliseconds. Everything that counts down uses this.
  now() {
    return Date.now() + (this.offset ?? 0);
  }

  sorted_pools() {
    return [...this.pools.values()].sort((a, b) => by_name(a.pool, b.pool));
  }
  holds_of(pool) {
    return this.closed.get(pool) ?? [];
  }
  slot(pool, slot) {
    return this.pools.get(pool)?.slots.find((known) => known.slot === slot);
  }
  // Every open hold.
  open_holds() {
    return this.sorted_pools().flatMap((pool) =>
      pool.slots.map((slot) => slot.permit).filter(Boolean));
  }

  // listener(changed) after each message that brought something; returns how to stop. `changed` has
  //   keys       a Set: "pools" (some pool), "pool:NAME", "removed" (the list of pools is another),
  //              "lines", "line:NAME", "holds", "workflows", "queues", "alerts"
  //   all        true: everything may be another, as after a snapshot
  //   holds      the holds that began, were renewed or ended
  //   workflows  the runs that changed; more_workflows: and others that are not told
  subscribe(listener) {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  // One message of the stream.
  apply(event, data = {}) {
    if (data.now) this.#correct_clock(Date.parse(data.now));
    let changed;
    if (event === "snapshot") changed = this.#replace(data);
    else if (event === "changes" && this.loaded) changed = this.#change(data);
    if (changed) for (const listener of this.#listeners) listener(changed);
  }

  // All that is known, as the message that would tell it.
  snapshot() {
    return {
      seq: this.seq, version: this.version, instance: this.instance,
      now: new Date(this.now()).toISOString(), pools: [...this.pools.values()],
      lines: [...this.lines.values()], holds: [...this.closed.values()].flat(),
      queues: this.queues, alerts: this.alerts,
    };
  }

  // A message is never early, so of two readings the later one is right, unless a clock was set.
  #correct_clock(server) {
    const offset = server - Date.now();
    if (this.offset === undefined || offset > this.offset || offset < this.offset - 500) {
      this.offset = offset;
    }
  }

  #replace(data) {
    this.loaded = true;
    this.page_version ||= data.version ?? "";
    Object.assign(this, {seq: data.seq ?? 0, version: data.version ?? "",
      instance: data.instance ?? "", queues: data.queues ?? [], alerts: data.alerts ?? []});
    this.pools = new Map((data.pools ?? []).map((pool) => [pool.pool, merged(undefined, pool)]));
    this.lines = new Map((data.lines ?? []).map((line) => [line.pool, line]));
    this.closed = new Map();
    this.workflows = new Map();
    for (const hold of data.holds ?? []) {
      if (hold.state !== "held") this.#remember(hold);
    }
    const keys = new Set(["pools", "removed", "lines", "holds", "workflows", "queues", "alerts"]);
    for (const name of this.pools.keys()) keys.add("pool:" + name).add("line:" + name);
    return {all: true, keys, holds: [], workflows: [], more_workflows: true};
  }

  #change(data) {
    const changed = {all: false, keys: new Set(), holds: data.holds ?? [],
      workflows: data.workflows ?? [], more_workflows: Boolean(data.moreWorkflows)};
    const {keys} = changed;
    this.seq = data.seq ?? this.seq;
    for (const pool of data.pools ?? []) {
      if (!this.pools.has(pool.pool)) keys.add("removed");
      this.pools.set(pool.pool, merged(this.pools.get(pool.pool), pool));
      keys.add("pools").add("pool:" + pool.pool);
    }
    for (const name of data.removed ?? []) {
      for (const map of [this.pools, this.lines, this.closed]) map.delete(name);
      keys.add("pools").add("removed").add("lines").add("holds").add("pool:" + name);
    }
    for (const line of data.lines ?? []) {
      this.lines.set(line.pool, line);
      keys.add("lines").add("line:" + line.pool);
    }
    for (const hold of changed.holds) {
      if (hold.state !== "held") this.#remember(hold);
      keys.add("holds").add("pool:" + hold.pool);
    }
    for (const run of changed.workflows) {
      this.workflows.delete(run.runId);
      this.workflows.set(run.runId, run);
    }
    for (const id of this.workflows.keys()) {
      if (this.workflows.size <= runs_kept) break;
      this.workflows.delete(id);
    }
    if (changed.workflows.length > 0 || changed.more_workflows) keys.add("workflows");
    if (data.queues) {
      this.queues = data.queues;
      keys.add("queues");
    }
    if (data.alertsChanged || data.alerts) {
      this.alerts = data.alerts ?? [];
      keys.add("alerts");
    }
    return changed;
  }

  #remember(hold) {
    const holds = this.closed.get(hold.pool) ?? [];
    const others = holds.filter((known) => known.runId !== hold.runId);
    const at = others.findIndex((known) => known.closedAt <= hold.closedAt);
    others.splice(at < 0 ? others.length : at, 0, hold);
    this.closed.set(hold.pool, others.slice(0, closed_kept));
  }
}

// A partial pool has only those slots that changed, and the changes by hand are as they were.
function merged(known, pool) {
  if (!pool.partial || !known) return {...pool, slots: pool.slots ?? []};
  const news = new Map((pool.slots ?? []).map((slot) => [slot.slot, slot]));
  const {partial, ...rest} = pool;
  return {...rest, changes: known.changes, slots: known.slots.map((slot) => news.get(slot.slot) ?? slot)};
}

// 2 before 10.
const collator = new Intl.Collator("en", {numeric: true});
export function by_name(a, b) {
  return collator.compare(a, b);
}
