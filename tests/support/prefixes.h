// Replays every prefix of a history and compares what each task asks for.
#pragma once

#include <cstdint>

#include "worker/replayer.h"

namespace permit::test {

struct ReplayTotals {
  std::int64_t prefixes = 0;
  std::int64_t tasks_compared = 0;
};

// Whether a task that is cut off before its completion may be run anew.
enum class Ends { replayed, live };

// Throws Violation at the first difference.
void check_prefixes(const worker::Registry& registry, const WorkflowExecution& execution,
                    const std::vector<Event>& events, Ends ends, ReplayTotals& totals);

}  // namespace permit::test
