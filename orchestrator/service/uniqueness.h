// One open run per workflow id: the reuse policy decides over a closed predecessor, the conflict
// policy over an open one.
#pragma once

#include "orchestrator/protocol/error.h"
#include "orchestrator/service/change.h"

namespace permit::service {

// For starts that report a refusal as an event (children). TERMINATE_IF_RUNNING ends the open run
// in the same commit.
bool may_start(Change& change, const NewRun& run, WorkflowIdReusePolicy reuse,
               WorkflowIdConflictPolicy conflict);

// The 409 that names the run in the way.
Error already_started(const core::RunState& in_the_way);

}  // namespace permit::service
