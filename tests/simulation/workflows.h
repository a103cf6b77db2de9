// What workflow code asks for: the permit workflow as it is, and parents that do anything a
// workflow may do, and some things that it may not.
#pragma once

#include "tests/simulation/world.h"

namespace permit::simulation {

// PermitSlotWorkflow: waits for a release beside the lease timer; what comes first, ends it.
std::vector<Command> play_permit(World& world, const RunTrace& run);
std::vector<Command> play_parent(World& world, const RunTrace& run);
// A heartbeat is on its way: the permit that the activity runs under may be renewed by it.
void note_heartbeat(World& world, const RunTrace& run, std::int64_t scheduled_event_id);

}  // namespace permit::simulation
