// Makes up the state of a server: pools, holds and waiters in the shape of the event stream.

const day_ms = 86_400_000;
let count = 0;

// A time so many seconds from now (the past: negative).
export function at(seconds) {
  return new Date(Date.now() + seconds * 1000).toISOString();
}

// A run id like the server's: the front is the time, the end is not.
export function run_id() {
  const end = (0x1000_0000 + ++count * 0x9e3779b1 % 0xefff_ffff).toString(16).slice(-8);
  return `01a1f13f-9730-7000-98fe-6b08${end}`;
}

// An open hold. `held` and `left` are seconds; `more` overrides anything.
export function hold(pool, slot, {holder = "train-llama-14", held = 120, left = 480, workflow = true,
  worker = "worker-1@gpu-host-a", heartbeat = 4, ...more} = {}) {
  return {id: `permit:${pool}:${slot}`, runId: run_id(), pool, slot, fence: 1000 + count,
    state: "held", holder, ...(workflow ? {holderRunId: run_id()} : {}), since: at(-held),
    deadline: at(left), lease: `${held + left}s`,
    ...(workflow ? {activities: [{activityId: "1", activityType: "train_epoch", attempt: 1, worker,
      lastHeartbeat: at(-heartbeat)}]} : {renewedAt: at(-heartbeat)}), ...more};
}

// A hold that has ended, `ago` seconds ago.
export function ended(pool, slot, outcome, ago = 60, more = {}) {
  const {activities, ...known} = hold(pool, slot, {held: ago + 300, left: 0, ...more});
  return {...known, state: "closed", outcome, closedAt: at(-ago)};
}

export function pool(name, slots, more = {}) {
  const held = slots.filter((slot) => slot.permit).length;
  return {pool: name, capacity: slots.length, held, configured: true, slots, grants: 40 + held,
    lastDay: [{outcome: "released", holds: 40}], ...more};
}

export function waiter(pool_name, id, holder, since, more = {}) {
  return {id, pool: pool_name, state: "in_line", position: id, order: "fair", count: 1, holder,
    holderRunId: run_id(), since: at(-since), ...more};
}

// What a new stream is told.
export function snapshot({pools = [], lines = [], holds = [], queues = [], alerts = []} = {}) {
  return {seq: 1, now: at(0), version: "0.1.0", instance: "made-up", pools, lines, holds, queues, alerts};
}

// A few pools as a lab has them.
export function lab() {
  const gpu = pool("gpu-pool", [
    {slot: "0", permit: hold("gpu-pool", "0", {holder: "train-llama-14", held: 136, left: 2564, reason: "nightly fine-tune of the 7B model"})},
    {slot: "1", permit: hold("gpu-pool", "1", {holder: "train-vit-04", held: 250, left: 14, worker: "worker-2@gpu-host-b", heartbeat: 41})},
    {slot: "2", device: "GPU-6f1c02aa", permit: hold("gpu-pool", "2", {holder: "python train.py (ana@gpu-host-a:4121)", workflow: false, held: 208, left: 1592, labels: {user: "ana", host: "gpu-host-a", pid: "4121"}})},
    {slot: "3", freeSince: at(-82)},
  ], {waiting: 2, order: "fair", oldestWait: at(-64), lastDay: [{outcome: "released", holds: 41},
    {outcome: "lease_expired", cause: "timer", holds: 2}, {outcome: "force_released", cause: "operator", holds: 3}],
    changes: [{at: at(-4000), what: "drained slot 3", by: "ana", reason: "replacing the fan"},
      {at: at(-2 * day_ms / 1000), what: "set capacity 4", by: "config", reason: ""}]});
  const shard = pool("shard-migrate", [{slot: "0", freeSince: at(-76)}]);
  const rigs = pool("lab-rig", [
    {slot: "rig-a", permit: hold("lab-rig", "rig-a", {holder: "hil-test-99", held: 4000, left: 3000, heartbeat: 2})},
    {slot: "rig-b", drained: true},
    {slot: "rig-c"},
  ], {rate: {perSecond: 0.5, burst: 2}, configured: false});
  return snapshot({
    pools: [gpu, shard, rigs],
    lines: [{pool: "gpu-pool", waiting: 2, waiters: [waiter("gpu-pool", 1, "eval-nightly", 64),
      waiter("gpu-pool", 2, "train-gan-42", 12)]}],
    holds: [ended("gpu-pool", "3", "force_released", 82, {cause: "operator"}), ended("gpu-pool", "0", "released", 140),
      ended("gpu-pool", "1", "lease_expired", 260, {cause: "timer", possibleOverlap: true}),
      ended("gpu-pool", "2", "holder_closed", 300, {cause: "completed"}), ended("gpu-pool", "0", "released", 800),
      ended("shard-migrate", "0", "released", 76)],
    queues: [{name: "permits", kind: "workflow", pollers: [{identity: "built-in", lastAccessTime: at(-1)}]}],
    alerts: [
      {kind: "possible_overlap", severity: "critical", pool: "gpu-pool", slot: "1", since: at(-260),
        message: "possible overlap on gpu-pool slot 1: train-bert-77 lost its lease and train-vit-04 has the slot",
        wayOut: "check that train-bert-77 has stopped"},
      {kind: "queue_unserved", severity: "warning", queue: "training", since: at(-95),
        message: "no worker polls the queue training, which has 3 tasks", wayOut: "start a worker for it"},
    ],
  });
}

// A task queue; `polled` says how many seconds ago each of its pollers asked last.
export function queue(name, {kind = "workflow", polled = {}, oldest, ...more} = {}) {
  return {name, kind, pollers: Object.entries(polled).map(([identity, ago]) => ({identity, lastAccessTime: at(-ago)})),
    ...(oldest === undefined ? {} : {oldestTask: at(-oldest)}), ...more};
}

// What a worker tells of itself, `ago` seconds ago.
export function heartbeat(identity, task_queue, {ago = 4, used = 2, free = 8, ...more} = {}) {
  const [pid, host] = identity.split("@");
  const slots = {currentUsedSlots: used, currentAvailableSlots: free, totalProcessedTasks: 1234, totalFailedTasks: 0};
  return {workerInstanceKey: `key-${identity}-${task_queue}`, workerIdentity: identity, taskQueue: task_queue,
    hostInfo: {hostName: host, processId: pid}, deploymentVersion: {buildId: "2026-11-18.3"}, sdkName: "permit-cpp",
    sdkVersion: "0.1.0", status: "WORKER_STATUS_RUNNING", startTime: at(-4000), heartbeatTime: at(-ago),
    workflowTaskSlotsInfo: slots, activityTaskSlotsInfo: {...slots, totalProcessedTasks: "321"},
    totalStickyCacheHit: "980", totalStickyCacheMiss: 20, currentStickyCacheSize: 41, ...more};
}

// --- The ledger, as GET permits tells it ---

// A hold of the ledger: from so many seconds ago to so many seconds ago.
export function past(pool_name, slot, outcome, from, to, more = {}) {
  const {activities, deadline, ...known} = hold(pool_name, slot, {held: from, left: 0, ...more});
  return {...known, state: "closed", outcome, closedAt: at(-to), ...more};
}

// Fences grow with time, as the server gives them. Newest first, as it tells of them.
export function in_order(ledger) {
  ledger.sort((a, b) => (a.since < b.since ? -1 : 1)).forEach((one, i) => (one.fence = 2000 + i));
  return ledger.reverse();
}

// Answers GET permits as the server does, from a ledger that is the newest first.
export function serve_ledger(ledger, {page_max = 1000} = {}) {
  return async ({method, path, query}) => {
    if (method !== "GET" || path !== "/permits") return undefined;
    const rows = ledger().filter((one) => (!query.get("pool") || one.pool === query.get("pool")) &&
      (!query.get("since") || !one.closedAt || one.closedAt >= query.get("since")));
    const first = Number(query.get("nextPageToken") ?? 0);
    const size = Math.min(Number(query.get("pageSize") || 100), page_max);
    return [200, {permits: rows.slice(first, first + size), ...(first + size < rows.length ? {nextPageToken: String(first + size)} : {})}];
  };
}
