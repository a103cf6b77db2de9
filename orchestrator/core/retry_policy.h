// Backoff arithmetic of activities, Temporal's: initial × coefficient^(attempt - 1), capped.
#pragma once

#include "orchestrator/protocol/common.h"

namespace permit::core {

// Defaults filled in: 1 s, ×2, cap 100 × initial, no bound on attempts.
RetryPolicy with_defaults(const std::optional<RetryPolicy>& given);

// What is wrong with the policy, or nothing.
std::optional<std::string> flaw(const RetryPolicy& policy);

struct RetryVerdict {
  RetryState state = RetryState::in_progress;
  Duration wait{};  // if in_progress
};

// `attempt` has just failed at `now`; the activity as a whole must end by `deadline`.
RetryVerdict judge_retry(const RetryPolicy& policy, std::int32_t attempt, const Failure& failure,
                         Time now, Time deadline);

}  // namespace permit::core
