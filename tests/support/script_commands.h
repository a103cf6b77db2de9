// The commands that a scripted worker completes a task with, as text:
//   start-timer ID DURATION [wake=POOL] · cancel-timer ID · marker NAME · memo KEY=VALUE
//   activity ID [type queue to-close to-start timeout heartbeat attempts backoff no-retry under]
//   cancel-activity ID · start-child ID [type queue policy reuse timeout input]
//   permit POOL [slots only count lease max-hold order wait wait-timeout priority queue reason]
//   signal-external ID[#n] NAME [child-only input] · cancel-external ID[#n] [child-only reason]
//   complete [JSON] · fail MESSAGE [type] · cancel-workflow · continue-as-new [type queue input]
#pragma once

#include <string>
#include <vector>

#include "tests/support/cluster.h"

namespace permit::test {

// "w" or "w#2": the workflow id, and the run id if one is named.
WorkflowExecution parse_execution(Cluster& cluster, const std::string& text);

// `run`: whose task it is; activities are found by id in its history.
std::vector<Command> parse_commands(Cluster& cluster, const WorkflowExecution& run,
                                    const std::string& text);

// What PermitSlotWorkflow answers to a history: it starts its lease timer, then waits for the
// release signal or the timer, whichever comes first.
std::vector<Command> permit_commands(const std::vector<Event>& history);

}  // namespace permit::test
