#include "orchestrator/core/worker_transitions.h"

#include "orchestrator/core/commands.h"
#include "orchestrator/core/validate.h"
#include "orchestrator/protocol/ensure.h"
#include "orchestrator/protocol/error.h"

namespace permit::core {

namespace {

using namespace event;

bool suggests_continue_as_new(const RunState& state, const Limits& limits) {
  return state.next_event_id - 1 >= limits.history_events_suggest ||
         state.history_bytes >= limits.history_bytes_suggest;
}

WorkflowTaskStarted started_event(const RunState& state, std::int64_t scheduled_event_id,
                                  const Limits& limits) {
  WorkflowTaskStarted started;
  started.scheduled_event_id = scheduled_event_id;
  started.identity = state.workflow_task().identity;
  started.suggest_continue_as_new = suggests_continue_as_new(state, limits);
  started.history_size_bytes = state.history_bytes;
  return started;
}

WorkflowTaskScheduled scheduled_event(const RunState& state, const WorkflowTaskState& task) {
  WorkflowTaskScheduled scheduled;
  scheduled.task_queue = state.started.task_queue;
  scheduled.task_queue.kind = TaskQueueKind::normal;
  scheduled.start_to_close_timeout = task.timeout;
  scheduled.attempt = task.attempt;
  return scheduled;
}

// Puts a transient task into history, under the ids and times the worker has seen.
void write_transient_task(Transition& run, const Limits& limits) {
  RunState& state = run.state();
  const WorkflowTaskState task = state.workflow_task();
  ENSURE(task.scheduled_event_id == state.next_event_id);
  const WorkflowTaskScheduled scheduled = scheduled_event(state, task);
  const WorkflowTaskStarted started = started_event(state, task.scheduled_event_id, limits);
  run.append_at(task.scheduled_time, scheduled);
  run.append_at(task.started_time, started);
  state.workflow_task().attempt = task.attempt;
}

std::int64_t append_completed(Transition& run, const std::string& identity,
                              const std::optional<SdkMetadata>& sdk_metadata) {
  const WorkflowTaskState& task = run.state().workflow_task();
  WorkflowTaskCompleted completed;
  completed.scheduled_event_id = task.scheduled_event_id;
  completed.started_event_id = task.started_event_id;
  completed.identity = identity;
  completed.sdk_metadata = sdk_metadata;
  return run.append(std::move(completed));
}

// Something new to see makes a first attempt; else the failed task is offered again.
void next_attempt(Transition& run, std::int32_t failed_attempt) {
  RunState& state = run.state();
  state.volatile_state.sticky = {};
  const bool had_buffered = !state.volatile_state.buffered.empty();
  run.flush_buffered();
  if (had_buffered) {
    state.wants_workflow_task = true;
  } else {
    run.schedule_transient_task(failed_attempt + 1);
  }
}

}  // namespace

void start_workflow_task(Transition& run, HandOut hand_out, const Limits& limits) {
  RunState& state = run.state();
  ENSURE(state.has_task() && !state.task_started());
  if (state.workflow_task().attempt > 1 &&
      state.workflow_task().scheduled_event_id != state.next_event_id) {
    // Events came in after the failed attempt: the worker has something new to see, so this is a
    // first attempt again.
    state.workflow_task() = {};
    run.schedule_workflow_task();
  }
  WorkflowTaskState& task = state.workflow_task();
  task.identity = std::move(hand_out.identity);
  if (task.attempt == 1) {
    run.append(started_event(state, task.scheduled_event_id, limits));
  } else {
    task.started_event_id = task.scheduled_event_id + 1;
    task.started_time = run.now();
  }
  state.workflow_task().nonce = hand_out.nonce;
}

std::vector<Event> transient_events(const RunState& state, const Limits& limits) {
  const WorkflowTaskState& task = state.workflow_task();
  if (task.attempt == 1 || !state.task_started()) return {};
  std::vector<Event> events;
  events.push_back(
      {task.scheduled_event_id, task.scheduled_time, scheduled_event(state, task), std::nullopt});
  events.push_back({task.started_event_id, task.started_time,
                    started_event(state, task.scheduled_event_id, limits), std::nullopt});
  return events;
}

Completion complete_workflow_task(Transition& run,
                                  const RespondWorkflowTaskCompletedRequest& request,
                                  const Limits& limits) {
  RunState& state = run.state();
  ENSURE(state.task_started());
  const bool is_heartbeat = request.force_create_new_workflow_task && request.commands.empty();
  const Time alive_since = state.workflow_task().original_scheduled_time;
  if (is_heartbeat && run.now() > alive_since + limits.workflow_task_heartbeat_max) {
    time_out_workflow_task(run);
    return Completion::timed_out;
  }
  check_nothing_after_close(request.commands);
  if (state.workflow_task().attempt > 1) write_transient_task(run, limits);

  const std::int64_t completed_id = append_completed(run, request.identity, request.sdk_metadata);

  if (request.sticky_attributes && !request.sticky_attributes->worker_task_queue.name.empty()) {
    Duration timeout = request.sticky_attributes->schedule_to_start_timeout;
    if (timeout.count() <= 0) timeout = limits.sticky_timeout_default;
    state.volatile_state.sticky = {request.sticky_attributes->worker_task_queue.name, timeout};
  } else {
    state.volatile_state.sticky = {};
  }
  carry_out(run, request.commands, completed_id, limits);
  if (!state.is_open()) return Completion::done;
  run.flush_buffered();
  if (request.force_create_new_workflow_task) state.wants_workflow_task = true;
  if (is_heartbeat) state.heartbeat_since = alive_since;
  return Completion::done;
}

void begin_lease(Transition& run, const std::string& identity, const Limits& limits) {
  RunState& state = run.state();
  ENSURE(state.is_managed_permit() && state.next_event_id == 2);
  WorkflowTaskState task;
  task.attempt = 1;
  task.timeout = state.started.workflow_task_timeout;
  run.append(scheduled_event(state, task));  // and nobody is offered it
  start_workflow_task(run, {identity}, limits);
  const Duration lease = state.started.permit->deadline - run.now();
  ENSURE(lease.count() > 0);
  const std::int64_t completed_id = append_completed(run, identity, std::nullopt);
  run.append(TimerStarted{"lease", lease, completed_id, {}});
}

void fail_workflow_task(Transition& run, TaskFailure failure) {
  RunState& state = run.state();
  ENSURE(state.task_started());
  const WorkflowTaskState task = state.workflow_task();
  if (task.attempt == 1) {
    WorkflowTaskFailed failed;
    failed.scheduled_event_id = task.scheduled_event_id;
    failed.started_event_id = task.started_event_id;
    failed.cause = failure.cause;
    failed.failure = std::move(failure.failure);
    failed.identity = std::move(failure.identity);
    run.append(std::move(failed));
  } else {
    state.workflow_task() = {};
  }
  next_attempt(run, task.attempt);
}

void time_out_workflow_task(Transition& run) {
  RunState& state = run.state();
  ENSURE(state.has_task());
  const WorkflowTaskState task = state.workflow_task();
  WorkflowTaskTimedOut timed_out;
  timed_out.scheduled_event_id = task.scheduled_event_id;
  if (!state.task_started()) {
    // Nobody polls the sticky queue any more: the normal one gets it, as a first attempt.
    ENSURE(task.on_sticky_queue);
    timed_out.timeout_type = TimeoutType::schedule_to_start;
    run.append(timed_out);
    state.volatile_state.sticky = {};
    state.wants_workflow_task = true;
    return;
  }
  if (task.attempt == 1) {
    timed_out.started_event_id = task.started_event_id;
    timed_out.timeout_type = TimeoutType::start_to_close;
    run.append(timed_out);
  } else {
    state.workflow_task() = {};
  }
  next_attempt(run, task.attempt);
}

bool buffer_is_full(const RunState& state, const Limits& limits) {
  const auto& buffered = state.volatile_state.buffered;
  if (buffered.size() > limits.buffered_events_max) return true;
  std::size_t bytes = 0;
  for (const Event& event : buffered) {
    if (const auto* signaled = event.get_if<WorkflowExecutionSignaled>()) {
      bytes += bytes_of(signaled->input);
    }
  }
  return bytes > limits.buffered_bytes_max;
}

}  // namespace permit::core
