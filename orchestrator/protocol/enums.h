// Temporal's enumerations. The numbers are theirs and on disk; never renumber. On the wire an
// enumerator is its full name: the type's name and the enumerator's in UPPER_SNAKE.
#pragma once

#include <boost/describe.hpp>

namespace permit {

enum class WorkflowIdReusePolicy {
  unspecified = 0,
  allow_duplicate = 1,
  allow_duplicate_failed_only = 2,
  reject_duplicate = 3,
  terminate_if_running = 4,
};
BOOST_DESCRIBE_ENUM(WorkflowIdReusePolicy, unspecified, allow_duplicate,
                    allow_duplicate_failed_only, reject_duplicate, terminate_if_running)

enum class WorkflowIdConflictPolicy {
  unspecified = 0,
  fail = 1,
  use_existing = 2,
  terminate_existing = 3,
};
BOOST_DESCRIBE_ENUM(WorkflowIdConflictPolicy, unspecified, fail, use_existing, terminate_existing)

enum class ParentClosePolicy { unspecified = 0, terminate = 1, abandon = 2, request_cancel = 3 };
BOOST_DESCRIBE_ENUM(ParentClosePolicy, unspecified, terminate, abandon, request_cancel)

enum class ContinueAsNewInitiator { unspecified = 0, workflow = 1, retry = 2, cron_schedule = 3 };
BOOST_DESCRIBE_ENUM(ContinueAsNewInitiator, unspecified, workflow, retry, cron_schedule)

enum class WorkflowExecutionStatus {
  unspecified = 0,
  running = 1,
  completed = 2,
  failed = 3,
  canceled = 4,
  terminated = 5,
  continued_as_new = 6,
  timed_out = 7,
};
BOOST_DESCRIBE_ENUM(WorkflowExecutionStatus, unspecified, running, completed, failed, canceled,
                    terminated, continued_as_new, timed_out)

enum class PendingActivityState {
  unspecified = 0,
  scheduled = 1,
  started = 2,
  cancel_requested = 3
};
BOOST_DESCRIBE_ENUM(PendingActivityState, unspecified, scheduled, started, cancel_requested)

enum class PendingWorkflowTaskState { unspecified = 0, scheduled = 1, started = 2 };
BOOST_DESCRIBE_ENUM(PendingWorkflowTaskState, unspecified, scheduled, started)

enum class HistoryEventFilterType { unspecified = 0, all_event = 1, close_event = 2 };
BOOST_DESCRIBE_ENUM(HistoryEventFilterType, unspecified, all_event, close_event)

enum class RetryState {
  unspecified = 0,
  in_progress = 1,
  non_retryable_failure = 2,
  timeout = 3,
  maximum_attempts_reached = 4,
  retry_policy_not_set = 5,
  internal_server_error = 6,
  cancel_requested = 7,
};
BOOST_DESCRIBE_ENUM(RetryState, unspecified, in_progress, non_retryable_failure, timeout,
                    maximum_attempts_reached, retry_policy_not_set, internal_server_error,
                    cancel_requested)

enum class TimeoutType {
  unspecified = 0,
  start_to_close = 1,
  schedule_to_start = 2,
  schedule_to_close = 3,
  heartbeat = 4,
};
BOOST_DESCRIBE_ENUM(TimeoutType, unspecified, start_to_close, schedule_to_start, schedule_to_close,
                    heartbeat)

enum class TaskQueueKind { unspecified = 0, normal = 1, sticky = 2 };
BOOST_DESCRIBE_ENUM(TaskQueueKind, unspecified, normal, sticky)

enum class TaskQueueType { unspecified = 0, workflow = 1, activity = 2 };
BOOST_DESCRIBE_ENUM(TaskQueueType, unspecified, workflow, activity)

enum class WorkerStatus { unspecified = 0, running = 1, shutting_down = 2, shutdown = 3 };
BOOST_DESCRIBE_ENUM(WorkerStatus, unspecified, running, shutting_down, shutdown)

enum class QueryResultType { unspecified = 0, answered = 1, failed = 2 };
BOOST_DESCRIBE_ENUM(QueryResultType, unspecified, answered, failed)

enum class QueryRejectCondition {
  unspecified = 0,
  none = 1,
  not_open = 2,
  not_completed_cleanly = 3,
};
BOOST_DESCRIBE_ENUM(QueryRejectCondition, unspecified, none, not_open, not_completed_cleanly)

enum class WorkflowTaskFailedCause {
  unspecified = 0,
  unhandled_command = 1,
  bad_schedule_activity_attributes = 2,
  bad_request_cancel_activity_attributes = 3,
  bad_start_timer_attributes = 4,
  bad_cancel_timer_attributes = 5,
  bad_record_marker_attributes = 6,
  bad_complete_workflow_execution_attributes = 7,
  bad_fail_workflow_execution_attributes = 8,
  bad_cancel_workflow_execution_attributes = 9,
  bad_request_cancel_external_workflow_execution_attributes = 10,
  bad_continue_as_new_attributes = 11,
  start_timer_duplicate_id = 12,
  reset_sticky_task_queue = 13,
  workflow_worker_unhandled_failure = 14,
  bad_signal_workflow_execution_attributes = 15,
  bad_start_child_execution_attributes = 16,
  force_close_command = 17,
  failover_close_command = 18,
  bad_signal_input_size = 19,
  reset_workflow = 20,
  bad_binary = 21,
  schedule_activity_duplicate_id = 22,
  bad_search_attributes = 23,
  non_deterministic_error = 24,
  bad_modify_workflow_properties_attributes = 25,
  pending_child_workflows_limit_exceeded = 26,
  pending_activities_limit_exceeded = 27,
  pending_signals_limit_exceeded = 28,
  pending_request_cancel_limit_exceeded = 29,
  grpc_message_too_large = 36,
  payloads_too_large = 37,
};
BOOST_DESCRIBE_ENUM(
    WorkflowTaskFailedCause, unspecified, unhandled_command, bad_schedule_activity_attributes,
    bad_request_cancel_activity_attributes, bad_start_timer_attributes, bad_cancel_timer_attributes,
    bad_record_marker_attributes, bad_complete_workflow_execution_attributes,
    bad_fail_workflow_execution_attributes, bad_cancel_workflow_execution_attributes,
    bad_request_cancel_external_workflow_execution_attributes, bad_continue_as_new_attributes,
    start_timer_duplicate_id, reset_sticky_task_queue, workflow_worker_unhandled_failure,
    bad_signal_workflow_execution_attributes, bad_start_child_execution_attributes,
    force_close_command, failover_close_command, bad_signal_input_size, reset_workflow, bad_binary,
    schedule_activity_duplicate_id, bad_search_attributes, non_deterministic_error,
    bad_modify_workflow_properties_attributes, pending_child_workflows_limit_exceeded,
    pending_activities_limit_exceeded, pending_signals_limit_exceeded,
    pending_request_cancel_limit_exceeded, grpc_message_too_large, payloads_too_large)

enum class StartChildWorkflowExecutionFailedCause {
  unspecified = 0,
  workflow_already_exists = 1,
  namespace_not_found = 2,
};
BOOST_DESCRIBE_ENUM(StartChildWorkflowExecutionFailedCause, unspecified, workflow_already_exists,
                    namespace_not_found)

enum class SignalExternalWorkflowExecutionFailedCause {
  unspecified = 0,
  external_workflow_execution_not_found = 1,
  namespace_not_found = 2,
  signal_count_limit_exceeded = 3,
};
BOOST_DESCRIBE_ENUM(SignalExternalWorkflowExecutionFailedCause, unspecified,
                    external_workflow_execution_not_found, namespace_not_found,
                    signal_count_limit_exceeded)

enum class CancelExternalWorkflowExecutionFailedCause {
  unspecified = 0,
  external_workflow_execution_not_found = 1,
  namespace_not_found = 2,
};
BOOST_DESCRIBE_ENUM(CancelExternalWorkflowExecutionFailedCause, unspecified,
                    external_workflow_execution_not_found, namespace_not_found)

enum class NamespaceState { unspecified = 0, registered = 1, deprecated = 2, deleted = 3 };
BOOST_DESCRIBE_ENUM(NamespaceState, unspecified, registered, deprecated, deleted)

}  // namespace permit
