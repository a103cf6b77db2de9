// The events of a history: what each is called, and what of it people look for. The words are those
// of `permit workflow show`.
import {duration_of, duration_text, time_of} from "./dom.js";
import {payloads_line, read_payload} from "./payload.js";

const attributes_suffix = "EventAttributes";

// "EVENT_TYPE_TIMER_FIRED": "TimerFired"
function name_of(event) {
  return (event.eventType ?? "").replace("EVENT_TYPE_", "").toLowerCase()
    .replace(/(?:^|_)([a-z])/g, (_, letter) => letter.toUpperCase());
}

function attributes_of(event) {
  const key = Object.keys(event).find((name) => name.endsWith(attributes_suffix));
  return event[key] ?? {};
}

// A failure and what caused it, in one line.
export function failure_line(failure) {
  if (!failure) return "";
  const cause = failure_line(failure.cause);
  const message = failure.message ?? "";
  return !cause || message.includes(cause) ? message : message ? `${message}: ${cause}` : cause;
}

const id_of = (execution) => execution?.workflowId ?? "";
const number = (text) => Number(text ?? 0);

// "WORKFLOW_TASK_FAILED_CAUSE_NON_DETERMINISTIC_ERROR": "non deterministic error"
export function words_of(name = "", prefix = "") {
  return name.replace(prefix, "").replaceAll("_", " ").toLowerCase();
}

const gists = {
  WorkflowExecutionStarted: (e) => [e.workflowType?.name, e.parentWorkflowExecution && `parent ${id_of(e.parentWorkflowExecution)}`,
    e.permit && `fence ${e.permit.fence}`].filter(Boolean).join(", "),
  WorkflowTaskScheduled: (e) => `queue ${e.taskQueue?.name ?? ""}`,
  WorkflowTaskStarted: (e) => e.identity ?? "",
  WorkflowTaskCompleted: (e) => e.identity ?? "",
  WorkflowTaskFailed: (e) => [words_of(e.cause, "WORKFLOW_TASK_FAILED_CAUSE_"), failure_line(e.failure)].filter(Boolean).join(": "),
  TimerStarted: (e) => `${e.timerId}, ${duration_text(duration_of(e.startToFireTimeout))}${e.wakeOnPool ? `, or when ${e.wakeOnPool} has a slot` : ""}`,
  TimerFired: (e) => e.timerId ?? "",
  TimerCanceled: (e) => e.timerId ?? "",
  ActivityTaskScheduled: (e) => `${e.activityType?.name ?? ""} ${payloads_line(e.input)}`,
  ActivityTaskStarted: (e) => `${e.identity ?? ""}, attempt ${e.attempt ?? 1}`,
  ActivityTaskCompleted: (e) => payloads_line(e.result),
  WorkflowExecutionSignaled: (e) => `${e.signalName ?? ""} ${payloads_line(e.input)}`,
  WorkflowExecutionCompleted: (e) => payloads_line(e.result),
  WorkflowExecutionTerminated: (e) => `${e.reason ?? ""}${e.identity ? `, by ${e.identity}` : ""}`,
  WorkflowExecutionCancelRequested: (e) => `${e.cause ?? ""}${e.identity ? `, by ${e.identity}` : ""}`,
  WorkflowExecutionContinuedAsNew: (e) => `run ${e.newExecutionRunId ?? ""}`,
  StartChildWorkflowExecutionInitiated: (e) => e.workflowId ?? "",
  StartChildWorkflowExecutionFailed: (e) => e.permitFailure ? e.permitFailure.message : e.workflowId ?? "",
  ChildWorkflowExecutionStarted: (e) => `${id_of(e.workflowExecution)}${e.fence ? `, fence ${e.fence}` : ""}`,
  ChildWorkflowExecutionCompleted: (e) => `${id_of(e.workflowExecution)} ${payloads_line(e.result)}`,
  SignalExternalWorkflowExecutionInitiated: (e) => `${e.signalName ?? ""} to ${id_of(e.workflowExecution)}`,
  MarkerRecorded: (e) => e.markerName ?? "",
};

// An event with what lists show of it and what is searched, made once.
export function read_event(raw) {
  const name = name_of(raw);
  const attributes = attributes_of(raw);
  const gist = (gists[name] ?? ((e) => failure_line(e.failure) || id_of(e.workflowExecution)))(attributes).trim();
  return {id: number(raw.eventId), name, attributes, gist, at: time_of(raw.eventTime), time: raw.eventTime, raw,
    search: `${raw.eventId} ${name} ${gist}`.toLowerCase(), of_task: name.startsWith("WorkflowTask")};
}

// --- As JSON for people: payloads as the values that they are ---

function is_payload(value) {
  return typeof value.metadata === "object" && Object.keys(value).every((key) => key === "metadata" || key === "data");
}

// JSON text in which payloads that hold JSON are written as they came.
export function readable_json(value) {
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(readable_json).join(",")}]`;
  if (is_payload(value)) {
    const {text, is_json} = read_payload(value);
    return is_json ? text : JSON.stringify(value);
  }
  if (Array.isArray(value.payloads) && Object.keys(value).length === 1) return readable_json(value.payloads);
  return `{${Object.entries(value).map(([key, part]) => `${JSON.stringify(key)}:${readable_json(part)}`).join(",")}}`;
}
