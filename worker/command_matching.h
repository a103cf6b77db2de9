// Whether what the code asks for is what its history has, and how to say that it is not.
#pragma once

#include <string>

#include "orchestrator/protocol/command.h"
#include "orchestrator/protocol/event.h"

namespace permit::worker {

// Events that a worker's command leaves in the history.
bool is_of_command(const Event& event);

// The same kind of command for the same thing: types, ids and names. Arguments may differ.
bool matches(const Command& command, const Event& event);

// "ScheduleActivityTask 3 of type train", "TimerStarted 1".
std::string describe(const Command& command);
std::string describe(const Event& event);

}  // namespace permit::worker
