#include "orchestrator/core/activity_transitions.h"

#include <algorithm>
#include <functional>

#include "orchestrator/core/retry_policy.h"
#include "orchestrator/protocol/ensure.h"
#include "orchestrator/protocol/error.h"

namespace permit::core {

namespace {

using namespace event;

ActivityState& pending(Transition& run, ActivityRef ref) {
  const auto found = run.state().activities.find(ref.scheduled_event_id);
  ENSURE(found != run.state().activities.end() && !found->second.closed);
  return found->second;
}

Time deadline_of(const ActivityState& activity) {
  const Duration timeout = activity.scheduled.schedule_to_close_timeout;
  return timeout.count() > 0 ? activity.scheduled_time + timeout : never;
}

// History hears of the last attempt's start just before its end. While a worker has the workflow
// task both are buffered. Returns the id the close refers to; 0 if it is not known yet.
std::int64_t write_started(Transition& run, ActivityRef ref, const ActivityState& activity) {
  const ActivityAttempt& attempt = activity.attempt;
  if (!is_set(attempt.started_time)) return 0;
  ActivityTaskStarted started;
  started.scheduled_event_id = ref.scheduled_event_id;
  started.identity = attempt.identity;
  started.attempt = attempt.attempt;
  started.last_failure = attempt.last_failure;
  const bool buffered = run.state().task_started();
  const std::int64_t id = buffered ? 0 : run.state().next_event_id;
  run.receive_at(attempt.started_time, std::move(started));
  return id;
}

Ended retry_or(Transition& run, ActivityRef ref, const Failure& failure,
               const std::function<void(RetryState)>& close) {
  ActivityState& activity = pending(run, ref);
  const RetryPolicy policy = with_defaults(activity.scheduled.retry_policy);
  RetryVerdict verdict =
      judge_retry(policy, activity.attempt.attempt, failure, run.now(), deadline_of(activity));
  if (verdict.state == RetryState::in_progress && activity.cancel_requested_event_id != 0) {
    verdict.state = RetryState::cancel_requested;
  }
  if (verdict.state != RetryState::in_progress) {
    close(verdict.state);
    return Ended::closed;
  }
  ActivityAttempt next;
  next.attempt = activity.attempt.attempt + 1;
  next.scheduled_time = run.now() + verdict.wait;
  next.waits_for_retry = true;
  next.identity = activity.attempt.identity;
  next.last_heartbeat_time = activity.attempt.last_heartbeat_time;
  next.heartbeat_details = activity.attempt.heartbeat_details;
  next.last_failure = failure;
  next.last_complete_time = run.now();
  activity.attempt = std::move(next);
  run.changed_activity(ref.scheduled_event_id);
  return Ended::will_retry;
}

Failure timeout_failure(const ActivityState& activity, TimeoutType type) {
  static const char* const names[] = {"", "StartToClose", "ScheduleToStart", "ScheduleToClose",
                                      "Heartbeat"};
  Failure failure;
  failure.message = std::string("activity ") + names[static_cast<int>(type)] + " timeout";
  failure.source = "Server";
  failure.timeout_failure_info = TimeoutFailureInfo{type, activity.attempt.heartbeat_details};
  return failure;
}

// Which of the timeouts has been reached first.
TimeoutType expired_timeout(const ActivityState& activity) {
  const Time due = activity_due(activity);
  if (due == deadline_of(activity)) return TimeoutType::schedule_to_close;
  if (!is_set(activity.attempt.started_time)) return TimeoutType::schedule_to_start;
  // Never zero: who gives none gets schedule-to-close for it.
  const Duration start_to_close = activity.scheduled.start_to_close_timeout;
  if (due == activity.attempt.started_time + start_to_close) return TimeoutType::start_to_close;
  return TimeoutType::heartbeat;
}

}  // namespace

void start_activity(Transition& run, ActivityRef ref, std::string identity, std::int64_t nonce) {
  ActivityState& activity = pending(run, ref);
  ENSURE(!is_set(activity.attempt.started_time) && !activity.attempt.waits_for_retry);
  activity.attempt.started_time = run.now();
  activity.attempt.identity = std::move(identity);
  activity.attempt.nonce = nonce;
  run.changed_activity(ref.scheduled_event_id);
}

void complete_activity(Transition& run, ActivityRef ref, std::optional<Payloads> result,
                       std::string identity) {
  const std::int64_t started = write_started(run, ref, pending(run, ref));
  run.receive(ActivityTaskCompleted{std::move(result), ref.scheduled_event_id, started,
                                    std::move(identity)});
}

Ended fail_activity(Transition& run, ActivityRef ref, Failure failure, std::string identity) {
  return retry_or(run, ref, failure, [&](RetryState state) {
    const std::int64_t started = write_started(run, ref, pending(run, ref));
    run.receive(
        ActivityTaskFailed{failure, ref.scheduled_event_id, started, std::move(identity), state});
  });
}

void cancel_activity(Transition& run, ActivityRef ref, std::optional<Payloads> details,
                     std::string identity) {
  const ActivityState& activity = pending(run, ref);
  const std::int64_t requested = activity.cancel_requested_event_id;
  if (requested == 0) {
    throw invalid_argument("CANCEL_NOT_REQUESTED",
                           "the workflow did not ask for this activity's cancellation");
  }
  const std::int64_t started = write_started(run, ref, activity);
  run.receive(ActivityTaskCanceled{std::move(details), requested, ref.scheduled_event_id, started,
                                   std::move(identity)});
}

bool heartbeat_activity(Transition& run, ActivityRef ref, std::optional<Payloads> details) {
  ActivityState& activity = pending(run, ref);
  activity.attempt.last_heartbeat_time = run.now();
  activity.attempt.heartbeat_details = std::move(details);
  run.changed_activity(ref.scheduled_event_id);
  if (!activity.scheduled.permit_run_id.empty()) {
    run.send(RenewPermit{activity.scheduled.permit_run_id, run.state().number});
  }
  return activity.cancel_requested_event_id != 0;
}

Ended time_out_activity(Transition& run, ActivityRef ref) {
  const ActivityState& activity = pending(run, ref);
  const TimeoutType type = expired_timeout(activity);
  if (type == TimeoutType::heartbeat) run.note_silent(activity.scheduled);
  const Failure failure = timeout_failure(activity, type);
  return retry_or(run, ref, failure, [&](RetryState state) {
    const ActivityState& last = pending(run, ref);
    Failure final_failure = failure;
    if (state == RetryState::timeout) {
      // No time is left for another attempt: that, and why the last one ended.
      final_failure = timeout_failure(last, TimeoutType::schedule_to_close);
      final_failure.cause = Box<Failure>(failure);
    } else if (last.attempt.last_failure && type == TimeoutType::schedule_to_close) {
      final_failure.cause = Box<Failure>(*last.attempt.last_failure);
    }
    const std::int64_t started = write_started(run, ref, last);
    run.receive(
        ActivityTaskTimedOut{std::move(final_failure), ref.scheduled_event_id, started, state});
  });
}

}  // namespace permit::core
