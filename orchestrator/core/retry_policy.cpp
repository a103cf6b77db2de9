#include "orchestrator/core/retry_policy.h"

#include <algorithm>
#include <cmath>

namespace permit::core {

RetryPolicy with_defaults(const std::optional<RetryPolicy>& given) {
  RetryPolicy policy = given.value_or(RetryPolicy{});
  if (policy.initial_interval.count() == 0) policy.initial_interval = std::chrono::seconds(1);
  if (policy.backoff_coefficient == 0) policy.backoff_coefficient = 2;
  if (policy.maximum_interval.count() == 0) policy.maximum_interval = policy.initial_interval * 100;
  return policy;
}

std::optional<std::string> flaw(const RetryPolicy& policy) {
  if (policy.initial_interval.count() < 0) return "the retry policy's initialInterval is negative";
  if (policy.backoff_coefficient < 1) return "the retry policy's backoffCoefficient is below 1";
  if (policy.maximum_interval < policy.initial_interval) {
    return "the retry policy's maximumInterval is below its initialInterval";
  }
  if (policy.maximum_attempts < 0) return "the retry policy's maximumAttempts is negative";
  return std::nullopt;
}

namespace {

// Heartbeat and start-to-close timeouts may be retried; the other two mean that time is up.
bool is_final(const Failure& failure, const RetryPolicy& policy) {
  if (failure.terminated_failure_info || failure.canceled_failure_info) return true;
  if (failure.timeout_failure_info) {
    const TimeoutType type = failure.timeout_failure_info->timeout_type;
    return type != TimeoutType::start_to_close && type != TimeoutType::heartbeat;
  }
  if (failure.server_failure_info) return failure.server_failure_info->non_retryable;
  if (!failure.application_failure_info) return false;
  if (failure.application_failure_info->non_retryable) return true;
  const auto& types = policy.non_retryable_error_types;
  return std::find(types.begin(), types.end(), failure.application_failure_info->type) !=
         types.end();
}

Duration backoff(const RetryPolicy& policy, std::int32_t attempt) {
  const double factor = std::pow(policy.backoff_coefficient, attempt - 1);
  const double interval = static_cast<double>(policy.initial_interval.count()) * factor;
  const double cap = static_cast<double>(policy.maximum_interval.count());
  if (!(interval < cap)) return policy.maximum_interval;
  return Duration(static_cast<std::int64_t>(interval));
}

}  // namespace

RetryVerdict judge_retry(const RetryPolicy& policy, std::int32_t attempt, const Failure& failure,
                         Time now, Time deadline) {
  if (is_final(failure, policy)) return {RetryState::non_retryable_failure, {}};
  if (policy.maximum_attempts > 0 && attempt >= policy.maximum_attempts) {
    return {RetryState::maximum_attempts_reached, {}};
  }
  Duration wait = backoff(policy, attempt);
  if (failure.application_failure_info &&
      failure.application_failure_info->next_retry_delay.count() > 0) {
    wait = failure.application_failure_info->next_retry_delay;
  }
  if (deadline != never && now + wait > deadline) return {RetryState::timeout, {}};
  return {RetryState::in_progress, wait};
}

}  // namespace permit::core
