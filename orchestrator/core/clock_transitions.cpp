#include "orchestrator/core/clock_transitions.h"

#include <algorithm>

#include "orchestrator/core/activity_transitions.h"
#include "orchestrator/core/worker_transitions.h"
#include "orchestrator/protocol/ensure.h"

namespace permit::core {

namespace {

void expire(Transition& run) {
  run.drop_workflow_task();
  run.close(event::WorkflowExecutionTimedOut{RetryState::timeout, {}});
}

// A timer that is due next, if any.
const std::string* due_timer(const RunState& state, Time due) {
  for (const auto& [id, timer] : state.timers) {
    if (!timer.fired && timer_due(state, id, timer) == due) return &id;
  }
  return nullptr;
}

bool fire_activity(Transition& run, Time due) {
  for (auto& [id, activity] : run.state().activities) {
    if (activity.closed) continue;
    if (activity_due(activity) == due) {
      time_out_activity(run, {id});
      return true;
    }
    if (activity.attempt.waits_for_retry && activity.attempt.scheduled_time == due) {
      activity.attempt.waits_for_retry = false;
      run.offer_activity(id);
      return true;
    }
  }
  return false;
}

void fire_one(Transition& run, Time due) {
  RunState& state = run.state();
  if (const std::string* timer_id = due_timer(state, due)) {
    const TimerState timer = state.timers.at(*timer_id);
    run.receive(event::TimerFired{*timer_id, timer.started_event_id});
    if (!timer.wake_on_pool.empty()) run.send(SleeperChanged{state.number, timer.wake_on_pool});
    return;
  }
  if (fire_activity(run, due)) return;
  if (workflow_task_due(state) == due) {
    time_out_workflow_task(run);
    return;
  }
  ENSURE(expiration(state) == due);
  expire(run);
}

}  // namespace

void fire_due(Transition& run) {
  for (;;) {
    const Time due = next_due(run.state());
    if (due > run.now()) return;
    fire_one(run, due);
  }
}

std::optional<Time> renew(RunState& state, Time now, std::optional<Duration> lease) {
  ENSURE(state.is_open() && state.is_managed_permit());
  Time& deadline = state.volatile_state.permit_deadline;
  if (deadline <= now || state.lease_timer_fired) return std::nullopt;
  const PermitRequest& request = *state.started.permit_request;
  Time wanted = now + lease.value_or(request.lease);
  if (request.max_hold.count() > 0) {
    wanted = std::min(wanted, state.start_time + request.max_hold);
  }
  deadline = std::max(deadline, wanted);
  state.volatile_state.permit_renewed = now;
  return deadline;
}

}  // namespace permit::core
