// One request and one response struct per call of Temporal's API, its names and fields. Responses
// that carry history splice stored event text (RawJson) instead of parsing it again.
#pragma once

#include <boost/describe.hpp>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "orchestrator/protocol/command.h"
#include "orchestrator/protocol/common.h"
#include "orchestrator/protocol/event.h"
#include "orchestrator/protocol/worker_info.h"

namespace permit {

// JSON text that is copied to the wire as it is. Write-only.
struct RawJson {
  std::string text;
};

// --- Workflows, as clients use them ---

struct StartWorkflowExecutionRequest {
  std::string namespace_;
  WorkflowId workflow_id;
  WorkflowType workflow_type;
  TaskQueue task_queue;
  std::optional<Payloads> input;
  Duration workflow_execution_timeout{};
  Duration workflow_run_timeout{};
  Duration workflow_task_timeout{};
  std::string identity;
  std::string request_id;
  WorkflowIdReusePolicy workflow_id_reuse_policy = WorkflowIdReusePolicy::unspecified;
  WorkflowIdConflictPolicy workflow_id_conflict_policy = WorkflowIdConflictPolicy::unspecified;
  Unsupported retry_policy{};
  Unsupported cron_schedule{};
  std::optional<Memo> memo;
  Unsupported search_attributes{};
  std::optional<Header> header;
  Unsupported workflow_start_delay{};
  std::optional<UserMetadata> user_metadata;
  Unsupported versioning_override{};
  std::optional<Priority> priority;
  Ignored links{};
  Ignored request_eager_execution{};
  Unsupported continued_failure{};
  Unsupported last_completion_result{};
  Unsupported completion_callbacks{};
  Unsupported on_conflict_options{};
  std::optional<PermitRequest> permit;
};
BOOST_DESCRIBE_STRUCT(StartWorkflowExecutionRequest, (),
                      (namespace_, workflow_id, workflow_type, task_queue, input,
                       workflow_execution_timeout, workflow_run_timeout, workflow_task_timeout,
                       identity, request_id, workflow_id_reuse_policy, workflow_id_conflict_policy,
                       retry_policy, cron_schedule, memo, search_attributes, header,
                       workflow_start_delay, user_metadata, versioning_override, priority, links,
                       request_eager_execution, continued_failure, last_completion_result,
                       completion_callbacks, on_conflict_options, permit))

// Ours, for a permit: the granted id, `fence` and `deadline`.
struct StartWorkflowExecutionResponse {
  RunId run_id;
  RunId first_execution_run_id;
  bool started = false;
  WorkflowExecutionStatus status = WorkflowExecutionStatus::unspecified;
  WorkflowId workflow_id;
  Fence fence;
  Time deadline{};
};
BOOST_DESCRIBE_STRUCT(StartWorkflowExecutionResponse, (),
                      (run_id, first_execution_run_id, started, status, workflow_id, fence,
                       deadline))

struct SignalWorkflowExecutionRequest {
  std::string namespace_;
  WorkflowExecution workflow_execution;
  std::string signal_name;
  std::optional<Payloads> input;
  std::string identity;
  std::string request_id;
  std::optional<Header> header;
  Ignored control{};
  Ignored links{};
};
BOOST_DESCRIBE_STRUCT(SignalWorkflowExecutionRequest, (),
                      (namespace_, workflow_execution, signal_name, input, identity, request_id,
                       header, control, links))

struct SignalWithStartWorkflowExecutionRequest {
  std::string namespace_;
  WorkflowId workflow_id;
  WorkflowType workflow_type;
  TaskQueue task_queue;
  std::optional<Payloads> input;
  Duration workflow_execution_timeout{};
  Duration workflow_run_timeout{};
  Duration workflow_task_timeout{};
  std::string identity;
  std::string request_id;
  WorkflowIdReusePolicy workflow_id_reuse_policy = WorkflowIdReusePolicy::unspecified;
  WorkflowIdConflictPolicy workflow_id_conflict_policy = WorkflowIdConflictPolicy::unspecified;
  Unsupported retry_policy{};
  Unsupported cron_schedule{};
  std::optional<Memo> memo;
  Unsupported search_attributes{};
  std::optional<Header> header;
  Unsupported workflow_start_delay{};
  std::optional<UserMetadata> user_metadata;
  Unsupported versioning_override{};
  std::optional<Priority> priority;
  std::string signal_name;
  std::optional<Payloads> signal_input;
  Ignored control{};
  Ignored links{};
};
BOOST_DESCRIBE_STRUCT(SignalWithStartWorkflowExecutionRequest, (),
                      (namespace_, workflow_id, workflow_type, task_queue, input,
                       workflow_execution_timeout, workflow_run_timeout, workflow_task_timeout,
                       identity, request_id, workflow_id_reuse_policy, workflow_id_conflict_policy,
                       retry_policy, cron_schedule, memo, search_attributes, header,
                       workflow_start_delay, user_metadata, versioning_override, priority,
                       signal_name, signal_input, control, links))

struct SignalWithStartWorkflowExecutionResponse {
  RunId run_id;
  RunId first_execution_run_id;
  bool started = false;
};
BOOST_DESCRIBE_STRUCT(SignalWithStartWorkflowExecutionResponse, (),
                      (run_id, first_execution_run_id, started))

struct RequestCancelWorkflowExecutionRequest {
  std::string namespace_;
  WorkflowExecution workflow_execution;
  std::string identity;
  std::string request_id;
  RunId first_execution_run_id;
  std::string reason;
  Ignored links{};
};
BOOST_DESCRIBE_STRUCT(RequestCancelWorkflowExecutionRequest, (),
                      (namespace_, workflow_execution, identity, request_id, first_execution_run_id,
                       reason, links))

struct TerminateWorkflowExecutionRequest {
  std::string namespace_;
  WorkflowExecution workflow_execution;
  std::string reason;
  std::optional<Payloads> details;
  std::string identity;
  RunId first_execution_run_id;
  Ignored links{};
};
BOOST_DESCRIBE_STRUCT(TerminateWorkflowExecutionRequest, (),
                      (namespace_, workflow_execution, reason, details, identity,
                       first_execution_run_id, links))

struct EmptyResponse {};
BOOST_DESCRIBE_STRUCT(EmptyResponse, (), ())

struct DescribeWorkflowExecutionRequest {
  std::string namespace_;
  WorkflowExecution execution;
};
BOOST_DESCRIBE_STRUCT(DescribeWorkflowExecutionRequest, (), (namespace_, execution))

struct WorkflowExecutionConfig {
  TaskQueue task_queue;
  Duration workflow_execution_timeout{};
  Duration workflow_run_timeout{};
  Duration default_workflow_task_timeout{};
  std::optional<UserMetadata> user_metadata;
};
BOOST_DESCRIBE_STRUCT(WorkflowExecutionConfig, (),
                      (task_queue, workflow_execution_timeout, workflow_run_timeout,
                       default_workflow_task_timeout, user_metadata))

// Ours, for a permit: fence, outcome, cause, deadline.
struct WorkflowExecutionInfo {
  WorkflowExecution execution;
  WorkflowType type;
  Time start_time{};
  Time close_time{};
  WorkflowExecutionStatus status = WorkflowExecutionStatus::unspecified;
  std::int64_t history_length = 0;
  std::optional<WorkflowExecution> parent_execution;
  Time execution_time{};
  std::optional<Memo> memo;
  std::optional<SearchAttributes> search_attributes;
  std::string task_queue;
  std::int64_t state_transition_count = 0;
  std::int64_t history_size_bytes = 0;
  Duration execution_duration{};
  std::optional<WorkflowExecution> root_execution;
  RunId first_run_id;
  std::optional<Priority> priority;
  Fence fence;
  Outcome outcome = Outcome::unspecified;
  std::string cause;
  Time deadline{};
};
BOOST_DESCRIBE_STRUCT(WorkflowExecutionInfo, (),
                      (execution, type, start_time, close_time, status, history_length,
                       parent_execution, execution_time, memo, search_attributes, task_queue,
                       state_transition_count, history_size_bytes, execution_duration,
                       root_execution, first_run_id, priority, fence, outcome, cause, deadline))

struct PendingActivityInfo {
  std::string activity_id;
  ActivityType activity_type;
  PendingActivityState state = PendingActivityState::unspecified;
  std::optional<Payloads> heartbeat_details;
  Time last_heartbeat_time{};
  Time last_started_time{};
  std::int32_t attempt = 0;
  std::int32_t maximum_attempts = 0;
  Time scheduled_time{};
  Time expiration_time{};
  std::optional<Failure> last_failure;
  std::string last_worker_identity;
  Duration current_retry_interval{};
  Time last_attempt_complete_time{};
  Time next_attempt_schedule_time{};
  std::optional<Priority> priority;
};
BOOST_DESCRIBE_STRUCT(PendingActivityInfo, (),
                      (activity_id, activity_type, state, heartbeat_details, last_heartbeat_time,
                       last_started_time, attempt, maximum_attempts, scheduled_time,
                       expiration_time, last_failure, last_worker_identity, current_retry_interval,
                       last_attempt_complete_time, next_attempt_schedule_time, priority))

struct PendingChildExecutionInfo {
  WorkflowId workflow_id;
  RunId run_id;
  std::string workflow_type_name;
  std::int64_t initiated_id = 0;
  ParentClosePolicy parent_close_policy = ParentClosePolicy::unspecified;
};
BOOST_DESCRIBE_STRUCT(PendingChildExecutionInfo, (),
                      (workflow_id, run_id, workflow_type_name, initiated_id, parent_close_policy))

struct PendingWorkflowTaskInfo {
  PendingWorkflowTaskState state = PendingWorkflowTaskState::unspecified;
  Time scheduled_time{};
  Time original_scheduled_time{};
  Time started_time{};
  std::int32_t attempt = 0;
};
BOOST_DESCRIBE_STRUCT(PendingWorkflowTaskInfo, (),
                      (state, scheduled_time, original_scheduled_time, started_time, attempt))

struct WorkflowExecutionExtendedInfo {
  Time execution_expiration_time{};
  Time run_expiration_time{};
  bool cancel_requested = false;
  Time original_start_time{};
};
BOOST_DESCRIBE_STRUCT(WorkflowExecutionExtendedInfo, (),
                      (execution_expiration_time, run_expiration_time, cancel_requested,
                       original_start_time))

struct DescribeWorkflowExecutionResponse {
  WorkflowExecutionConfig execution_config;
  WorkflowExecutionInfo workflow_execution_info;
  std::vector<PendingActivityInfo> pending_activities;
  std::vector<PendingChildExecutionInfo> pending_children;
  std::optional<PendingWorkflowTaskInfo> pending_workflow_task;
  WorkflowExecutionExtendedInfo workflow_extended_info;
};
BOOST_DESCRIBE_STRUCT(DescribeWorkflowExecutionResponse, (),
                      (execution_config, workflow_execution_info, pending_activities,
                       pending_children, pending_workflow_task, workflow_extended_info))

struct GetWorkflowExecutionHistoryRequest {
  std::string namespace_;
  WorkflowExecution execution;
  std::int32_t maximum_page_size = 0;
  Bytes next_page_token;
  bool wait_new_event = false;
  HistoryEventFilterType history_event_filter_type = HistoryEventFilterType::unspecified;
  Ignored skip_archival{};
};
BOOST_DESCRIBE_STRUCT(GetWorkflowExecutionHistoryRequest, (),
                      (namespace_, execution, maximum_page_size, next_page_token, wait_new_event,
                       history_event_filter_type, skip_archival))

// {"events":[…]}, spliced.
struct RawHistory {
  RawJson events;
};
BOOST_DESCRIBE_STRUCT(RawHistory, (), (events))

struct GetWorkflowExecutionHistoryResponse {
  RawHistory history;
  Bytes next_page_token;
};
BOOST_DESCRIBE_STRUCT(GetWorkflowExecutionHistoryResponse, (), (history, next_page_token))

struct ListWorkflowExecutionsRequest {
  std::string namespace_;
  std::int32_t page_size = 0;
  Bytes next_page_token;
  std::string query;
};
BOOST_DESCRIBE_STRUCT(ListWorkflowExecutionsRequest, (),
                      (namespace_, page_size, next_page_token, query))

struct ListWorkflowExecutionsResponse {
  std::vector<WorkflowExecutionInfo> executions;
  Bytes next_page_token;
};
BOOST_DESCRIBE_STRUCT(ListWorkflowExecutionsResponse, (), (executions, next_page_token))

struct CountWorkflowExecutionsRequest {
  std::string namespace_;
  std::string query;
};
BOOST_DESCRIBE_STRUCT(CountWorkflowExecutionsRequest, (), (namespace_, query))

struct CountWorkflowExecutionsResponse {
  std::int64_t count = 0;
};
BOOST_DESCRIBE_STRUCT(CountWorkflowExecutionsResponse, (), (count))

struct WorkflowQuery {
  std::string query_type;
  std::optional<Payloads> query_args;
  std::optional<Header> header;
};
BOOST_DESCRIBE_STRUCT(WorkflowQuery, (), (query_type, query_args, header))

struct QueryWorkflowRequest {
  std::string namespace_;
  WorkflowExecution execution;
  WorkflowQuery query;
  QueryRejectCondition query_reject_condition = QueryRejectCondition::unspecified;
};
BOOST_DESCRIBE_STRUCT(QueryWorkflowRequest, (),
                      (namespace_, execution, query, query_reject_condition))

struct QueryRejected {
  WorkflowExecutionStatus status = WorkflowExecutionStatus::unspecified;
};
BOOST_DESCRIBE_STRUCT(QueryRejected, (), (status))

struct QueryWorkflowResponse {
  std::optional<Payloads> query_result;
  std::optional<QueryRejected> query_rejected;
};
BOOST_DESCRIBE_STRUCT(QueryWorkflowResponse, (), (query_result, query_rejected))

// --- Workers: workflow tasks ---

// Ours: `poll_wait`, how long to wait for a task; 0 means 60 s, more is cut to that.
struct PollWorkflowTaskQueueRequest {
  std::string namespace_;
  TaskQueue task_queue;
  std::string identity;
  Ignored binary_checksum{};
  Ignored worker_version_capabilities{};
  Ignored deployment_options{};
  Ignored worker_instance_key{};
  Ignored worker_control_task_queue{};
  Ignored poller_group_id{};
  Ignored worker_heartbeat{};
  Duration poll_wait{};
};
BOOST_DESCRIBE_STRUCT(PollWorkflowTaskQueueRequest, (),
                      (namespace_, task_queue, identity, binary_checksum,
                       worker_version_capabilities, deployment_options, worker_instance_key,
                       worker_control_task_queue, poller_group_id, worker_heartbeat, poll_wait))

struct PollWorkflowTaskQueueResponse {
  Bytes task_token;
  std::optional<WorkflowExecution> workflow_execution;
  std::optional<WorkflowType> workflow_type;
  std::int64_t previous_started_event_id = 0;
  std::int64_t started_event_id = 0;
  std::int32_t attempt = 0;
  std::int64_t backlog_count_hint = 0;
  std::optional<RawHistory> history;
  Bytes next_page_token;
  std::optional<WorkflowQuery> query;
  std::optional<TaskQueue> workflow_execution_task_queue;
  Time scheduled_time{};
  Time started_time{};
  std::map<std::string, WorkflowQuery> queries;
};
BOOST_DESCRIBE_STRUCT(PollWorkflowTaskQueueResponse, (),
                      (task_token, workflow_execution, workflow_type, previous_started_event_id,
                       started_event_id, attempt, backlog_count_hint, history, next_page_token,
                       query, workflow_execution_task_queue, scheduled_time, started_time, queries))

struct StickyExecutionAttributes {
  TaskQueue worker_task_queue;
  Duration schedule_to_start_timeout{};
};
BOOST_DESCRIBE_STRUCT(StickyExecutionAttributes, (), (worker_task_queue, schedule_to_start_timeout))

struct WorkflowQueryResult {
  QueryResultType result_type = QueryResultType::unspecified;
  std::optional<Payloads> answer;
  std::string error_message;
  std::optional<Failure> failure;
};
BOOST_DESCRIBE_STRUCT(WorkflowQueryResult, (), (result_type, answer, error_message, failure))

struct RespondWorkflowTaskCompletedRequest {
  Bytes task_token;
  std::vector<Command> commands;
  std::string identity;
  std::optional<StickyExecutionAttributes> sticky_attributes;
  bool return_new_workflow_task = false;
  bool force_create_new_workflow_task = false;
  std::map<std::string, WorkflowQueryResult> query_results;
  std::string namespace_;
  Ignored resource_id{};
  Ignored binary_checksum{};
  Ignored worker_version_stamp{};
  Ignored messages{};
  std::optional<SdkMetadata> sdk_metadata;
  Ignored metering_metadata{};
  Ignored capabilities{};
  Ignored versioning_behavior{};
  Ignored deployment_options{};
  Ignored deployment{};
  Ignored worker_instance_key{};
  Ignored worker_control_task_queue{};
};
BOOST_DESCRIBE_STRUCT(RespondWorkflowTaskCompletedRequest, (),
                      (task_token, commands, identity, sticky_attributes, return_new_workflow_task,
                       force_create_new_workflow_task, query_results, namespace_, resource_id,
                       binary_checksum, worker_version_stamp, messages, sdk_metadata,
                       metering_metadata, capabilities, versioning_behavior, deployment_options,
                       deployment, worker_instance_key, worker_control_task_queue))

struct RespondWorkflowTaskCompletedResponse {
  std::optional<PollWorkflowTaskQueueResponse> workflow_task;
};
BOOST_DESCRIBE_STRUCT(RespondWorkflowTaskCompletedResponse, (), (workflow_task))

struct RespondWorkflowTaskFailedRequest {
  Bytes task_token;
  WorkflowTaskFailedCause cause = WorkflowTaskFailedCause::unspecified;
  std::optional<Failure> failure;
  std::string identity;
  std::string namespace_;
  Ignored resource_id{};
  Ignored binary_checksum{};
  Ignored worker_version_stamp{};
  Ignored messages{};
  Ignored deployment_options{};
  Ignored deployment{};
};
BOOST_DESCRIBE_STRUCT(RespondWorkflowTaskFailedRequest, (),
                      (task_token, cause, failure, identity, namespace_, resource_id,
                       binary_checksum, worker_version_stamp, messages, deployment_options,
                       deployment))

struct RespondQueryTaskCompletedRequest {
  Bytes task_token;
  QueryResultType completed_type = QueryResultType::unspecified;
  std::optional<Payloads> query_result;
  std::string error_message;
  std::string namespace_;
  std::optional<Failure> failure;
  WorkflowTaskFailedCause cause = WorkflowTaskFailedCause::unspecified;
  Ignored poller_group_id{};
};
BOOST_DESCRIBE_STRUCT(RespondQueryTaskCompletedRequest, (),
                      (task_token, completed_type, query_result, error_message, namespace_, failure,
                       cause, poller_group_id))

struct ResetStickyTaskQueueRequest {
  std::string namespace_;
  WorkflowExecution execution;
};
BOOST_DESCRIBE_STRUCT(ResetStickyTaskQueueRequest, (), (namespace_, execution))

struct ShutdownWorkerRequest {
  std::string namespace_;
  std::string sticky_task_queue;
  std::string identity;
  std::string reason;
  std::optional<WorkerHeartbeat> worker_heartbeat;
  std::string worker_instance_key;
  Ignored task_queue{};
  Ignored task_queue_types{};
};
BOOST_DESCRIBE_STRUCT(ShutdownWorkerRequest, (),
                      (namespace_, sticky_task_queue, identity, reason, worker_heartbeat,
                       worker_instance_key, task_queue, task_queue_types))

// --- Workers: activity tasks ---

struct PollActivityTaskQueueRequest {
  std::string namespace_;
  TaskQueue task_queue;
  std::string identity;
  Ignored task_queue_metadata{};
  Ignored worker_version_capabilities{};
  Ignored deployment_options{};
  Ignored worker_instance_key{};
  Ignored worker_control_task_queue{};
  Ignored poller_group_id{};
  Ignored worker_heartbeat{};
  Duration poll_wait{};
};
BOOST_DESCRIBE_STRUCT(PollActivityTaskQueueRequest, (),
                      (namespace_, task_queue, identity, task_queue_metadata,
                       worker_version_capabilities, deployment_options, worker_instance_key,
                       worker_control_task_queue, poller_group_id, worker_heartbeat, poll_wait))

struct PollActivityTaskQueueResponse {
  Bytes task_token;
  std::string workflow_namespace;
  std::optional<WorkflowType> workflow_type;
  std::optional<WorkflowExecution> workflow_execution;
  std::optional<ActivityType> activity_type;
  std::string activity_id;
  std::optional<Header> header;
  std::optional<Payloads> input;
  std::optional<Payloads> heartbeat_details;
  Time scheduled_time{};
  Time current_attempt_scheduled_time{};
  Time started_time{};
  std::int32_t attempt = 0;
  Duration schedule_to_close_timeout{};
  Duration start_to_close_timeout{};
  Duration heartbeat_timeout{};
  std::optional<RetryPolicy> retry_policy;
  std::optional<Priority> priority;
};
BOOST_DESCRIBE_STRUCT(PollActivityTaskQueueResponse, (),
                      (task_token, workflow_namespace, workflow_type, workflow_execution,
                       activity_type, activity_id, header, input, heartbeat_details, scheduled_time,
                       current_attempt_scheduled_time, started_time, attempt,
                       schedule_to_close_timeout, start_to_close_timeout, heartbeat_timeout,
                       retry_policy, priority))

struct RecordActivityTaskHeartbeatRequest {
  Bytes task_token;
  std::optional<Payloads> details;
  std::string identity;
  std::string namespace_;
  Ignored resource_id{};
};
BOOST_DESCRIBE_STRUCT(RecordActivityTaskHeartbeatRequest, (),
                      (task_token, details, identity, namespace_, resource_id))

struct RecordActivityTaskHeartbeatByIdRequest {
  std::string namespace_;
  WorkflowId workflow_id;
  RunId run_id;
  std::string activity_id;
  std::optional<Payloads> details;
  std::string identity;
  Ignored resource_id{};
};
BOOST_DESCRIBE_STRUCT(RecordActivityTaskHeartbeatByIdRequest, (),
                      (namespace_, workflow_id, run_id, activity_id, details, identity,
                       resource_id))

// Ours: `permit_deadline`, the deadline of the permit under which the activity runs, as just
// renewed.
struct RecordActivityTaskHeartbeatResponse {
  bool cancel_requested = false;
  Time permit_deadline{};
};
BOOST_DESCRIBE_STRUCT(RecordActivityTaskHeartbeatResponse, (), (cancel_requested, permit_deadline))

struct RespondActivityTaskCompletedRequest {
  Bytes task_token;
  std::optional<Payloads> result;
  std::string identity;
  std::string namespace_;
  Ignored resource_id{};
  Ignored worker_version{};
  Ignored deployment_options{};
  Ignored deployment{};
};
BOOST_DESCRIBE_STRUCT(RespondActivityTaskCompletedRequest, (),
                      (task_token, result, identity, namespace_, resource_id, worker_version,
                       deployment_options, deployment))

struct RespondActivityTaskCompletedByIdRequest {
  std::string namespace_;
  WorkflowId workflow_id;
  RunId run_id;
  std::string activity_id;
  std::optional<Payloads> result;
  std::string identity;
  Ignored resource_id{};
};
BOOST_DESCRIBE_STRUCT(RespondActivityTaskCompletedByIdRequest, (),
                      (namespace_, workflow_id, run_id, activity_id, result, identity, resource_id))

struct RespondActivityTaskFailedRequest {
  Bytes task_token;
  std::optional<Failure> failure;
  std::string identity;
  std::string namespace_;
  Ignored resource_id{};
  std::optional<Payloads> last_heartbeat_details;
  Ignored worker_version{};
  Ignored deployment_options{};
  Ignored deployment{};
};
BOOST_DESCRIBE_STRUCT(RespondActivityTaskFailedRequest, (),
                      (task_token, failure, identity, namespace_, resource_id,
                       last_heartbeat_details, worker_version, deployment_options, deployment))

struct RespondActivityTaskFailedByIdRequest {
  std::string namespace_;
  WorkflowId workflow_id;
  RunId run_id;
  std::string activity_id;
  std::optional<Failure> failure;
  std::string identity;
  std::optional<Payloads> last_heartbeat_details;
  Ignored resource_id{};
};
BOOST_DESCRIBE_STRUCT(RespondActivityTaskFailedByIdRequest, (),
                      (namespace_, workflow_id, run_id, activity_id, failure, identity,
                       last_heartbeat_details, resource_id))

struct RespondActivityTaskCanceledRequest {
  Bytes task_token;
  std::optional<Payloads> details;
  std::string identity;
  std::string namespace_;
  Ignored resource_id{};
  Ignored worker_version{};
  Ignored deployment_options{};
  Ignored deployment{};
};
BOOST_DESCRIBE_STRUCT(RespondActivityTaskCanceledRequest, (),
                      (task_token, details, identity, namespace_, resource_id, worker_version,
                       deployment_options, deployment))

struct RespondActivityTaskCanceledByIdRequest {
  std::string namespace_;
  WorkflowId workflow_id;
  RunId run_id;
  std::string activity_id;
  std::optional<Payloads> details;
  std::string identity;
  Ignored deployment_options{};
  Ignored resource_id{};
};
BOOST_DESCRIBE_STRUCT(RespondActivityTaskCanceledByIdRequest, (),
                      (namespace_, workflow_id, run_id, activity_id, details, identity,
                       deployment_options, resource_id))

// --- Task queues, namespaces, the server ---

struct DescribeTaskQueueRequest {
  std::string namespace_;
  TaskQueue task_queue;
  TaskQueueType task_queue_type = TaskQueueType::unspecified;
  bool report_stats = false;
  Ignored report_config{};
  Ignored include_task_queue_status{};
  Ignored api_mode{};
  Ignored versions{};
  Ignored task_queue_types{};
  Ignored report_pollers{};
  Ignored report_task_reachability{};
};
BOOST_DESCRIBE_STRUCT(DescribeTaskQueueRequest, (),
                      (namespace_, task_queue, task_queue_type, report_stats, report_config,
                       include_task_queue_status, api_mode, versions, task_queue_types,
                       report_pollers, report_task_reachability))

struct PollerInfo {
  Time last_access_time{};
  std::string identity;
};
BOOST_DESCRIBE_STRUCT(PollerInfo, (), (last_access_time, identity))

struct TaskQueueStats {
  std::int64_t approximate_backlog_count = 0;
  Duration approximate_backlog_age{};
  double tasks_add_rate = 0;  // a second, over the last minute
  double tasks_dispatch_rate = 0;
};
BOOST_DESCRIBE_STRUCT(TaskQueueStats, (),
                      (approximate_backlog_count, approximate_backlog_age, tasks_add_rate,
                       tasks_dispatch_rate))

struct DescribeTaskQueueResponse {
  std::vector<PollerInfo> pollers;
  std::optional<TaskQueueStats> stats;
};
BOOST_DESCRIBE_STRUCT(DescribeTaskQueueResponse, (), (pollers, stats))

struct DescribeNamespaceRequest {
  std::string namespace_;
  std::string id;
  Ignored weak_consistency{};
};
BOOST_DESCRIBE_STRUCT(DescribeNamespaceRequest, (), (namespace_, id, weak_consistency))

struct ListNamespacesRequest {
  std::int32_t page_size = 0;
  Bytes next_page_token;
  Ignored namespace_filter{};
};
BOOST_DESCRIBE_STRUCT(ListNamespacesRequest, (), (page_size, next_page_token, namespace_filter))

struct NamespaceLimits {
  std::int64_t blob_size_limit_error = 0;
  std::int64_t memo_size_limit_error = 0;
};
BOOST_DESCRIBE_STRUCT(NamespaceLimits, (), (blob_size_limit_error, memo_size_limit_error))

struct NamespaceCapabilities {
  bool worker_heartbeats = false;
};
BOOST_DESCRIBE_STRUCT(NamespaceCapabilities, (), (worker_heartbeats))

struct NamespaceInfo {
  std::string name;
  NamespaceState state = NamespaceState::unspecified;
  std::string description;
  std::string id;
  NamespaceCapabilities capabilities;
  NamespaceLimits limits;
};
BOOST_DESCRIBE_STRUCT(NamespaceInfo, (), (name, state, description, id, capabilities, limits))

struct NamespaceConfig {
  Duration workflow_execution_retention_ttl{};
};
BOOST_DESCRIBE_STRUCT(NamespaceConfig, (), (workflow_execution_retention_ttl))

struct DescribeNamespaceResponse {
  NamespaceInfo namespace_info;
  NamespaceConfig config;
};
BOOST_DESCRIBE_STRUCT(DescribeNamespaceResponse, (), (namespace_info, config))

struct ListNamespacesResponse {
  std::vector<DescribeNamespaceResponse> namespaces;
  Bytes next_page_token;
};
BOOST_DESCRIBE_STRUCT(ListNamespacesResponse, (), (namespaces, next_page_token))

struct GetSystemInfoRequest {
  Ignored unused{};
};
BOOST_DESCRIBE_STRUCT(GetSystemInfoRequest, (), (unused))

struct SystemCapabilities {
  bool signal_and_query_header = false;
  bool internal_error_differentiation = false;
  bool activity_failure_include_heartbeat = false;
  bool encoded_failure_attributes = false;
  bool upsert_memo = false;
  bool sdk_metadata = false;
};
BOOST_DESCRIBE_STRUCT(SystemCapabilities, (),
                      (signal_and_query_header, internal_error_differentiation,
                       activity_failure_include_heartbeat, encoded_failure_attributes, upsert_memo,
                       sdk_metadata))

struct GetSystemInfoResponse {
  std::string server_version;
  SystemCapabilities capabilities;
};
BOOST_DESCRIBE_STRUCT(GetSystemInfoResponse, (), (server_version, capabilities))

struct GetClusterInfoRequest {
  Ignored unused{};
};
BOOST_DESCRIBE_STRUCT(GetClusterInfoRequest, (), (unused))

struct GetClusterInfoResponse {
  std::string cluster_name;
  std::string server_version;
};
BOOST_DESCRIBE_STRUCT(GetClusterInfoResponse, (), (cluster_name, server_version))

}  // namespace permit
