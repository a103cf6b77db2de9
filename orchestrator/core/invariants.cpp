#include "orchestrator/core/invariants.h"

#include <set>

#include "orchestrator/protocol/ensure.h"

namespace permit::core {

void check_run(const RunState& state) {
  const WorkflowTaskState& task = state.workflow_task();
  ENSURE(state.next_event_id > 1);
  ENSURE(task.attempt >= 1);
  ENSURE(state.has_task() || !state.task_started());
  ENSURE(!state.task_started() || task.started_event_id > task.scheduled_event_id);
  // Only a transient task's ids run ahead of history.
  ENSURE(task.attempt > 1 || task.scheduled_event_id < state.next_event_id);
  ENSURE(state.task_started() || state.volatile_state.buffered.empty());
  if (state.is_open()) {
    ENSURE(!is_set(state.close_time));
    ENSURE(!state.hold_end.has_value());
    // Nobody waits for nothing: there is a task, or nothing new that would need one.
    ENSURE(state.has_task() || !state.wants_workflow_task);
    ENSURE(!state.is_permit() || expiration(state) != never);
  } else {
    ENSURE(is_set(state.close_time) && state.close_time >= state.start_time);
    ENSURE(!state.has_task() && state.timers.empty() && state.activities.empty());
    ENSURE(state.children.empty());  // without a task nothing is buffered either, see above
    ENSURE(state.backing_off.empty());
    ENSURE(state.is_permit() == state.hold_end.has_value());
  }
  for (const auto& [id, activity] : state.activities) {
    ENSURE(id > 0 && id < state.next_event_id);
    ENSURE(!activity.attempt.waits_for_retry || !is_set(activity.attempt.started_time));
  }
  for (const auto& [id, child] : state.children) {
    ENSURE(id > 0 && id < state.next_event_id);
    ENSURE(child.waits_for.empty() || child.runs.empty());
  }
}

void check_history(const std::vector<Event>& history) {
  std::int64_t id = 0;
  std::set<std::int64_t> initiated;
  std::set<std::string> timers;
  bool closed = false;
  for (const Event& event : history) {
    ENSURE(event.event_id == ++id);
    ENSURE(!closed);
    closed = is_close_event(event);
    ENSURE((id == 1) == (event.get_if<event::WorkflowExecutionStarted>() != nullptr));
    if (event.get_if<event::StartChildWorkflowExecutionInitiated>()) initiated.insert(id);
    if (const auto* started = event.get_if<event::ChildWorkflowExecutionStarted>()) {
      ENSURE(initiated.contains(started->initiated_event_id));
    }
    if (const auto* failed = event.get_if<event::StartChildWorkflowExecutionFailed>()) {
      ENSURE(initiated.erase(failed->initiated_event_id) == 1);  // started or failed, never both
    }
    if (const auto* timer = event.get_if<event::TimerStarted>()) {
      ENSURE(timers.insert(timer->timer_id).second);
    }
    if (const auto* fired = event.get_if<event::TimerFired>()) {
      ENSURE(timers.erase(fired->timer_id) == 1);
    }
    if (const auto* canceled = event.get_if<event::TimerCanceled>()) {
      ENSURE(timers.erase(canceled->timer_id) == 1);
    }
  }
}

}  // namespace permit::core
