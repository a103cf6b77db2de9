// The life of an activity: handed out, heartbeats, ends, is retried, times out. Retries never touch
// history; ActivityTaskStarted is written with the close, carrying the last attempt.
#pragma once

#include "orchestrator/core/limits.h"
#include "orchestrator/core/transition.h"

namespace permit::core {

// All of these are about the pending activity with this ActivityTaskScheduled id.
struct ActivityRef {
  std::int64_t scheduled_event_id = 0;
};

void start_activity(Transition& run, ActivityRef ref, std::string identity, std::int64_t nonce);

void complete_activity(Transition& run, ActivityRef ref, std::optional<Payloads> result,
                       std::string identity);

enum class Ended { closed, will_retry };
Ended fail_activity(Transition& run, ActivityRef ref, Failure failure, std::string identity);

// Only after the workflow asked for it; else Error (invalid_argument).
void cancel_activity(Transition& run, ActivityRef ref, std::optional<Payloads> details,
                     std::string identity);

// Returns whether the workflow wants it canceled. Renews the permit it runs under, by message.
bool heartbeat_activity(Transition& run, ActivityRef ref, std::optional<Payloads> details);

// An attempt's time is up, at `due` by its own reckoning (activity_due).
Ended time_out_activity(Transition& run, ActivityRef ref);

}  // namespace permit::core
