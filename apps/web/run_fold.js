// Folds a run's events into what went on in it: one span for each activity, timer, child, permit
// and wait, open until something ends it. Pure; events are added as they come.
import {duration_of, duration_text} from "./dom.js";
import {failure_line, words_of} from "./events.js";
import {payloads_line} from "./payload.js";

// How a permit ended, by the event in its holder's history.
const permit_ends = {Failed: "force_released", Canceled: "force_released", TimedOut: "lease_expired", Terminated: "force_released"};
const child_looks = {Completed: "released", Failed: "failed", Canceled: "holder_closed", TimedOut: "lease_expired", Terminated: "force_released"};

export class RunFold {
  spans = [];
  queues = new Set();  // of its activities
  started = {};        // the attributes of the first event
  end = null;          // the event that closed it
  next_run = "";
  last_worker = "";
  last_worker_at = 0;
  #by_event = new Map();  // the id of the event that began it -> span
  #by_run = new Map();    // run id of a child or permit -> span

  add(event) {
    this[event.name]?.(event.attributes, event);
    if (/^WorkflowExecution(Completed|Failed|TimedOut|Canceled|Terminated|ContinuedAsNew)$/.test(event.name)) this.#close(event);
  }

  // What is not over.
  open_spans() {
    return this.spans.filter((span) => span.to === undefined);
  }

  // The ledger's word on how a permit ended, which the holder's own history may lack.
  permit_ended(run_id, {outcome, closedAt}) {
    const span = this.#by_run.get(run_id);
    if (span && outcome) Object.assign(span, {state: outcome, look: outcome, to: Date.parse(closedAt)});
  }

  #open(event, span) {
    const opened = {from: event.at, to: undefined, event: event.id, key: String(event.id), look: "held", detail: "", ...span};
    this.spans.push(opened);
    this.#by_event.set(opened.event, opened);
    return opened;
  }

  #end(event_id, event, state, look) {
    const span = this.#by_event.get(Number(event_id));
    if (span && span.to === undefined) Object.assign(span, {to: event.at, state, look});
  }

  // What the run's end has ended as well. Of permits the ledger knows better.
  #close(event) {
    this.end = event;
    for (const span of this.open_spans()) {
      const look = span.kind === "permit" ? "holder_closed" : "free";
      Object.assign(span, {to: event.at, look, state: span.kind === "permit" ? "holder_closed" : span.kind === "child" ? "left open" : "given up",
        assumed: span.kind === "permit"});
    }
  }

  // --- Itself ---

  WorkflowExecutionStarted(e) {
    this.started = e;
  }
  WorkflowTaskStarted(e, event) {
    Object.assign(this, {last_worker: e.identity ?? "", last_worker_at: event.at});
  }
  WorkflowTaskFailed(e, event) {
    this.#mark(event, {kind: "task", name: "workflow task", state: "failed", look: "failed",
      detail: [words_of(e.cause, "WORKFLOW_TASK_FAILED_CAUSE_"), failure_line(e.failure)].filter(Boolean).join(": ")});
  }
  WorkflowTaskTimedOut(e, event) {
    this.#mark(event, {kind: "task", name: "workflow task", state: "timed out", look: "lease_expired"});
  }
  WorkflowExecutionSignaled(e, event) {
    this.#mark(event, {kind: "signal", name: e.signalName ?? "", state: "received", look: "free", detail: payloads_line(e.input)});
  }
  WorkflowExecutionCancelRequested(e, event) {
    this.#mark(event, {kind: "signal", name: "cancel", state: "asked", look: "holder_closed", detail: e.cause ?? ""});
  }
  WorkflowExecutionContinuedAsNew(e) {
    this.next_run = e.newExecutionRunId ?? "";
  }
  #mark(event, span) {
    this.#open(event, {...span, to: event.at});
  }

  // --- Activities and timers ---

  ActivityTaskScheduled(e, event) {
    if (e.taskQueue?.name) this.queues.add(e.taskQueue.name);
    this.#open(event, {kind: "activity", name: e.activityType?.name ?? "", activity: e.activityId, state: "scheduled",
      detail: payloads_line(e.input)});
  }
  ActivityTaskStarted(e) {
    const span = this.#by_event.get(Number(e.scheduledEventId));
    if (span && e.attempt > 1) span.detail = `attempt ${e.attempt}`;
  }
  ActivityTaskCompleted(e, event) {
    this.#end(e.scheduledEventId, event, "completed", "released");
  }
  ActivityTaskFailed(e, event) {
    this.#end(e.scheduledEventId, event, `failed: ${failure_line(e.failure)}`, "failed");
  }
  ActivityTaskTimedOut(e, event) {
    this.#end(e.scheduledEventId, event, "timed out", "lease_expired");
  }
  ActivityTaskCanceled(e, event) {
    this.#end(e.scheduledEventId, event, "canceled", "holder_closed");
  }
  TimerStarted(e, event) {
    const time = duration_of(e.startToFireTimeout);
    this.#open(event, {kind: e.wakeOnPool ? "wait" : "timer", name: e.wakeOnPool || `timer ${e.timerId}`, look: e.wakeOnPool ? "backing_off" : "renewed",
      state: e.wakeOnPool ? "backs off" : "runs", detail: duration_text(time), due: event.at + time});
  }
  TimerFired(e, event) {
    this.#end(e.startedEventId, event, "fired", "released");
  }
  TimerCanceled(e, event) {
    this.#end(e.startedEventId, event, "canceled", "free");
  }

  // --- Children and permits ---

  StartChildWorkflowExecutionInitiated(e, event) {
    if (e.permit) this.#open(event, {kind: "wait", name: e.permit.pool ?? e.workflowId.split(":")[1] ?? "", state: "waits in line", look: "waiting"});
    else this.#open(event, {kind: "child", name: e.workflowId ?? "", id: e.workflowId, state: "starts"});
  }
  StartChildWorkflowExecutionFailed(e, event) {
    const why = e.permitFailure?.kind || e.cause || "";
    this.#end(e.initiatedEventId, event, `refused: ${words_of(why, "START_CHILD_WORKFLOW_EXECUTION_FAILED_CAUSE_")}`, "lease_expired");
  }
  ChildWorkflowExecutionStarted(e, event) {
    const {workflowId = "", runId = ""} = e.workflowExecution ?? {};
    const begun = this.#by_event.get(Number(e.initiatedEventId));
    let span = begun;
    if (e.fence) {
      if (begun?.to === undefined) this.#end(e.initiatedEventId, event, "granted", "waiting");
      span = this.#open(event, {kind: "permit", name: workflowId, state: "held", look: "held", detail: `fence ${e.fence}`});
    } else if (begun) {
      begun.state = "Running";
    }
    if (!span) return;
    Object.assign(span, {id: workflowId, run: runId});
    this.#by_event.set(event.id, span);
    this.#by_run.set(runId, span);
  }
  ChildWorkflowExecutionCompleted(e, event) {
    const result = payloads_line(e.result).replaceAll('"', "");
    this.#child_ended(e, event, "Completed", ["released", "lease_expired"].includes(result) ? result : "force_released");
  }
  ChildWorkflowExecutionFailed(e, event) {
    this.#child_ended(e, event, "Failed");
  }
  ChildWorkflowExecutionCanceled(e, event) {
    this.#child_ended(e, event, "Canceled");
  }
  ChildWorkflowExecutionTimedOut(e, event) {
    this.#child_ended(e, event, "TimedOut");
  }
  ChildWorkflowExecutionTerminated(e, event) {
    this.#child_ended(e, event, "Terminated");
  }
  #child_ended(e, event, word, outcome = permit_ends[word]) {
    const span = this.#by_run.get(e.workflowExecution?.runId ?? "");
    if (!span || span.to !== undefined) return;
    const is_permit = span.kind === "permit";
    Object.assign(span, {to: event.at, state: is_permit ? outcome : word, look: is_permit ? outcome : child_looks[word]});
  }
}
