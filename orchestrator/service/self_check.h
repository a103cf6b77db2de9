// Compares what the server has in memory with its database. For tests and checking builds.
#pragma once

#include "orchestrator/service/pools.h"
#include "orchestrator/service/run_cache.h"

namespace permit::service {

// Every cached run equals a reload, due times in its row included; every open permit is the holder
// of its slot, and nobody else is. Throws InvariantViolated.
void check_against_store(store::Store& store, RunCache& cache, Pools& pools);
// The same for one run.
void check_against_store(store::Store& store, const core::RunState& state);

}  // namespace permit::service
