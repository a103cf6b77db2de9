// What one client from outside cannot go below here: a write that is on disk, a commit, a round
// trip.
#pragma once

#include "tests/bench/scenarios.h"

namespace permit::bench {

void add_outside_limits(const Setting& setting, Report& report);

}  // namespace permit::bench
