// A database with many open runs, made by the real service in this process, which takes a fraction
// of the time that it would take over the network.
#pragma once

#include <functional>
#include <string>

#include "orchestrator/protocol/command.h"

namespace permit::bench {

// Adds the runs "open-<from>" to "open-<to - 1>". The first task of each is done, with what
// `commands` says; by default it has none, so the run waits for a signal.
void add_open_runs(const std::string& database, int from, int to,
                   const std::function<std::vector<Command>()>& commands = {});

}  // namespace permit::bench
