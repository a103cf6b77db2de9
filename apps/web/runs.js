// A run in the words of the command line: how it stands, for how long, as what it is known.
import {chip, h, short_id, time_of} from "./dom.js";

// As the list filter has them, with what shows them.
const looks = {
  Running: ["●", "held"], Waiting: ["…", "waiting"], Completed: ["✓", "released"], Failed: ["✕", "failed"],
  Canceled: ["■", "holder_closed"], Terminated: ["✕", "force_released"], TimedOut: ["!", "lease_expired"],
  ContinuedAsNew: ["→", "free"],
};
export const statuses = ["Running", "Completed", "Failed", "Canceled", "Terminated", "TimedOut", "ContinuedAsNew"];
export const outcomes = ["held", "released", "lease_expired", "holder_closed", "force_released"];

// "WORKFLOW_EXECUTION_STATUS_TIMED_OUT": "TimedOut"
export function status_word(name = "") {
  return name.replace("WORKFLOW_EXECUTION_STATUS_", "").toLowerCase()
    .replace(/(?:^|_)([a-z])/g, (_, letter) => letter.toUpperCase());
}

// Plainer than a chip, since chips are for outcomes.
export function status_element(word) {
  const [glyph, look] = looks[word] ?? ["○", "free"];
  return h("span", {class: `status is-${look}`}, h("span", {class: "glyph", "aria-hidden": "true"}, glyph), word);
}

export function outcome_chip(run) {
  if (!run.outcome) return "-";
  return chip(run.outcome, {title: run.cause && `cause ${run.cause}`});
}

// What a list or a description tells of a run, flat and with times in milliseconds.
export function run_of(info) {
  const {execution, parentExecution} = info;
  return {id: execution.workflowId, run: execution.runId, status: status_word(info.status),
    type: info.type?.name ?? "", queue: info.taskQueue ?? "", start: time_of(info.startTime),
    close: time_of(info.closeTime), started_at: info.startTime, closed_at: info.closeTime,
    parent: parentExecution?.workflowId ?? "", parent_run: parentExecution?.runId ?? "",
    fence: info.fence, cause: info.cause ?? "", outcome: info.fence ? info.outcome ?? "held" : ""};
}

// The same run after the stream has told of it, or of its hold. What is as it was is the same object.
export function changed_run(run, {workflows, holds}) {
  let now = run;
  for (const news of workflows) {
    if (news.runId !== run.run) continue;
    now = {...now, status: status_word(news.status), close: time_of(news.closeTime), closed_at: news.closeTime};
  }
  for (const hold of holds) {
    if (hold.runId !== run.run || !hold.outcome || now.outcome === hold.outcome) continue;
    now = {...now, outcome: hold.outcome, cause: hold.cause ?? ""};
  }
  return now;
}

// How it stands, for those who look: a run in a line does not just run.
export function standing_word(run, waits) {
  return run.status === "Running" && waits.has(run.run) ? "Waiting" : run.status;
}

export function took(run, now) {
  return Math.max(0, (run.close ?? now) - run.start);
}

// "…8a1b2c3d", as lists show it.
export function run_element(run_id) {
  return h("span", {class: "mono", title: run_id}, short_id(run_id));
}
