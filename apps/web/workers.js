// What is known of task queues and of workers. Workers tell of themselves with heartbeats; those
// that send none are known by their polls.
import {by_name} from "./state.js";
import {h, time_of} from "./dom.js";

export const silent_after = 30_000;  // a heartbeat comes every 10 s
const polled_within = 70_000;        // a poll waits up to 60 s

// --- Queues ---

// A queue that one worker serves for the runs it has in memory.
export function is_sticky(queue) {
  return queue.name.startsWith("sticky:");
}

// Whether somebody takes what comes to the queue. A stream's message has the times of the last polls
// as of when something else changed, so without times that are `fresh` whoever is listed counts.
export function is_polled(queue, now, fresh) {
  return (queue.pollers ?? []).some(({lastAccessTime}) =>
    !fresh || now - time_of(lastAccessTime) < polled_within);
}

export function last_poll(queue) {
  const times = (queue.pollers ?? []).map(({lastAccessTime}) => time_of(lastAccessTime)).filter(Boolean);
  return times.length > 0 ? Math.max(...times) : undefined;
}

export function queue_key(queue) {
  return `${queue.kind} ${queue.name}`;
}

// --- Workers ---

// Every worker, made of `heartbeats` (as GET workers answers them) and of the pollers of `queues`:
// {key, identity, host, pid, sdk, build, queues, workflow, activity, cache, done, failed, beats,
// stopping, seen}. What is not known is undefined.
export function workers_of(heartbeats, queues) {
  const polls = polls_of(queues);
  const workers = heartbeats.map((heartbeat) => worker_of(heartbeat, polls.get(heartbeat.workerIdentity)));
  const telling = new Set(workers.map(({identity}) => identity));
  for (const [identity, poll] of polls) {
    if (telling.has(identity)) continue;
    const [, pid, host] = /^(\d+)@([^@]+)$/.exec(identity) ?? [];
    workers.push({key: `poller ${identity}`, identity, host, pid, queues: [...poll.queues].sort(by_name),
      beats: false, seen: poll.seen});
  }
  return workers;
}

// identity -> {queues, seen}
function polls_of(queues) {
  const polls = new Map();
  for (const queue of queues) {
    for (const {identity, lastAccessTime} of queue.pollers ?? []) {
      const poll = polls.get(identity) ?? {queues: new Set(), seen: undefined};
      if (!is_sticky(queue)) poll.queues.add(queue.name);
      const seen = time_of(lastAccessTime);
      if (seen !== undefined) poll.seen = Math.max(seen, poll.seen ?? 0);
      polls.set(identity, poll);
    }
  }
  return polls;
}

function worker_of(heartbeat, poll) {
  const {workerIdentity: identity = "", hostInfo = {}, workflowTaskSlotsInfo: workflow,
    activityTaskSlotsInfo: activity, status = ""} = heartbeat;
  const names = new Set(poll?.queues);
  if (heartbeat.taskQueue) names.add(heartbeat.taskQueue);
  const [hits, misses] = [count(heartbeat.totalStickyCacheHit), count(heartbeat.totalStickyCacheMiss)];
  const sum = (name) => count(workflow?.[name]) + count(activity?.[name]);
  return {
    key: heartbeat.workerInstanceKey || `worker ${identity}`, identity,
    host: hostInfo.hostName, pid: hostInfo.processId,
    sdk: [heartbeat.sdkName, heartbeat.sdkVersion].filter(Boolean).join(" "),
    build: heartbeat.deploymentVersion?.buildId, queues: [...names].sort(by_name),
    workflow: slots_of(workflow), activity: slots_of(activity),
    cache: {size: count(heartbeat.currentStickyCacheSize), hits, misses},
    done: sum("totalProcessedTasks"), failed: sum("totalFailedTasks"),
    beats: true, stopping: /SHUT(TING_)?DOWN/.exec(status)?.[0], seen: time_of(heartbeat.heartbeatTime),
  };
}

// Without a total if the worker knows no bound, which it says by fewer than 0 that are available.
function slots_of(info) {
  if (!info) return undefined;
  const used = count(info.currentUsedSlots);
  const available = count(info.currentAvailableSlots);
  return {used, total: available < 0 ? undefined : used + available};
}

// A number, also if it came as digits in quotes.
function count(number) {
  return Number(number ?? 0) || 0;
}

// running, polling (sends no heartbeat), draining, stopped, silent
export function status_of(worker, now) {
  if (worker.stopping === "SHUTDOWN") return "stopped";
  const silent = worker.seen !== undefined && now - worker.seen > (worker.beats ? silent_after : polled_within);
  if (silent) return "silent";
  return worker.stopping ? "draining" : worker.beats ? "running" : "polling";
}

const looks = {running: ["up", "●"], polling: ["up", "○"], draining: ["draining", "–"],
  stopped: ["stopped", "■"], silent: ["silent", "!"]};

// The status as a chip: word, glyph, colour.
export function status_chip(status) {
  const [look, glyph] = looks[status];
  return h("span", {class: `chip is-${look}`}, h("span", {class: "glyph", "aria-hidden": "true"}, glyph), status);
}
