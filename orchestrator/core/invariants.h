// What must always be true of a run. Throws InvariantViolated, naming the run. Run by every test,
// and in checking builds after every batch.
#pragma once

#include <vector>

#include "orchestrator/core/run_state.h"

namespace permit::core {

// A state is sane in itself.
void check_run(const RunState& state);

// A history is: ids 1..n, one close event at most and last, every answer after its question.
void check_history(const std::vector<Event>& history);

}  // namespace permit::core
