// A run's events as people and programs read them.
#pragma once

#include <string>

#include "apps/cli/session.h"
#include "orchestrator/protocol/event.h"

namespace permit::cli {

enum class Detail { events_that_matter, all };
enum class Follow { no, until_closed };

// Prints the run's history: text, one JSON document that the replayer takes, or a line an event.
// Returns the exit code.
int show_history(Session& session, const WorkflowExecution& execution, Detail detail,
                 Follow follow);

// The run whose id ends in `suffix`; "" is the current or last one. Throws Error RUN_NOT_FOUND,
// UsageError if there are several.
WorkflowExecution run_named(Session& session, const WorkflowId& id, const std::string& suffix);

}  // namespace permit::cli
