// What of a run is not done: activities with their attempts, children, timers, the workflow task.
import {each_second} from "../clock.js";
import {duration_of, duration_text, h, put, run_link, set_text, short_id, time_element, time_of} from "../dom.js";
import {failure_line} from "../events.js";
import {facts} from "../holds.js";
import {payload_blocks} from "../payload.js";
import {activity_text, task_text, waiter_text} from "../run_open.js";

export class PendingTab {
  element = h("div", {class: "pending"});
  #model;
  #shown = "";

  constructor(model) {
    this.#model = model;
  }

  update() {
    const {feed, waits} = this.#model;
    const {pendingActivities = [], pendingChildren = [], pendingWorkflowTask} = feed.description;
    const waiters = waits.of(feed.run.run);
    const timers = feed.is_open() ? feed.fold.open_spans().filter((span) => span.due !== undefined) : [];
    const shown = JSON.stringify([pendingActivities, pendingChildren, pendingWorkflowTask, waiters, timers.map((span) => span.key), feed.run.status]);
    if (shown === this.#shown) return;
    this.#shown = shown;
    const cards = [
      ...waiters.map((waiter) => card("Permit", waiter.pool, (now) => waiter_text(waiter, now), [
        waiter.reason && ["Reason", waiter.reason], ["Line", h("a", {href: `#/waiters?pool=${encodeURIComponent(waiter.pool)}`}, `who waits for ${waiter.pool}`)]])),
      ...pendingActivities.map((activity) => this.#activity(activity)),
      ...timers.map((span) => card(span.kind === "wait" ? "Back-off" : "Timer", span.name.replace(/^timer /, ""),
        (now) => (span.due > now ? `in ${duration_text(span.due - now)}` : "due"), [["Of", span.detail]])),
      ...pendingChildren.map((child) => card("Child", child.workflowId, () => child.workflowTypeName ?? "", [
        child.runId && ["Run", h("a", {class: "mono", href: run_link(child.workflowId, child.runId)}, short_id(child.runId))]])),
      pendingWorkflowTask && card("Workflow task", "", (now) => task_text(pendingWorkflowTask, now), []),
    ].filter(Boolean);
    put(this.element, cards.length > 0 ? cards : h("p", {class: "dim"}, feed.is_open() ?
      "Nothing is pending: it waits for a signal, or for what only its code knows." : "Of a run that has closed nothing is pending."));
  }

  #activity(activity) {
    const now = this.#model.context.state.now();
    const {lastFailure, heartbeatDetails, nextAttemptScheduleTime, currentRetryInterval, expirationTime} = activity;
    const retry = nextAttemptScheduleTime && [time_element(nextAttemptScheduleTime, now),
      currentRetryInterval && ` after a pause of ${duration_text(duration_of(currentRetryInterval))}`];
    return card("Activity", activity.activityType?.name ?? "", (time) => activity_text(activity, time).split(", ").slice(1).join(", "), [
      ["Id", activity.activityId],
      ["Scheduled", time_element(activity.scheduledTime, now)],
      activity.lastWorkerIdentity && ["Worker", activity.lastWorkerIdentity],
      retry && time_of(nextAttemptScheduleTime) > now && ["Next attempt", retry],
      expirationTime && ["Ends by", time_element(expirationTime, now)],
      lastFailure && ["Last failure", [h("span", {class: "problem"}, failure_line(lastFailure)), lastFailure.stackTrace &&
        h("details", {}, h("summary", {}, "Stack trace"), h("pre", {class: "block", tabindex: "0"}, lastFailure.stackTrace))]],
      heartbeatDetails && ["Progress", payload_blocks(heartbeatDetails, "Progress")],
    ]);
  }
}

// text(now): what counts.
function card(kind, name, text, rows) {
  const counts = h("span", {class: "ticks"});
  each_second(counts, (now) => set_text(counts, text(now)));
  return h("section", {class: "pending-card"}, h("h3", {}, h("span", {class: "badge"}, kind), " ", h("span", {class: "mono"}, name)),
    h("p", {}, counts), rows.filter(Boolean).length > 0 && facts(rows));
}
