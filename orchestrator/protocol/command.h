// What a worker may ask for when it completes a workflow task: Temporal's commands.
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
namespace command {

// Ours: `permit_run_id`, see event::ActivityTaskScheduled.
struct ScheduleActivityTask {
  static constexpr std::string_view name = "ScheduleActivityTask";
  std::string activity_id;
  ActivityType activity_type;
  TaskQueue task_queue;
  std::optional<Header> header;
  std::optional<Payloads> input;
  Duration schedule_to_close_timeout{};
  Duration schedule_to_start_timeout{};
  Duration start_to_close_timeout{};
  Duration heartbeat_timeout{};
  std::optional<RetryPolicy> retry_policy;
  Ignored request_eager_execution{};
  Ignored use_workflow_build_id{};
  std::optional<Priority> priority;
  RunId permit_run_id;
};
BOOST_DESCRIBE_STRUCT(ScheduleActivityTask, (),
                      (activity_id, activity_type, task_queue, header, input,
                       schedule_to_close_timeout, schedule_to_start_timeout, start_to_close_timeout,
                       heartbeat_timeout, retry_policy, request_eager_execution,
                       use_workflow_build_id, priority, permit_run_id))

struct RequestCancelActivityTask {
  static constexpr std::string_view name = "RequestCancelActivityTask";
  std::int64_t scheduled_event_id = 0;
};
BOOST_DESCRIBE_STRUCT(RequestCancelActivityTask, (), (scheduled_event_id))

struct StartTimer {
  static constexpr std::string_view name = "StartTimer";
  std::string timer_id;
  Duration start_to_fire_timeout{};
  PoolName wake_on_pool;
};
BOOST_DESCRIBE_STRUCT(StartTimer, (), (timer_id, start_to_fire_timeout, wake_on_pool))

struct CompleteWorkflowExecution {
  static constexpr std::string_view name = "CompleteWorkflowExecution";
  std::optional<Payloads> result;
};
BOOST_DESCRIBE_STRUCT(CompleteWorkflowExecution, (), (result))

struct FailWorkflowExecution {
  static constexpr std::string_view name = "FailWorkflowExecution";
  std::optional<Failure> failure;
};
BOOST_DESCRIBE_STRUCT(FailWorkflowExecution, (), (failure))

struct CancelTimer {
  static constexpr std::string_view name = "CancelTimer";
  std::string timer_id;
};
BOOST_DESCRIBE_STRUCT(CancelTimer, (), (timer_id))

struct CancelWorkflowExecution {
  static constexpr std::string_view name = "CancelWorkflowExecution";
  std::optional<Payloads> details;
};
BOOST_DESCRIBE_STRUCT(CancelWorkflowExecution, (), (details))

struct RequestCancelExternalWorkflowExecution {
  static constexpr std::string_view name = "RequestCancelExternalWorkflowExecution";
  std::string namespace_;
  WorkflowId workflow_id;
  RunId run_id;
  bool child_workflow_only = false;
  std::string reason;
  Ignored control{};
};
BOOST_DESCRIBE_STRUCT(RequestCancelExternalWorkflowExecution, (),
                      (namespace_, workflow_id, run_id, child_workflow_only, reason, control))

struct RecordMarker {
  static constexpr std::string_view name = "RecordMarker";
  std::string marker_name;
  std::map<std::string, Payloads> details;
  std::optional<Header> header;
  std::optional<Failure> failure;
};
BOOST_DESCRIBE_STRUCT(RecordMarker, (), (marker_name, details, header, failure))

struct ContinueAsNewWorkflowExecution {
  static constexpr std::string_view name = "ContinueAsNewWorkflowExecution";
  WorkflowType workflow_type;
  TaskQueue task_queue;
  std::optional<Payloads> input;
  Duration workflow_run_timeout{};
  Duration workflow_task_timeout{};
  Unsupported backoff_start_interval{};
  Unsupported retry_policy{};
  ContinueAsNewInitiator initiator = ContinueAsNewInitiator::unspecified;
  std::optional<Failure> failure;
  std::optional<Payloads> last_completion_result;
  Unsupported cron_schedule{};
  std::optional<Header> header;
  std::optional<Memo> memo;
  std::optional<SearchAttributes> search_attributes;
  Ignored inherit_build_id{};
  Ignored initial_versioning_behavior{};
};
BOOST_DESCRIBE_STRUCT(ContinueAsNewWorkflowExecution, (),
                      (workflow_type, task_queue, input, workflow_run_timeout,
                       workflow_task_timeout, backoff_start_interval, retry_policy, initiator,
                       failure, last_completion_result, cron_schedule, header, memo,
                       search_attributes, inherit_build_id, initial_versioning_behavior))

// Ours: `permit`. With it the server writes the id, the input and the timeout.
struct StartChildWorkflowExecution {
  static constexpr std::string_view name = "StartChildWorkflowExecution";
  std::string namespace_;
  WorkflowId workflow_id;
  WorkflowType workflow_type;
  TaskQueue task_queue;
  std::optional<Payloads> input;
  Duration workflow_execution_timeout{};
  Duration workflow_run_timeout{};
  Duration workflow_task_timeout{};
  ParentClosePolicy parent_close_policy = ParentClosePolicy::unspecified;
  Ignored control{};
  WorkflowIdReusePolicy workflow_id_reuse_policy = WorkflowIdReusePolicy::unspecified;
  Unsupported retry_policy{};
  Unsupported cron_schedule{};
  std::optional<Header> header;
  std::optional<Memo> memo;
  std::optional<SearchAttributes> search_attributes;
  Ignored inherit_build_id{};
  std::optional<Priority> priority;
  Unsupported versioning_override{};
  std::optional<PermitRequest> permit;
};
BOOST_DESCRIBE_STRUCT(StartChildWorkflowExecution, (),
                      (namespace_, workflow_id, workflow_type, task_queue, input,
                       workflow_execution_timeout, workflow_run_timeout, workflow_task_timeout,
                       parent_close_policy, control, workflow_id_reuse_policy, retry_policy,
                       cron_schedule, header, memo, search_attributes, inherit_build_id, priority,
                       versioning_override, permit))

struct SignalExternalWorkflowExecution {
  static constexpr std::string_view name = "SignalExternalWorkflowExecution";
  std::string namespace_;
  std::optional<WorkflowExecution> execution;
  std::string signal_name;
  std::optional<Payloads> input;
  bool child_workflow_only = false;
  Ignored control{};
  std::optional<Header> header;
};
BOOST_DESCRIBE_STRUCT(SignalExternalWorkflowExecution, (),
                      (namespace_, execution, signal_name, input, child_workflow_only, control,
                       header))

struct UpsertWorkflowSearchAttributes {
  static constexpr std::string_view name = "UpsertWorkflowSearchAttributes";
  std::optional<SearchAttributes> search_attributes;
};
BOOST_DESCRIBE_STRUCT(UpsertWorkflowSearchAttributes, (), (search_attributes))

struct ModifyWorkflowProperties {
  static constexpr std::string_view name = "ModifyWorkflowProperties";
  std::optional<Memo> upserted_memo;
};
BOOST_DESCRIBE_STRUCT(ModifyWorkflowProperties, (), (upserted_memo))

}  // namespace command

using CommandVariant =
    std::variant<command::ScheduleActivityTask, command::RequestCancelActivityTask,
                 command::StartTimer, command::CompleteWorkflowExecution,
                 command::FailWorkflowExecution, command::CancelTimer,
                 command::CancelWorkflowExecution, command::RequestCancelExternalWorkflowExecution,
                 command::RecordMarker, command::ContinueAsNewWorkflowExecution,
                 command::StartChildWorkflowExecution, command::SignalExternalWorkflowExecution,
                 command::UpsertWorkflowSearchAttributes, command::ModifyWorkflowProperties>;

// As EventAttributes: copied, moved and destroyed in command.cpp alone.
struct CommandAttributes : CommandVariant {
  using CommandVariant::CommandVariant;
  CommandAttributes();
  CommandAttributes(const CommandAttributes&);
  CommandAttributes(CommandAttributes&&) noexcept;
  CommandAttributes& operator=(const CommandAttributes&);
  CommandAttributes& operator=(CommandAttributes&&) noexcept;
  ~CommandAttributes();
};

// As many as one completion may carry.
inline constexpr std::size_t commands_max = 10'000;

// JSON: {"commandType":"COMMAND_TYPE_START_TIMER","startTimerCommandAttributes":{…}}.
struct Command {
  CommandAttributes attributes;
  std::optional<UserMetadata> user_metadata;

  std::string_view name() const;
};

}  // namespace permit
