// A worker's commands: each is checked, then written as its event, in order.
#pragma once

#include "orchestrator/core/limits.h"
#include "orchestrator/core/transition.h"

namespace permit::core {

// Only the last command may close the run; anything behind it makes the completion senseless.
void check_nothing_after_close(const std::vector<Command>& commands);

// Throws CommandRejected at the first command that may not be carried out.
void carry_out(Transition& run, const std::vector<Command>& commands,
               std::int64_t workflow_task_completed_event_id, const Limits& limits);

}  // namespace permit::core
