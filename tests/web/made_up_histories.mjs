// Makes up a run with its history, and the server that has it.
import {fixture_site, refusal} from "./harness.mjs";
import {at, lab, run_id} from "./made_up.mjs";
import {lab_runs, list_answer, payload, payloads, run} from "./made_up_runs.mjs";

export const tab_names = ["Timeline", "History", "Relationships", "Pending", "Queries", "Workers"];

// event(type in words, attributes, seconds from now), numbered as it is added.
export class History {
  events = [];

  add(type, attributes = {}, seconds = 0) {
    const name = type.replace(/[A-Z]/g, (letter, i) => (i === 0 ? letter : `_${letter}`)).toUpperCase();
    const key = `${type[0].toLowerCase()}${type.slice(1)}EventAttributes`;
    this.events.push({eventId: String(this.events.length + 1), eventTime: at(seconds), eventType: `EVENT_TYPE_${name}`, [key]: attributes});
    return this.events.length;
  }

  task(seconds, identity = "worker-1@gpu-host-a") {
    const scheduled = this.add("WorkflowTaskScheduled", {taskQueue: {name: "training"}, attempt: 1}, seconds);
    const started = this.add("WorkflowTaskStarted", {scheduledEventId: String(scheduled), identity}, seconds);
    return this.add("WorkflowTaskCompleted", {scheduledEventId: String(scheduled), startedEventId: String(started), identity}, seconds);
  }

  activity(name, input, seconds, {until, result, failure, attempt = 1, queue = "training"} = {}) {
    const scheduledEventId = String(this.add("ActivityTaskScheduled", {activityId: String(this.events.length + 1), activityType: {name},
      taskQueue: {name: queue}, input: payloads(input), startToCloseTimeout: "7200s", heartbeatTimeout: "60s"}, seconds));
    if (until === undefined) return scheduledEventId;
    const startedEventId = String(this.add("ActivityTaskStarted", {scheduledEventId, identity: "worker-1@gpu-host-a", attempt}, seconds));
    this.add(failure ? "ActivityTaskFailed" : "ActivityTaskCompleted", {scheduledEventId, startedEventId,
      ...(failure ? {failure: {message: failure}} : {result: payloads(result ?? "done")})}, until);
    return scheduledEventId;
  }

  permit(pool, slot, asked, granted, {ended, result = "released"} = {}) {
    const initiatedEventId = String(this.add("StartChildWorkflowExecutionInitiated", {workflowId: `permit:${pool}:?${this.events.length + 1}`,
      workflowType: {name: "PermitSlotWorkflow"}, permit: {pool, lease: "600s", order: "fair"}}, asked));
    const workflowExecution = {workflowId: `permit:${pool}:${slot}`, runId: run_id()};
    const startedEventId = String(this.add("ChildWorkflowExecutionStarted", {initiatedEventId, workflowExecution,
      workflowType: {name: "PermitSlotWorkflow"}, fence: 1041, deadline: at(granted + 600)}, granted));
    if (ended !== undefined) this.add("ChildWorkflowExecutionCompleted", {initiatedEventId, startedEventId, workflowExecution, result: payloads(result)}, ended);
    return workflowExecution;
  }
}

// A training with all that a page can show: {info, description, history, holds}.
export function training(id = "train-llama-14", {closed = false, started = -2500} = {}) {
  const history = new History();
  history.add("WorkflowExecutionStarted", {workflowType: {name: "TrainModel"}, taskQueue: {name: "training"},
    input: payloads({model: "llama-7b", epochs: 10, rate: 0.0003}, "nightly"), identity: "ana@laptop", memo: {fields: {ticket: payload("ML-4711")}}}, started);
  history.task(started + 1);
  const first = history.permit("gpu-pool", "1", started + 2, started + 400, {ended: started + 900, result: "lease_expired"});
  history.activity("prepare_data", {dataset: "wiki"}, started + 410, {until: started + 700});
  history.activity("train_epoch", {epoch: 1}, started + 700, {until: started + 880, failure: "CUDA error: out of memory", attempt: 3});
  history.task(started + 901);
  const second = history.permit("gpu-pool", "0", started + 905, started + 1000);
  history.add("WorkflowExecutionSignaled", {signalName: "rate", input: payloads(0.0001), identity: "ana@laptop"}, started + 1200);
  history.activity("train_epoch", {epoch: 1}, started + 1010, {until: started + 1700, result: {loss: 1.82}});
  history.add("TimerStarted", {timerId: "3", startToFireTimeout: "60s"}, started + 1700);
  history.add("TimerFired", {timerId: "3", startedEventId: String(history.events.length)}, started + 1760);
  history.task(started + 1761, "worker-2@gpu-host-b");
  const open = history.activity("train_epoch", {epoch: 2}, started + 1765, closed ? {until: started + 2300, result: {loss: 1.31}} : {});
  if (!closed) history.add("TimerStarted", {timerId: "7", startToFireTimeout: "3600s"}, started + 1766);
  if (closed) {
    history.task(started + 2301);
    history.add("WorkflowExecutionCompleted", {result: payloads({checkpoint: "llama-7b-2.ckpt", loss: 1.31})}, started + 2302);
  }
  const info = run(id, {started, ...(closed ? {status: "COMPLETED", closed: started + 2302} : {})});
  const description = () => ({executionConfig: {taskQueue: {name: "training"}, workflowRunTimeout: "86400s"},
    workflowExecutionInfo: {...info, historyLength: String(history.events.length), firstRunId: info.execution.runId},
    ...(closed ? {} : {pendingActivities: [{activityId: open, activityType: {name: "train_epoch"}, state: "PENDING_ACTIVITY_STATE_STARTED",
      heartbeatDetails: payloads({epoch: 2, step: 41, loss: 1.402}), lastHeartbeatTime: at(-4), lastStartedTime: at(started + 1800), attempt: 2, maximumAttempts: 5,
      scheduledTime: at(started + 1765), lastWorkerIdentity: "worker-2@gpu-host-b", lastFailure: {message: "the worker did not heartbeat for 60s"}}]}),
    workflowExtendedInfo: {}});
  return {info, description, history, permits: [first, second]};
}

// Answers what the page of a run asks. `site.run` is a training(); polls wait until wake(site).
export function run_answer(site) {
  const list = list_answer(site);
  site.polls = [];
  return async (asked) => {
    const {path, body} = asked;
    const known = site.run;
    const {workflowId, runId} = body?.execution ?? {};
    const is_it = known && workflowId === known.info.execution.workflowId && (!runId || runId === known.info.execution.runId);
    if (path === "/DescribeWorkflowExecution") {
      return is_it ? [200, known.description()] : [404, refusal(5, "WORKFLOW_NOT_FOUND", `no run of ${workflowId} was found`)];
    }
    if (path === "/GetWorkflowExecutionHistory") {
      const begin = Number(body.nextPageToken || 0);
      const closed = () => known.info.closeTime !== undefined;
      while (begin >= known.history.events.length && !closed()) await new Promise((wake) => site.polls.push(wake));
      const end = Math.min(known.history.events.length, begin + 1000);
      return [200, {history: {events: known.history.events.slice(begin, end)},
        ...(end < known.history.events.length || !closed() ? {nextPageToken: String(end)} : {})}];
    }
    if (/^\/permits\/permit:[^/]*$/.test(path)) return [200, {state: "closed", outcome: "released", closedAt: at(-200)}];  // the ledger
    return list(asked);
  };
}

export function wake(site) {
  for (const go of site.polls.splice(0)) go();
}

// A site with a training that holds gpu-pool 0. `more` answers what else is asked.
export async function site_of_run(t, known = training(), {state = lab(), more} = {}) {
  const site = await fixture_site(t, state, async (asked) => await more?.(asked) ?? answer(asked));
  const answer = run_answer(site);
  Object.assign(site, {run: known, runs: [known.info, ...lab_runs()]});
  if (known.permits) {
    Object.assign(state.pools[0].slots[0].permit, {runId: known.permits[1].runId, holder: known.info.execution.workflowId,
      holderRunId: known.info.execution.runId});
  }
  state.queues.push({name: "training", kind: "workflow", pollers: [{identity: "worker-2@gpu-host-b", lastAccessTime: at(-2)}]});
  return site;
}

export function address_of(known, tab = "") {
  const {workflowId, runId} = known.info.execution;
  return `#/workflows/${encodeURIComponent(workflowId)}/${runId}${tab && `?tab=${tab}`}`;
}
