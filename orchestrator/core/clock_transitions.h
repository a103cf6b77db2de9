// What time does to a run: timers fire, tasks and activities time out, retries come up, leases and
// runs end. The service calls fire_due() for every run whose next_due has come.
#pragma once

#include "orchestrator/core/limits.h"
#include "orchestrator/core/transition.h"

namespace permit::core {

// Everything that is due at `now`, in the order of the due times: a lease timer that was due before
// its backstop is written before it, even if the server was down for both. An activity whose retry
// has come up waits no longer; the caller puts it on its queue.
void fire_due(Transition& run);

// Renews a managed permit: min(now + lease, start + max_hold). No event, no task. Returns the
// deadline that now holds, or nothing if the old one has passed: a late renewal revives nothing.
std::optional<Time> renew(RunState& state, Time now, std::optional<Duration> lease);

}  // namespace permit::core
