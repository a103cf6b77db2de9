// Replays every prefix of a history and compares what each task asks for.
#pragma once

#include "tests/programs/totals.h"
#include "worker/replayer.h"

namespace permit::programs {

// Whether a task that is cut off before its completion may be run anew.
enum class Ends { replayed, live };

// Throws Violation at the first difference.
void check_prefixes(const worker::Registry& registry, const WorkflowExecution& execution,
                    const std::vector<Event>& events, Ends ends, Totals& totals);

}  // namespace permit::programs
