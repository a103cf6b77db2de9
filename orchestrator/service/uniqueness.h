// One open run per workflow id: the reuse policy decides over a closed predecessor, the conflict
// policy over an open one.
#pragma once

#include "orchestrator/protocol/error.h"
#include "orchestrator/service/change.h"

namespace permit::service {

// Whether a run may start under an id whose latest run is `latest`, if it has any. Where a policy
// says so, an open one is ended in the same commit.
bool may_start(Change& change, core::RunState* latest, WorkflowIdReusePolicy reuse,
               WorkflowIdConflictPolicy conflict);

// The 409 that names the run in the way.
Error already_started(const core::RunState& in_the_way);

}  // namespace permit::service
