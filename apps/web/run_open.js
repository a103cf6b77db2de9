// What an open run waits for, in the words of `permit workflow describe`.
import {duration_of, ticking_text, time_of} from "./dom.js";
import {left_text} from "./holds.js";
import {payloads_line} from "./payload.js";

const age = (from, now) => ticking_text(Math.max(0, now - from));

// "train_epoch, attempt 2 of 5 on worker-1 for 12s, heartbeat 3s ago"
export function activity_text(activity, now) {
  const {attempt = 1, maximumAttempts, lastWorkerIdentity = "", lastHeartbeatTime, nextAttemptScheduleTime} = activity;
  const state = (activity.state ?? "").replace("PENDING_ACTIVITY_STATE_", "");
  let text = `${activity.activityType?.name ?? ""}, attempt ${Math.max(attempt, 1)}${maximumAttempts ? ` of ${maximumAttempts}` : ""}`;
  if (activity.lastStartedTime && state !== "SCHEDULED") text += ` on ${lastWorkerIdentity} for ${age(time_of(activity.lastStartedTime), now)}`;
  else if (nextAttemptScheduleTime && time_of(nextAttemptScheduleTime) > now) text += ` in ${age(now, time_of(nextAttemptScheduleTime))}`;
  else text += `, waits for a worker for ${age(time_of(activity.scheduledTime) ?? now, now)}`;
  if (state === "CANCEL_REQUESTED") text += ", asked to cancel";
  if (lastHeartbeatTime) text += `, heartbeat ${age(time_of(lastHeartbeatTime), now)} ago`;
  return text;
}

// How a span stands: of an activity that is not done more is known than its history says.
export function span_state(span, {description}) {
  if (span.to !== undefined || span.kind !== "activity") return span.state;
  const activity = (description?.pendingActivities ?? []).find((known) => known.activityId === span.activity);
  if (!activity) return span.state;
  if (!(activity.state ?? "").endsWith("_SCHEDULED")) return `attempt ${activity.attempt ?? 1} on ${activity.lastWorkerIdentity ?? ""}`;
  return activity.attempt > 1 ? `attempt ${activity.attempt} to come` : "waits for a worker";
}

export function waiter_text(waiter, now) {
  let text = `a slot of ${waiter.pool}, for ${age(time_of(waiter.since), now)}`;
  if (waiter.position) text += `, position ${waiter.position}`;
  if (waiter.count > 1) text += `, wants ${waiter.count}`;
  if (waiter.state === "backing_off") text += `, asks again in ${age(now, Math.max(now, time_of(waiter.expires) ?? now))}`;
  return text;
}

export function task_text({state = "", scheduledTime, startedTime, attempt}, now) {
  const with_worker = state.endsWith("STARTED");
  const since = time_of(with_worker ? startedTime : scheduledTime) ?? now;
  return `${with_worker ? "with a worker for" : "waits for a worker for"} ${age(since, now)}${attempt > 1 ? `, attempt ${attempt}` : ""}`;
}

// Lines of {key, what, text, more}; nothing if it is closed.
export function open_lines({feed, waits}, now) {
  const {run, description, fold} = feed;
  if (!description || !feed.is_open()) return [];
  const lines = [];
  const add = (key, what, text, more) => lines.push({key, what, text, more});
  for (const waiter of waits.of(run.run)) add(`waiter ${waiter.id}`, "permit", waiter_text(waiter, now));
  if (run.fence) {
    const deadline = time_of(feed.permit?.deadline ?? description.workflowExecutionInfo.deadline);
    add("release", "signal", `release, or the end of the lease${deadline ? `, ${left_text(deadline, now)}${deadline > now ? " left" : ""}` : ""}`);
  }
  for (const activity of description.pendingActivities ?? []) {
    add(`activity ${activity.activityId}`, "activity", activity_text(activity, now), payloads_line(activity.heartbeatDetails, 80));
  }
  for (const span of fold.open_spans()) {
    if (span.kind === "timer") add(`timer ${span.key}`, "timer", `${span.name.replace(/^timer /, "")}, ${span.due > now ? `fires in ${age(now, span.due)}` : "due"}`);
    if (span.kind === "child") add(`child ${span.key}`, "child", span.name);
  }
  const task = description.pendingWorkflowTask;
  if (task) add("task", "workflow task", task_text(task, now));
  return lines;
}

// "all runs 1h 00m, run 10m 00s", as far as there are limits.
export function limits_text({workflowExecutionTimeout, workflowRunTimeout}, duration_text) {
  return [["all runs", workflowExecutionTimeout], ["run", workflowRunTimeout]].filter(([, limit]) => duration_of(limit) > 0)
    .map(([what, limit]) => `${what} ${duration_text(duration_of(limit))}`).join(", ");
}
