#include "orchestrator/core/client_transitions.h"

#include <algorithm>

#include "orchestrator/core/validate.h"
#include "orchestrator/protocol/ensure.h"
#include "orchestrator/protocol/error.h"

namespace permit::core {

namespace {

// Zero means "no limit"; otherwise a limit may not pass the one around it.
Duration capped(Duration inner, Duration outer) {
  if (outer.count() == 0) return inner;
  if (inner.count() == 0) return outer;
  return std::min(inner, outer);
}

}  // namespace

Decision start(RunState& state, event::WorkflowExecutionStarted&& started, const Context& context,
               const Limits& limits) {
  ENSURE(state.next_event_id == 1);
  started.workflow_run_timeout =
      capped(started.workflow_run_timeout, started.workflow_execution_timeout);
  if (started.workflow_execution_timeout.count() > 0 &&
      !is_set(started.workflow_execution_expiration_time)) {
    started.workflow_execution_expiration_time = context.now + started.workflow_execution_timeout;
  }
  if (started.workflow_task_timeout.count() == 0) {
    started.workflow_task_timeout = limits.workflow_task_timeout_default;
  }
  started.workflow_task_timeout =
      std::min(started.workflow_task_timeout, limits.workflow_task_timeout_max);
  started.workflow_task_timeout =
      capped(started.workflow_task_timeout, started.workflow_run_timeout);
  if (started.attempt == 0) started.attempt = 1;

  Transition run(state, context);
  run.append(std::move(started));
  return run.take();
}

Taken signal(Transition& run, event::WorkflowExecutionSignaled signal, const Limits& limits) {
  const RunState& state = run.state();
  if (!signal.request_id.empty() && state.request_ids.contains(signal.request_id)) {
    return Taken::already;
  }
  // Ends the run, so it is no matter how many there were.
  if (signal.signal_name == "release" && state.is_managed_permit() && !lease_has_ended(state)) {
    release(run, std::move(signal));
    return Taken::yes;
  }
  const auto& buffered = state.volatile_state.buffered;
  const auto signals = state.signals_received + static_cast<std::int64_t>(buffered.size());
  if (signals >= limits.signals_max) {
    throw resource_exhausted(
        "SIGNALS_LIMIT", "workflow " + state.workflow_id.value + " has taken its " +
                             std::to_string(limits.signals_max) + " signals; continue it as new");
  }
  run.receive(std::move(signal));
  return Taken::yes;
}

bool lease_has_ended(const RunState& state) {
  const auto& buffered = state.volatile_state.buffered;
  return state.lease_timer_fired ||
         std::any_of(buffered.begin(), buffered.end(), [](const Event& event) {
           const auto* fired = event.get_if<event::TimerFired>();
           return fired != nullptr && fired->timer_id == "lease";
         });
}

void release(Transition& run, event::WorkflowExecutionSignaled signal) {
  ENSURE(run.state().is_managed_permit() && !lease_has_ended(run.state()));
  run.drop_workflow_task();
  run.append(std::move(signal));
  event::WorkflowExecutionCompleted completed;
  completed.result = json_payloads("\"released\"");
  run.close(std::move(completed));
}

Taken request_cancel(Transition& run, event::WorkflowExecutionCancelRequested request) {
  if (run.state().cancel_requested) return Taken::already;
  run.receive(std::move(request));
  return Taken::yes;
}

void terminate(Transition& run, event::WorkflowExecutionTerminated terminated) {
  run.drop_workflow_task();
  run.close(std::move(terminated));
}

bool over_history_limit(const RunState& state, const Limits& limits) {
  return state.next_event_id > limits.history_events_max ||
         state.history_bytes > limits.history_bytes_max;
}

}  // namespace permit::core
