// The workflow that a held permit is: it waits for a release, with the lease's timer beside it, and
// ends `released` or `lease_expired`. Its id, permit:<pool>:<slot>, is chosen by who starts it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "orchestrator/protocol/ids.h"
#include "worker/registry.h"

namespace permit::permits {

struct PermitSlotInput {
  std::string resource;
  std::string slot;
  double lease_seconds = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(PermitSlotInput, resource, slot, lease_seconds)

inline constexpr worker::WorkflowName<std::string(PermitSlotInput)> permit_slot{
    "PermitSlotWorkflow"};

// For the worker of the queue that permits are on.
void register_permit_slot(worker::Registry& registry);

// How long after the lease the server ends a permit that no worker has ended.
Duration grace_of(Duration lease);

}  // namespace permit::permits
