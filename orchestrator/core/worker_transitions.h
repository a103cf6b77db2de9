// What workers do with workflow tasks: take one, complete it with commands, fail it.
#pragma once

#include "orchestrator/core/limits.h"
#include "orchestrator/core/transition.h"
#include "orchestrator/protocol/request.h"

namespace permit::core {

// Hands the outstanding task to a worker: WorkflowTaskStarted, or for a transient attempt only a
// promise of it. `nonce` becomes part of the task token.
struct HandOut {
  std::string identity;
  std::int64_t nonce = 0;
};
void start_workflow_task(Transition& run, HandOut hand_out, const Limits& limits);

// The Scheduled and Started events that a worker sees for a transient task and that history does
// not have (yet).
std::vector<Event> transient_events(const RunState& state, const Limits& limits);

// Writes WorkflowTaskCompleted, the commands' events, then what was buffered. Throws
// CommandRejected (the state is then spoiled), or Error if the completion itself makes no sense.
// One without commands that asks for another task is a heartbeat: it keeps the task alive, but once
// that has gone on for too long the task times out instead.
enum class Completion { done, timed_out };
Completion complete_workflow_task(Transition& run,
                                  const RespondWorkflowTaskCompletedRequest& request,
                                  const Limits& limits);

// The first task of a permit that was just granted, without a worker: all that its workflow ever
// does there is begin the timer of its lease. So that is in the commit that grants it.
void begin_lease(Transition& run, const std::string& identity, const Limits& limits);

struct TaskFailure {
  WorkflowTaskFailedCause cause = WorkflowTaskFailedCause::unspecified;
  std::optional<Failure> failure;
  std::string identity;
};
// Ends the started task as failed and makes the next attempt. Of a streak of failures only the
// first is in history.
void fail_workflow_task(Transition& run, TaskFailure failure);
void time_out_workflow_task(Transition& run);

// Too much has come in while a worker has the task: take it away so that history can have it.
bool buffer_is_full(const RunState& state, const Limits& limits);

}  // namespace permit::core
