// Runs a recorded history against the code that is here now, and says where they part.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "orchestrator/protocol/event.h"
#include "worker/registry.h"

namespace permit::worker {

// Of an export, ours or Temporal's: `{"events":[…]}`, the bare list, or the API's answer with a
// `history`. Fields that we do not know are skipped, and so are events that a worker may ignore;
// other events that we do not know are not. Throws Error for what is no history.
std::vector<Event> read_history(std::string_view json);

// Throws NondeterminismError at the first difference, and what else fails a task: Misuse, an
// exception of the code's. `execution` is what the code sees as its own id. Returns the commands of
// each task in turn, of those that counted.
std::vector<std::vector<Command>> replay(const Registry& registry,
                                         const WorkflowExecution& execution,
                                         const std::vector<Event>& events);

}  // namespace permit::worker
