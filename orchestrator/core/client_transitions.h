// What clients, other runs and operators do to a run: start, signal, cancel, terminate.
#pragma once

#include "orchestrator/core/limits.h"
#include "orchestrator/core/transition.h"

namespace permit::core {

// A run's first event. `started` is complete but for what the rules derive (timeouts capped).
Decision start(RunState& state, event::WorkflowExecutionStarted&& started, const Context& context,
               const Limits& limits);

enum class Taken { yes, already };  // already: a repeated request id; nothing was done

// A `release` in time ends a managed permit, see release().
Taken signal(Transition& run, event::WorkflowExecutionSignaled signal, const Limits& limits);
Taken request_cancel(Transition& run, event::WorkflowExecutionCancelRequested request);
void terminate(Transition& run, event::WorkflowExecutionTerminated terminated);

// Whether a permit's lease timer has fired, be it that its worker does not know yet.
bool lease_has_ended(const RunState& state);
// What the release signal of a managed permit leads to, without a worker's round trip: the run
// records it and ends with its result in the same commit. Not after its lease has ended.
void release(Transition& run, event::WorkflowExecutionSignaled signal);

// Ends a run that has grown past what the server keeps.
bool over_history_limit(const RunState& state, const Limits& limits);

}  // namespace permit::core
