#include "orchestrator/core/transition.h"

#include <algorithm>
#include <utility>

#include "orchestrator/protocol/ensure.h"

namespace permit::core {

namespace {

using namespace event;

// While a task is retried the waits grow, so that a worker that cannot cope is not hammered.
Duration task_timeout(const RunState& state, std::int32_t attempt) {
  constexpr Duration backoff_initial = std::chrono::seconds(5);
  constexpr Duration backoff_max = std::chrono::minutes(10);
  Duration timeout = state.started.workflow_task_timeout;
  if (attempt < 3) return timeout;
  Duration backoff = backoff_initial;
  for (std::int32_t n = 3; n < attempt && backoff < backoff_max; ++n) backoff *= 2;
  return timeout + std::min(backoff, backoff_max);
}

bool sorts_last(const Event& event) {
  return event.get_if<ActivityTaskCompleted>() || event.get_if<ActivityTaskFailed>() ||
         event.get_if<ActivityTaskTimedOut>() || event.get_if<ActivityTaskCanceled>() ||
         event.get_if<ChildWorkflowExecutionCompleted>() ||
         event.get_if<ChildWorkflowExecutionFailed>() ||
         event.get_if<ChildWorkflowExecutionCanceled>() ||
         event.get_if<ChildWorkflowExecutionTimedOut>() ||
         event.get_if<ChildWorkflowExecutionTerminated>();
}

// Start events of a buffer that is being written, and their ids: a close that was buffered with its
// start learns that id only now.
struct StartedIds {
  std::map<std::int64_t, std::int64_t> activities;  // by scheduled event id
  std::map<RunId, std::int64_t> children;
};

void note_start(const Event& event, StartedIds& started) {
  if (const auto* activity = event.get_if<ActivityTaskStarted>()) {
    started.activities[activity->scheduled_event_id] = event.event_id;
  } else if (const auto* child = event.get_if<ChildWorkflowExecutionStarted>()) {
    started.children[child->workflow_execution.value().run_id] = event.event_id;
  }
}

void link_to_start(Event& event, const StartedIds& started) {
  const auto link = [](std::int64_t& id, const auto& ids, const auto& key) {
    const auto found = ids.find(key);
    if (id == 0 && found != ids.end()) id = found->second;
  };
  std::visit(
      [&]<class T>(T& e) {
        if constexpr (std::is_same_v<T, ActivityTaskCompleted> ||
                      std::is_same_v<T, ActivityTaskFailed> ||
                      std::is_same_v<T, ActivityTaskTimedOut> ||
                      std::is_same_v<T, ActivityTaskCanceled>) {
          link(e.started_event_id, started.activities, e.scheduled_event_id);
        } else if constexpr (std::is_same_v<T, ChildWorkflowExecutionCompleted> ||
                             std::is_same_v<T, ChildWorkflowExecutionFailed> ||
                             std::is_same_v<T, ChildWorkflowExecutionTimedOut> ||
                             std::is_same_v<T, ChildWorkflowExecutionCanceled> ||
                             std::is_same_v<T, ChildWorkflowExecutionTerminated>) {
          link(e.started_event_id, started.children, e.workflow_execution.value().run_id);
        }
      },
      event.attributes);
}

std::string how_it_closed(WorkflowExecutionStatus status) {
  switch (status) {
    case WorkflowExecutionStatus::completed:
      return "completed";
    case WorkflowExecutionStatus::failed:
      return "failed";
    case WorkflowExecutionStatus::canceled:
      return "canceled";
    case WorkflowExecutionStatus::terminated:
      return "terminated";
    case WorkflowExecutionStatus::timed_out:
      return "timed_out";
    default:  // it has closed, so there is only this one left
      return "continued_as_new";
  }
}

}  // namespace

std::int64_t Transition::append(EventAttributes attributes, std::optional<UserMetadata> metadata) {
  apply(state_, decision_.events.emplace_back(state_.next_event_id, now(), std::move(attributes),
                                              std::move(metadata)));
  return state_.next_event_id - 1;
}

std::int64_t Transition::append(WorkflowExecutionStarted&& started) {
  apply(state_, decision_.events.emplace_back(state_.next_event_id, now(), std::move(started),
                                              std::nullopt));
  return state_.next_event_id - 1;
}

std::int64_t Transition::append_at(Time time, EventAttributes attributes) {
  apply(state_, decision_.events.emplace_back(state_.next_event_id, time, std::move(attributes),
                                              std::nullopt));
  return state_.next_event_id - 1;
}

void Transition::receive_at(Time time, EventAttributes attributes) {
  ENSURE(state_.is_open());
  if (!state_.task_started()) {
    append_at(time, std::move(attributes));
    return;
  }
  state_.volatile_state.buffered.push_back({0, time, std::move(attributes), std::nullopt});
  note_buffered(state_, state_.volatile_state.buffered.back());
}

void Transition::flush_buffered() {
  std::vector<Event> buffered = std::move(state_.volatile_state.buffered);
  state_.volatile_state.buffered.clear();
  std::stable_partition(buffered.begin(), buffered.end(),
                        [](const Event& event) { return !sorts_last(event); });
  StartedIds started;
  for (Event& event : buffered) {
    event.event_id = state_.next_event_id;
    note_start(event, started);
    link_to_start(event, started);
    apply(state_, event);
    decision_.events.push_back(std::move(event));
  }
}

void Transition::drop_workflow_task() {
  if (state_.task_started()) {
    const WorkflowTaskState task = state_.workflow_task();
    if (task.attempt == 1) {
      WorkflowTaskFailed failed;
      failed.scheduled_event_id = task.scheduled_event_id;
      failed.started_event_id = task.started_event_id;
      failed.cause = WorkflowTaskFailedCause::force_close_command;
      append(std::move(failed));
    } else {
      state_.workflow_task() = {};  // a transient task leaves no trace
    }
  }
  flush_buffered();
}

void Transition::close(EventAttributes attributes) {
  ENSURE(state_.volatile_state.buffered.empty());
  // What the close erases from the state is still needed to tell others.
  const auto children = std::move(state_.children);
  const auto timers = std::move(state_.timers);
  state_.children.clear();
  state_.timers.clear();
  append(std::move(attributes));
  const Event& close = decision_.events.back();
  end_permit();
  for (const auto& [id, timer] : timers) {
    if (!timer.wake_on_pool.empty()) send(SleeperChanged{state_.number, timer.wake_on_pool});
  }
  if (!close.get_if<WorkflowExecutionContinuedAsNew>()) tell_parent(close);
  tell_children(children);
}

void Transition::end_permit() {
  if (!state_.is_permit()) return;
  send(PermitEnded{state_.started.permit->pool, state_.started.permit->slot, state_.number});
}

void Transition::tell_parent(const Event& close) {
  if (!state_.started.parent_workflow_execution) return;
  send(ChildClosed{*state_.started.parent_workflow_execution,
                   state_.started.parent_initiated_event_id,
                   {state_.workflow_id, state_.first_run_id()},
                   close.attributes});
}

void Transition::tell_children(const std::map<std::int64_t, ChildState>& children) {
  const std::string how = how_it_closed(state_.status);
  for (const auto& [initiated_event_id, child] : children) {
    if (!child.waits_for.empty()) {
      send(LeaveLine{state_.number, initiated_event_id, child.waits_for});
    }
    if (child.policy == ParentClosePolicy::abandon) continue;
    for (const ChildState::Run& run : child.runs) {
      send(ParentClosed{state_.execution(), run.execution, child.policy, how});
    }
  }
}

void Transition::schedule_workflow_task_if_wanted() {
  if (state_.is_open() && state_.wants_workflow_task && !state_.has_task())
    schedule_workflow_task();
}

void Transition::schedule_workflow_task() {
  ENSURE(state_.is_open() && !state_.has_task());
  WorkflowTaskScheduled scheduled;
  const StickyQueue& sticky = state_.volatile_state.sticky;
  if (sticky.name.empty()) {
    scheduled.task_queue = state_.started.task_queue;
    scheduled.task_queue.kind = TaskQueueKind::normal;
  } else {
    scheduled.task_queue = {sticky.name, TaskQueueKind::sticky, state_.started.task_queue.name};
  }
  scheduled.start_to_close_timeout = state_.started.workflow_task_timeout;
  scheduled.attempt = 1;
  append(std::move(scheduled));
  if (is_set(state_.heartbeat_since)) {
    state_.workflow_task().original_scheduled_time = std::exchange(state_.heartbeat_since, Time{});
  }
  decision_.workflow_task_offered = true;
}

void Transition::schedule_transient_task(std::int32_t attempt) {
  ENSURE(state_.is_open() && !state_.has_task() && attempt > 1);
  WorkflowTaskState task;
  task.scheduled_event_id = state_.next_event_id;
  task.attempt = attempt;
  task.timeout = task_timeout(state_, attempt);
  task.scheduled_time = now();
  task.original_scheduled_time = now();
  state_.workflow_task() = task;
  state_.volatile_state.sticky = {};
  state_.wants_workflow_task = false;
  decision_.workflow_task_offered = true;
}

}  // namespace permit::core
