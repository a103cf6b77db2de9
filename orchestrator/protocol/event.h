// What happened: one plain struct per history event, Temporal's names and fields (comments say what
// is ours). The text of an event is on disk: fields may be added, never renamed or reused.
#pragma once

#include <boost/describe.hpp>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "orchestrator/protocol/common.h"

namespace permit {

struct SdkMetadata {
  std::vector<std::int32_t> core_used_flags;
  std::vector<std::int32_t> lang_used_flags;
  std::string sdk_name;
  std::string sdk_version;
};
BOOST_DESCRIBE_STRUCT(SdkMetadata, (), (core_used_flags, lang_used_flags, sdk_name, sdk_version))

namespace event {

// Ours, beside Temporal's: `request_id` that made the run, `parent_close_policy`, and for a permit
// what was asked for and what was granted.
struct WorkflowExecutionStarted {
  static constexpr std::string_view name = "WorkflowExecutionStarted";
  WorkflowType workflow_type;
  std::string parent_workflow_namespace;
  std::optional<WorkflowExecution> parent_workflow_execution;
  std::int64_t parent_initiated_event_id = 0;
  TaskQueue task_queue;
  std::optional<Payloads> input;
  Duration workflow_execution_timeout{};
  Duration workflow_run_timeout{};
  Duration workflow_task_timeout{};
  RunId continued_execution_run_id;
  ContinueAsNewInitiator initiator = ContinueAsNewInitiator::unspecified;
  std::optional<Failure> continued_failure;
  std::optional<Payloads> last_completion_result;
  RunId original_execution_run_id;
  std::string identity;
  RunId first_execution_run_id;
  std::int32_t attempt = 0;
  Time workflow_execution_expiration_time{};
  std::optional<Memo> memo;
  std::optional<SearchAttributes> search_attributes;
  std::optional<Header> header;
  WorkflowId workflow_id;
  std::optional<WorkflowExecution> root_workflow_execution;
  std::optional<Priority> priority;
  std::string request_id;
  ParentClosePolicy parent_close_policy = ParentClosePolicy::unspecified;
  std::optional<PermitRequest> permit_request;
  std::optional<PermitGrant> permit;
};
BOOST_DESCRIBE_STRUCT(WorkflowExecutionStarted, (),
                      (workflow_type, parent_workflow_namespace, parent_workflow_execution,
                       parent_initiated_event_id, task_queue, input, workflow_execution_timeout,
                       workflow_run_timeout, workflow_task_timeout, continued_execution_run_id,
                       initiator, continued_failure, last_completion_result,
                       original_execution_run_id, identity, first_execution_run_id, attempt,
                       workflow_execution_expiration_time, memo, search_attributes, header,
                       workflow_id, root_workflow_execution, priority, request_id,
                       parent_close_policy, permit_request, permit))

struct WorkflowExecutionCompleted {
  static constexpr std::string_view name = "WorkflowExecutionCompleted";
  std::optional<Payloads> result;
  std::int64_t workflow_task_completed_event_id = 0;
  RunId new_execution_run_id;
};
BOOST_DESCRIBE_STRUCT(WorkflowExecutionCompleted, (),
                      (result, workflow_task_completed_event_id, new_execution_run_id))

struct WorkflowExecutionFailed {
  static constexpr std::string_view name = "WorkflowExecutionFailed";
  std::optional<Failure> failure;
  RetryState retry_state = RetryState::unspecified;
  std::int64_t workflow_task_completed_event_id = 0;
  RunId new_execution_run_id;
};
BOOST_DESCRIBE_STRUCT(WorkflowExecutionFailed, (),
                      (failure, retry_state, workflow_task_completed_event_id,
                       new_execution_run_id))

struct WorkflowExecutionTimedOut {
  static constexpr std::string_view name = "WorkflowExecutionTimedOut";
  RetryState retry_state = RetryState::unspecified;
  RunId new_execution_run_id;
};
BOOST_DESCRIBE_STRUCT(WorkflowExecutionTimedOut, (), (retry_state, new_execution_run_id))

struct WorkflowExecutionContinuedAsNew {
  static constexpr std::string_view name = "WorkflowExecutionContinuedAsNew";
  RunId new_execution_run_id;
  WorkflowType workflow_type;
  TaskQueue task_queue;
  std::optional<Payloads> input;
  Duration workflow_run_timeout{};
  Duration workflow_task_timeout{};
  std::int64_t workflow_task_completed_event_id = 0;
  Duration backoff_start_interval{};
  ContinueAsNewInitiator initiator = ContinueAsNewInitiator::unspecified;
  std::optional<Failure> failure;
  std::optional<Payloads> last_completion_result;
  std::optional<Header> header;
  std::optional<Memo> memo;
  std::optional<SearchAttributes> search_attributes;
};
BOOST_DESCRIBE_STRUCT(WorkflowExecutionContinuedAsNew, (),
                      (new_execution_run_id, workflow_type, task_queue, input, workflow_run_timeout,
                       workflow_task_timeout, workflow_task_completed_event_id,
                       backoff_start_interval, initiator, failure, last_completion_result, header,
                       memo, search_attributes))

struct WorkflowTaskScheduled {
  static constexpr std::string_view name = "WorkflowTaskScheduled";
  TaskQueue task_queue;
  Duration start_to_close_timeout{};
  std::int32_t attempt = 0;
};
BOOST_DESCRIBE_STRUCT(WorkflowTaskScheduled, (), (task_queue, start_to_close_timeout, attempt))

struct WorkflowTaskStarted {
  static constexpr std::string_view name = "WorkflowTaskStarted";
  std::int64_t scheduled_event_id = 0;
  std::string identity;
  std::string request_id;
  bool suggest_continue_as_new = false;
  std::int64_t history_size_bytes = 0;
};
BOOST_DESCRIBE_STRUCT(WorkflowTaskStarted, (),
                      (scheduled_event_id, identity, request_id, suggest_continue_as_new,
                       history_size_bytes))

struct WorkflowTaskCompleted {
  static constexpr std::string_view name = "WorkflowTaskCompleted";
  std::int64_t scheduled_event_id = 0;
  std::int64_t started_event_id = 0;
  std::string identity;
  std::optional<SdkMetadata> sdk_metadata;
};
BOOST_DESCRIBE_STRUCT(WorkflowTaskCompleted, (),
                      (scheduled_event_id, started_event_id, identity, sdk_metadata))

struct WorkflowTaskTimedOut {
  static constexpr std::string_view name = "WorkflowTaskTimedOut";
  std::int64_t scheduled_event_id = 0;
  std::int64_t started_event_id = 0;
  TimeoutType timeout_type = TimeoutType::unspecified;
};
BOOST_DESCRIBE_STRUCT(WorkflowTaskTimedOut, (),
                      (scheduled_event_id, started_event_id, timeout_type))

struct WorkflowTaskFailed {
  static constexpr std::string_view name = "WorkflowTaskFailed";
  std::int64_t scheduled_event_id = 0;
  std::int64_t started_event_id = 0;
  WorkflowTaskFailedCause cause = WorkflowTaskFailedCause::unspecified;
  std::optional<Failure> failure;
  std::string identity;
};
BOOST_DESCRIBE_STRUCT(WorkflowTaskFailed, (),
                      (scheduled_event_id, started_event_id, cause, failure, identity))

// Ours: `permit_run_id`, the permit under which the activity runs; its heartbeats renew that
// permit.
struct ActivityTaskScheduled {
  static constexpr std::string_view name = "ActivityTaskScheduled";
  std::string activity_id;
  ActivityType activity_type;
  TaskQueue task_queue;
  std::optional<Header> header;
  std::optional<Payloads> input;
  Duration schedule_to_close_timeout{};
  Duration schedule_to_start_timeout{};
  Duration start_to_close_timeout{};
  Duration heartbeat_timeout{};
  std::int64_t workflow_task_completed_event_id = 0;
  std::optional<RetryPolicy> retry_policy;
  std::optional<Priority> priority;
  RunId permit_run_id;
};
BOOST_DESCRIBE_STRUCT(ActivityTaskScheduled, (),
                      (activity_id, activity_type, task_queue, header, input,
                       schedule_to_close_timeout, schedule_to_start_timeout, start_to_close_timeout,
                       heartbeat_timeout, workflow_task_completed_event_id, retry_policy, priority,
                       permit_run_id))

// Written only when the activity closes, with its final attempt.
struct ActivityTaskStarted {
  static constexpr std::string_view name = "ActivityTaskStarted";
  std::int64_t scheduled_event_id = 0;
  std::string identity;
  std::string request_id;
  std::int32_t attempt = 0;
  std::optional<Failure> last_failure;
};
BOOST_DESCRIBE_STRUCT(ActivityTaskStarted, (),
                      (scheduled_event_id, identity, request_id, attempt, last_failure))

struct ActivityTaskCompleted {
  static constexpr std::string_view name = "ActivityTaskCompleted";
  std::optional<Payloads> result;
  std::int64_t scheduled_event_id = 0;
  std::int64_t started_event_id = 0;
  std::string identity;
};
BOOST_DESCRIBE_STRUCT(ActivityTaskCompleted, (),
                      (result, scheduled_event_id, started_event_id, identity))

struct ActivityTaskFailed {
  static constexpr std::string_view name = "ActivityTaskFailed";
  std::optional<Failure> failure;
  std::int64_t scheduled_event_id = 0;
  std::int64_t started_event_id = 0;
  std::string identity;
  RetryState retry_state = RetryState::unspecified;
};
BOOST_DESCRIBE_STRUCT(ActivityTaskFailed, (),
                      (failure, scheduled_event_id, started_event_id, identity, retry_state))

struct ActivityTaskTimedOut {
  static constexpr std::string_view name = "ActivityTaskTimedOut";
  std::optional<Failure> failure;
  std::int64_t scheduled_event_id = 0;
  std::int64_t started_event_id = 0;
  RetryState retry_state = RetryState::unspecified;
};
BOOST_DESCRIBE_STRUCT(ActivityTaskTimedOut, (),
                      (failure, scheduled_event_id, started_event_id, retry_state))

struct ActivityTaskCancelRequested {
  static constexpr std::string_view name = "ActivityTaskCancelRequested";
  std::int64_t scheduled_event_id = 0;
  std::int64_t workflow_task_completed_event_id = 0;
};
BOOST_DESCRIBE_STRUCT(ActivityTaskCancelRequested, (),
                      (scheduled_event_id, workflow_task_completed_event_id))

struct ActivityTaskCanceled {
  static constexpr std::string_view name = "ActivityTaskCanceled";
  std::optional<Payloads> details;
  std::int64_t latest_cancel_requested_event_id = 0;
  std::int64_t scheduled_event_id = 0;
  std::int64_t started_event_id = 0;
  std::string identity;
};
BOOST_DESCRIBE_STRUCT(ActivityTaskCanceled, (),
                      (details, latest_cancel_requested_event_id, scheduled_event_id,
                       started_event_id, identity))

// Ours: `wake_on_pool`, a sleeper that the server may wake early when that pool has a free slot.
struct TimerStarted {
  static constexpr std::string_view name = "TimerStarted";
  std::string timer_id;
  Duration start_to_fire_timeout{};
  std::int64_t workflow_task_completed_event_id = 0;
  PoolName wake_on_pool;
};
BOOST_DESCRIBE_STRUCT(TimerStarted, (),
                      (timer_id, start_to_fire_timeout, workflow_task_completed_event_id,
                       wake_on_pool))

struct TimerFired {
  static constexpr std::string_view name = "TimerFired";
  std::string timer_id;
  std::int64_t started_event_id = 0;
};
BOOST_DESCRIBE_STRUCT(TimerFired, (), (timer_id, started_event_id))

struct TimerCanceled {
  static constexpr std::string_view name = "TimerCanceled";
  std::string timer_id;
  std::int64_t started_event_id = 0;
  std::int64_t workflow_task_completed_event_id = 0;
  std::string identity;
};
BOOST_DESCRIBE_STRUCT(TimerCanceled, (),
                      (timer_id, started_event_id, workflow_task_completed_event_id, identity))

struct WorkflowExecutionCancelRequested {
  static constexpr std::string_view name = "WorkflowExecutionCancelRequested";
  std::string cause;
  std::int64_t external_initiated_event_id = 0;
  std::optional<WorkflowExecution> external_workflow_execution;
  std::string identity;
  std::string request_id;
};
BOOST_DESCRIBE_STRUCT(WorkflowExecutionCancelRequested, (),
                      (cause, external_initiated_event_id, external_workflow_execution, identity,
                       request_id))

struct WorkflowExecutionCanceled {
  static constexpr std::string_view name = "WorkflowExecutionCanceled";
  std::int64_t workflow_task_completed_event_id = 0;
  std::optional<Payloads> details;
};
BOOST_DESCRIBE_STRUCT(WorkflowExecutionCanceled, (), (workflow_task_completed_event_id, details))

struct MarkerRecorded {
  static constexpr std::string_view name = "MarkerRecorded";
  std::string marker_name;
  std::map<std::string, Payloads> details;
  std::int64_t workflow_task_completed_event_id = 0;
  std::optional<Header> header;
  std::optional<Failure> failure;
};
BOOST_DESCRIBE_STRUCT(MarkerRecorded, (),
                      (marker_name, details, workflow_task_completed_event_id, header, failure))

struct WorkflowExecutionSignaled {
  static constexpr std::string_view name = "WorkflowExecutionSignaled";
  std::string signal_name;
  std::optional<Payloads> input;
  std::string identity;
  std::optional<Header> header;
  std::optional<WorkflowExecution> external_workflow_execution;
  std::string request_id;
};
BOOST_DESCRIBE_STRUCT(WorkflowExecutionSignaled, (),
                      (signal_name, input, identity, header, external_workflow_execution,
                       request_id))

// Ours: `parent_close`, how the parent ended if its close policy did this.
struct WorkflowExecutionTerminated {
  static constexpr std::string_view name = "WorkflowExecutionTerminated";
  std::string reason;
  std::optional<Payloads> details;
  std::string identity;
  std::string parent_close;
};
BOOST_DESCRIBE_STRUCT(WorkflowExecutionTerminated, (), (reason, details, identity, parent_close))

struct RequestCancelExternalWorkflowExecutionInitiated {
  static constexpr std::string_view name = "RequestCancelExternalWorkflowExecutionInitiated";
  std::int64_t workflow_task_completed_event_id = 0;
  std::string namespace_;
  std::optional<WorkflowExecution> workflow_execution;
  bool child_workflow_only = false;
  std::string reason;
};
BOOST_DESCRIBE_STRUCT(RequestCancelExternalWorkflowExecutionInitiated, (),
                      (workflow_task_completed_event_id, namespace_, workflow_execution,
                       child_workflow_only, reason))

struct RequestCancelExternalWorkflowExecutionFailed {
  static constexpr std::string_view name = "RequestCancelExternalWorkflowExecutionFailed";
  CancelExternalWorkflowExecutionFailedCause cause =
      CancelExternalWorkflowExecutionFailedCause::unspecified;
  std::int64_t workflow_task_completed_event_id = 0;
  std::string namespace_;
  std::optional<WorkflowExecution> workflow_execution;
  std::int64_t initiated_event_id = 0;
};
BOOST_DESCRIBE_STRUCT(RequestCancelExternalWorkflowExecutionFailed, (),
                      (cause, workflow_task_completed_event_id, namespace_, workflow_execution,
                       initiated_event_id))

struct ExternalWorkflowExecutionCancelRequested {
  static constexpr std::string_view name = "ExternalWorkflowExecutionCancelRequested";
  std::int64_t initiated_event_id = 0;
  std::string namespace_;
  std::optional<WorkflowExecution> workflow_execution;
};
BOOST_DESCRIBE_STRUCT(ExternalWorkflowExecutionCancelRequested, (),
                      (initiated_event_id, namespace_, workflow_execution))

struct SignalExternalWorkflowExecutionInitiated {
  static constexpr std::string_view name = "SignalExternalWorkflowExecutionInitiated";
  std::int64_t workflow_task_completed_event_id = 0;
  std::string namespace_;
  std::optional<WorkflowExecution> workflow_execution;
  std::string signal_name;
  std::optional<Payloads> input;
  bool child_workflow_only = false;
  std::optional<Header> header;
};
BOOST_DESCRIBE_STRUCT(SignalExternalWorkflowExecutionInitiated, (),
                      (workflow_task_completed_event_id, namespace_, workflow_execution,
                       signal_name, input, child_workflow_only, header))

struct SignalExternalWorkflowExecutionFailed {
  static constexpr std::string_view name = "SignalExternalWorkflowExecutionFailed";
  SignalExternalWorkflowExecutionFailedCause cause =
      SignalExternalWorkflowExecutionFailedCause::unspecified;
  std::int64_t workflow_task_completed_event_id = 0;
  std::string namespace_;
  std::optional<WorkflowExecution> workflow_execution;
  std::int64_t initiated_event_id = 0;
};
BOOST_DESCRIBE_STRUCT(SignalExternalWorkflowExecutionFailed, (),
                      (cause, workflow_task_completed_event_id, namespace_, workflow_execution,
                       initiated_event_id))

// Ours: `permit_deadline`, to which a `renew` has moved that of a permit; zero if it came too late.
struct ExternalWorkflowExecutionSignaled {
  static constexpr std::string_view name = "ExternalWorkflowExecutionSignaled";
  std::int64_t initiated_event_id = 0;
  std::string namespace_;
  std::optional<WorkflowExecution> workflow_execution;
  Time permit_deadline{};
};
BOOST_DESCRIBE_STRUCT(ExternalWorkflowExecutionSignaled, (),
                      (initiated_event_id, namespace_, workflow_execution, permit_deadline))

// Ours: `permit`, what was asked for. While it waits, `workflow_id` is "permit:<pool>:?<event id>".
struct StartChildWorkflowExecutionInitiated {
  static constexpr std::string_view name = "StartChildWorkflowExecutionInitiated";
  std::string namespace_;
  WorkflowId workflow_id;
  WorkflowType workflow_type;
  TaskQueue task_queue;
  std::optional<Payloads> input;
  Duration workflow_execution_timeout{};
  Duration workflow_run_timeout{};
  Duration workflow_task_timeout{};
  ParentClosePolicy parent_close_policy = ParentClosePolicy::unspecified;
  std::int64_t workflow_task_completed_event_id = 0;
  WorkflowIdReusePolicy workflow_id_reuse_policy = WorkflowIdReusePolicy::unspecified;
  std::optional<Header> header;
  std::optional<Memo> memo;
  std::optional<SearchAttributes> search_attributes;
  std::optional<Priority> priority;
  std::optional<PermitRequest> permit;
};
BOOST_DESCRIBE_STRUCT(StartChildWorkflowExecutionInitiated, (),
                      (namespace_, workflow_id, workflow_type, task_queue, input,
                       workflow_execution_timeout, workflow_run_timeout, workflow_task_timeout,
                       parent_close_policy, workflow_task_completed_event_id,
                       workflow_id_reuse_policy, header, memo, search_attributes, priority, permit))

struct StartChildWorkflowExecutionFailed {
  static constexpr std::string_view name = "StartChildWorkflowExecutionFailed";
  std::string namespace_;
  WorkflowId workflow_id;
  WorkflowType workflow_type;
  StartChildWorkflowExecutionFailedCause cause =
      StartChildWorkflowExecutionFailedCause::unspecified;
  std::int64_t initiated_event_id = 0;
  std::int64_t workflow_task_completed_event_id = 0;
  std::optional<PermitFailure> permit_failure;
};
BOOST_DESCRIBE_STRUCT(StartChildWorkflowExecutionFailed, (),
                      (namespace_, workflow_id, workflow_type, cause, initiated_event_id,
                       workflow_task_completed_event_id, permit_failure))

// Ours: the grant's `fence` and `deadline`. A request for n slots gets n of these.
struct ChildWorkflowExecutionStarted {
  static constexpr std::string_view name = "ChildWorkflowExecutionStarted";
  std::string namespace_;
  std::int64_t initiated_event_id = 0;
  std::optional<WorkflowExecution> workflow_execution;
  WorkflowType workflow_type;
  std::optional<Header> header;
  Fence fence;
  Time deadline{};
};
BOOST_DESCRIBE_STRUCT(ChildWorkflowExecutionStarted, (),
                      (namespace_, initiated_event_id, workflow_execution, workflow_type, header,
                       fence, deadline))

struct ChildWorkflowExecutionCompleted {
  static constexpr std::string_view name = "ChildWorkflowExecutionCompleted";
  std::optional<Payloads> result;
  std::string namespace_;
  std::optional<WorkflowExecution> workflow_execution;
  WorkflowType workflow_type;
  std::int64_t initiated_event_id = 0;
  std::int64_t started_event_id = 0;
};
BOOST_DESCRIBE_STRUCT(ChildWorkflowExecutionCompleted, (),
                      (result, namespace_, workflow_execution, workflow_type, initiated_event_id,
                       started_event_id))

struct ChildWorkflowExecutionFailed {
  static constexpr std::string_view name = "ChildWorkflowExecutionFailed";
  std::optional<Failure> failure;
  std::string namespace_;
  std::optional<WorkflowExecution> workflow_execution;
  WorkflowType workflow_type;
  std::int64_t initiated_event_id = 0;
  std::int64_t started_event_id = 0;
  RetryState retry_state = RetryState::unspecified;
};
BOOST_DESCRIBE_STRUCT(ChildWorkflowExecutionFailed, (),
                      (failure, namespace_, workflow_execution, workflow_type, initiated_event_id,
                       started_event_id, retry_state))

struct ChildWorkflowExecutionCanceled {
  static constexpr std::string_view name = "ChildWorkflowExecutionCanceled";
  std::optional<Payloads> details;
  std::string namespace_;
  std::optional<WorkflowExecution> workflow_execution;
  WorkflowType workflow_type;
  std::int64_t initiated_event_id = 0;
  std::int64_t started_event_id = 0;
};
BOOST_DESCRIBE_STRUCT(ChildWorkflowExecutionCanceled, (),
                      (details, namespace_, workflow_execution, workflow_type, initiated_event_id,
                       started_event_id))

struct ChildWorkflowExecutionTimedOut {
  static constexpr std::string_view name = "ChildWorkflowExecutionTimedOut";
  std::string namespace_;
  std::optional<WorkflowExecution> workflow_execution;
  WorkflowType workflow_type;
  std::int64_t initiated_event_id = 0;
  std::int64_t started_event_id = 0;
  RetryState retry_state = RetryState::unspecified;
};
BOOST_DESCRIBE_STRUCT(ChildWorkflowExecutionTimedOut, (),
                      (namespace_, workflow_execution, workflow_type, initiated_event_id,
                       started_event_id, retry_state))

struct ChildWorkflowExecutionTerminated {
  static constexpr std::string_view name = "ChildWorkflowExecutionTerminated";
  std::string namespace_;
  std::optional<WorkflowExecution> workflow_execution;
  WorkflowType workflow_type;
  std::int64_t initiated_event_id = 0;
  std::int64_t started_event_id = 0;
};
BOOST_DESCRIBE_STRUCT(ChildWorkflowExecutionTerminated, (),
                      (namespace_, workflow_execution, workflow_type, initiated_event_id,
                       started_event_id))

struct UpsertWorkflowSearchAttributes {
  static constexpr std::string_view name = "UpsertWorkflowSearchAttributes";
  std::int64_t workflow_task_completed_event_id = 0;
  std::optional<SearchAttributes> search_attributes;
};
BOOST_DESCRIBE_STRUCT(UpsertWorkflowSearchAttributes, (),
                      (workflow_task_completed_event_id, search_attributes))

struct WorkflowPropertiesModified {
  static constexpr std::string_view name = "WorkflowPropertiesModified";
  std::int64_t workflow_task_completed_event_id = 0;
  std::optional<Memo> upserted_memo;
};
BOOST_DESCRIBE_STRUCT(WorkflowPropertiesModified, (),
                      (workflow_task_completed_event_id, upserted_memo))

}  // namespace event

using EventVariant = std::variant<
    event::WorkflowExecutionStarted, event::WorkflowExecutionCompleted,
    event::WorkflowExecutionFailed, event::WorkflowExecutionTimedOut,
    event::WorkflowExecutionContinuedAsNew, event::WorkflowTaskScheduled,
    event::WorkflowTaskStarted, event::WorkflowTaskCompleted, event::WorkflowTaskTimedOut,
    event::WorkflowTaskFailed, event::ActivityTaskScheduled, event::ActivityTaskStarted,
    event::ActivityTaskCompleted, event::ActivityTaskFailed, event::ActivityTaskTimedOut,
    event::ActivityTaskCancelRequested, event::ActivityTaskCanceled, event::TimerStarted,
    event::TimerFired, event::TimerCanceled, event::WorkflowExecutionCancelRequested,
    event::WorkflowExecutionCanceled, event::MarkerRecorded, event::WorkflowExecutionSignaled,
    event::WorkflowExecutionTerminated, event::RequestCancelExternalWorkflowExecutionInitiated,
    event::RequestCancelExternalWorkflowExecutionFailed,
    event::ExternalWorkflowExecutionCancelRequested,
    event::SignalExternalWorkflowExecutionInitiated, event::SignalExternalWorkflowExecutionFailed,
    event::ExternalWorkflowExecutionSignaled, event::StartChildWorkflowExecutionInitiated,
    event::StartChildWorkflowExecutionFailed, event::ChildWorkflowExecutionStarted,
    event::ChildWorkflowExecutionCompleted, event::ChildWorkflowExecutionFailed,
    event::ChildWorkflowExecutionCanceled, event::ChildWorkflowExecutionTimedOut,
    event::ChildWorkflowExecutionTerminated, event::UpsertWorkflowSearchAttributes,
    event::WorkflowPropertiesModified>;

// Copied, moved and destroyed in event.cpp alone: for so many types that takes a compiler seconds,
// in every file that would do it.
struct EventAttributes : EventVariant {
  using EventVariant::EventVariant;
  EventAttributes();
  EventAttributes(const EventAttributes&);
  EventAttributes(EventAttributes&&) noexcept;
  EventAttributes& operator=(const EventAttributes&);
  EventAttributes& operator=(EventAttributes&&) noexcept;
  ~EventAttributes();
};

// JSON: {"eventId":"1","eventTime":…,"eventType":"EVENT_TYPE_TIMER_STARTED",
// "timerStartedEventAttributes":{…}}.
struct Event {
  std::int64_t event_id = 0;  // 1..n without gaps; 0 while buffered
  Time event_time{};
  EventAttributes attributes;
  std::optional<UserMetadata> user_metadata;

  template <class T>
  const T* get_if() const {
    return std::get_if<T>(&attributes);
  }
  std::string_view name() const;
};

}  // namespace permit
