// When a failed activity is tried again, and when it has failed for good.
#include "orchestrator/core/retry_policy.h"

#include <doctest/doctest.h>

namespace permit::core {
namespace {

using namespace std::chrono_literals;

constexpr Time now{1h};

Failure application_failure(std::string type = "") {
  Failure failure;
  failure.application_failure_info.emplace();
  failure.application_failure_info->type = std::move(type);
  return failure;
}

Failure timeout(TimeoutType type) {
  Failure failure;
  failure.timeout_failure_info.emplace();
  failure.timeout_failure_info->timeout_type = type;
  return failure;
}

RetryState judged(const Failure& failure, const RetryPolicy& policy = with_defaults({})) {
  return judge_retry(policy, 1, failure, now, never).state;
}

TEST_CASE("a retry policy's gaps are filled with Temporal's defaults") {
  const RetryPolicy defaults = with_defaults(std::nullopt);
  CHECK(defaults.initial_interval == 1s);
  CHECK(defaults.backoff_coefficient == 2);
  CHECK(defaults.maximum_interval == 100s);
  CHECK(defaults.maximum_attempts == 0);
  CHECK(!flaw(defaults));

  RetryPolicy given;
  given.initial_interval = 3s;
  given.backoff_coefficient = 1.5;
  CHECK(with_defaults(given).maximum_interval == 300s);
  given.maximum_interval = 7s;
  CHECK(with_defaults(given).initial_interval == 3s);
  CHECK(with_defaults(given).backoff_coefficient == 1.5);
  CHECK(with_defaults(given).maximum_interval == 7s);
}

TEST_CASE("a retry policy that cannot be is told by its field") {
  const auto flaw_of = [](auto spoil) {
    RetryPolicy policy = with_defaults({});
    spoil(policy);
    return flaw(policy).value_or("");
  };
  CHECK(flaw_of([](RetryPolicy& p) { p.initial_interval = -1us; }) ==
        "the retry policy's initialInterval is negative");
  CHECK(flaw_of([](RetryPolicy& p) { p.backoff_coefficient = 0.99; }) ==
        "the retry policy's backoffCoefficient is below 1");
  CHECK(flaw_of([](RetryPolicy& p) { p.maximum_interval = 999ms; }) ==
        "the retry policy's maximumInterval is below its initialInterval");
  CHECK(flaw_of([](RetryPolicy& p) { p.maximum_attempts = -1; }) ==
        "the retry policy's maximumAttempts is negative");
  CHECK(flaw_of([](RetryPolicy& p) { p.maximum_interval = 1s; }).empty());
}

TEST_CASE("which failures are final") {
  CHECK(judged(Failure{}) == RetryState::in_progress);
  CHECK(judged(application_failure()) == RetryState::in_progress);
  CHECK(judged(timeout(TimeoutType::start_to_close)) == RetryState::in_progress);
  CHECK(judged(timeout(TimeoutType::heartbeat)) == RetryState::in_progress);
  CHECK(judged(timeout(TimeoutType::schedule_to_close)) == RetryState::non_retryable_failure);
  CHECK(judged(timeout(TimeoutType::schedule_to_start)) == RetryState::non_retryable_failure);

  Failure failure;
  failure.terminated_failure_info.emplace();
  CHECK(judged(failure) == RetryState::non_retryable_failure);
  failure = {};
  failure.canceled_failure_info.emplace();
  CHECK(judged(failure) == RetryState::non_retryable_failure);
  failure = {};
  failure.server_failure_info.emplace();
  CHECK(judged(failure) == RetryState::in_progress);
  failure.server_failure_info->non_retryable = true;
  CHECK(judged(failure) == RetryState::non_retryable_failure);
  failure = application_failure();
  failure.application_failure_info->non_retryable = true;
  CHECK(judged(failure) == RetryState::non_retryable_failure);
}

TEST_CASE("a failure of a listed type is final, and no other") {
  RetryPolicy policy = with_defaults({});
  policy.non_retryable_error_types = {"OutOfMemory", "BadInput"};
  CHECK(judged(application_failure("BadInput"), policy) == RetryState::non_retryable_failure);
  CHECK(judged(application_failure("Bad"), policy) == RetryState::in_progress);
}

TEST_CASE("the waits between attempts grow up to the longest") {
  RetryPolicy policy = with_defaults({});
  policy.maximum_interval = 10s;
  const auto wait = [&](std::int32_t attempt) {
    return judge_retry(policy, attempt, Failure{}, now, never).wait;
  };
  CHECK(wait(1) == 1s);
  CHECK(wait(2) == 2s);
  CHECK(wait(4) == 8s);
  CHECK(wait(5) == 10s);
  CHECK(wait(2'000'000'000) == 10s);  // 2 to that power is no number any more
}

TEST_CASE("a failure may ask for its own wait") {
  Failure failure = application_failure();
  failure.application_failure_info->next_retry_delay = 42s;
  CHECK(judge_retry(with_defaults({}), 1, failure, now, never).wait == 42s);
}

TEST_CASE("attempts end with their number, or when the next would start too late") {
  RetryPolicy policy = with_defaults({});
  policy.maximum_attempts = 3;
  CHECK(judge_retry(policy, 2, Failure{}, now, never).state == RetryState::in_progress);
  CHECK(judge_retry(policy, 3, Failure{}, now, never).state ==
        RetryState::maximum_attempts_reached);
  CHECK(judge_retry(policy, 1, Failure{}, now, now + 1s).state == RetryState::in_progress);
  CHECK(judge_retry(policy, 1, Failure{}, now, now + 1s - 1us).state == RetryState::timeout);
}

}  // namespace
}  // namespace permit::core
