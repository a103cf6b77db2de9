#include "orchestrator/core/commands.h"

#include <algorithm>
#include <set>

#include "orchestrator/core/retry_policy.h"
#include "orchestrator/core/validate.h"
#include "orchestrator/protocol/ensure.h"
#include "orchestrator/protocol/error.h"

namespace permit::core {

namespace {

using Cause = WorkflowTaskFailedCause;

bool closes(const Command& command) {
  return std::holds_alternative<command::CompleteWorkflowExecution>(command.attributes) ||
         std::holds_alternative<command::FailWorkflowExecution>(command.attributes) ||
         std::holds_alternative<command::CancelWorkflowExecution>(command.attributes) ||
         std::holds_alternative<command::ContinueAsNewWorkflowExecution>(command.attributes);
}

Duration capped(Duration timeout, Duration cap) {
  if (cap.count() == 0) return timeout;
  if (timeout.count() == 0) return cap;
  return std::min(timeout, cap);
}

class Carrier {
 public:
  Carrier(Transition& run, std::int64_t completed_id, const Limits& limits)
      : run_(run), state_(run.state()), completed_id_(completed_id), limits_(limits) {}

  void carry_out(const Command& command) {
    metadata_ = command.user_metadata;
    std::visit(*this, command.attributes);
  }

  void operator()(const command::ScheduleActivityTask& c);
  void operator()(const command::RequestCancelActivityTask& c);
  void operator()(const command::StartTimer& c);
  void operator()(const command::CancelTimer& c);
  void operator()(const command::RecordMarker& c);
  void operator()(const command::CompleteWorkflowExecution& c);
  void operator()(const command::FailWorkflowExecution& c);
  void operator()(const command::CancelWorkflowExecution& c);
  void operator()(const command::ContinueAsNewWorkflowExecution& c);
  void operator()(const command::StartChildWorkflowExecution& given);
  void operator()(const command::SignalExternalWorkflowExecution& c);
  void operator()(const command::RequestCancelExternalWorkflowExecution& c);
  void operator()(const command::UpsertWorkflowSearchAttributes& c);
  void operator()(const command::ModifyWorkflowProperties& c);

 private:
  [[noreturn]] void reject(Cause cause, std::string message) const {
    throw CommandRejected{cause, std::move(message), false};
  }
  void require(bool good, Cause cause, const char* message) const {
    if (!good) reject(cause, message);
  }
  // Runs a check of validate.h; what it finds is this cause.
  template <class Check>
  void checked(Cause cause, Check check) const {
    try {
      check();
    } catch (const Error& error) {
      reject(cause, error.message());
    }
  }
  void check_size(std::size_t bytes, const char* what) const {
    if (bytes <= limits_.payload_bytes_max) return;
    throw CommandRejected{Cause::payloads_too_large,
                          std::string(what) + " is larger than the limit of " +
                              std::to_string(limits_.payload_bytes_max) + " bytes",
                          true};
  }
  void require_nothing_buffered() const {
    require(state_.volatile_state.buffered.empty(), Cause::unhandled_command, "UnhandledCommand");
  }
  void check_permit_child(const command::StartChildWorkflowExecution& c) const;
  void check_search_attributes(const std::optional<SearchAttributes>& attributes) const;
  Sender sender(std::int64_t initiated_event_id) const {
    return {state_.number, state_.execution(), initiated_event_id};
  }

  Transition& run_;
  RunState& state_;
  const std::int64_t completed_id_;
  const Limits& limits_;
  std::optional<UserMetadata> metadata_;
  std::set<WorkflowId> children_started_;  // by this completion
};

void Carrier::operator()(const command::ScheduleActivityTask& c) {
  constexpr Cause bad = Cause::bad_schedule_activity_attributes;
  checked(bad, [&] {
    check_name(c.activity_id, "activityId", limits_);
    check_name(c.activity_type.name, "activityType.name", limits_);
    check_optional_name(c.task_queue.name, "taskQueue.name", limits_);
    check_duration(c.schedule_to_close_timeout, "scheduleToCloseTimeout");
    check_duration(c.schedule_to_start_timeout, "scheduleToStartTimeout");
    check_duration(c.start_to_close_timeout, "startToCloseTimeout");
    check_duration(c.heartbeat_timeout, "heartbeatTimeout");
    check_priority(c.priority);
  });
  require(c.start_to_close_timeout.count() > 0 || c.schedule_to_close_timeout.count() > 0, bad,
          "an activity needs a startToCloseTimeout or a scheduleToCloseTimeout");
  check_size(bytes_of(c.input), "the activity's input");
  if (state_.find_activity(c.activity_id) != nullptr) {
    reject(Cause::schedule_activity_duplicate_id,
           "activity id " + c.activity_id + " is already pending");
  }
  require(state_.activities.size() < limits_.pending_max, Cause::pending_activities_limit_exceeded,
          "the run already has its limit of pending activities");
  const RetryPolicy policy = with_defaults(c.retry_policy);
  if (const auto wrong = flaw(policy)) reject(bad, *wrong);

  const Duration run_timeout = state_.started.workflow_run_timeout;
  event::ActivityTaskScheduled e;
  e.activity_id = c.activity_id;
  e.activity_type = c.activity_type;
  e.task_queue = c.task_queue;
  e.task_queue.kind = TaskQueueKind::normal;
  if (e.task_queue.name.empty()) e.task_queue.name = state_.started.task_queue.name;
  e.header = c.header;
  e.input = c.input;
  e.schedule_to_close_timeout = capped(c.schedule_to_close_timeout, run_timeout);
  e.schedule_to_start_timeout = capped(c.schedule_to_start_timeout, e.schedule_to_close_timeout);
  e.start_to_close_timeout = capped(c.start_to_close_timeout, e.schedule_to_close_timeout);
  e.heartbeat_timeout = std::min(c.heartbeat_timeout, e.start_to_close_timeout);
  e.retry_policy = policy;
  e.priority = c.priority;
  e.permit_run_id = c.permit_run_id;
  e.workflow_task_completed_event_id = completed_id_;
  run_.offer_activity(run_.append(std::move(e), metadata_));
}

void Carrier::operator()(const command::RequestCancelActivityTask& c) {
  const auto found = state_.activities.find(c.scheduled_event_id);
  require(found != state_.activities.end(), Cause::bad_request_cancel_activity_attributes,
          "no pending activity has this scheduledEventId");
  const ActivityState& activity = found->second;
  require(activity.cancel_requested_event_id == 0, Cause::bad_request_cancel_activity_attributes,
          "the activity's cancellation was requested already");
  const bool waits = !is_set(activity.attempt.started_time) && !activity.closed;
  const std::int64_t requested =
      run_.append(event::ActivityTaskCancelRequested{c.scheduled_event_id, completed_id_});
  if (!waits) return;
  event::ActivityTaskCanceled canceled;
  canceled.details = json_payloads("\"ACTIVITY_ID_NOT_STARTED\"");
  canceled.latest_cancel_requested_event_id = requested;
  canceled.scheduled_event_id = c.scheduled_event_id;
  run_.append(std::move(canceled));
}

void Carrier::operator()(const command::StartTimer& c) {
  constexpr Cause bad = Cause::bad_start_timer_attributes;
  checked(bad, [&] {
    check_name(c.timer_id, "timerId", limits_);
    check_duration(c.start_to_fire_timeout, "startToFireTimeout");
    if (!c.wake_on_pool.empty()) check_pool_name(c.wake_on_pool);
  });
  require(c.start_to_fire_timeout.count() > 0, bad, "startToFireTimeout must be above 0s");
  require(!state_.timers.contains(c.timer_id), Cause::start_timer_duplicate_id,
          "a timer with this id is already running");
  require(state_.timers.size() < limits_.pending_max, bad,
          "the run already has its limit of timers");
  run_.append(
      event::TimerStarted{c.timer_id, c.start_to_fire_timeout, completed_id_, c.wake_on_pool},
      metadata_);
  if (!c.wake_on_pool.empty()) run_.send(SleeperChanged{state_.number, c.wake_on_pool});
}

void Carrier::operator()(const command::CancelTimer& c) {
  const auto timer = state_.timers.find(c.timer_id);
  require(timer != state_.timers.end(), Cause::bad_cancel_timer_attributes,
          "no running timer has this timerId");
  const TimerState canceled = timer->second;
  if (canceled.fired) {
    std::erase_if(state_.volatile_state.buffered, [&](const Event& event) {
      const auto* fired = event.get_if<event::TimerFired>();
      return fired != nullptr && fired->timer_id == c.timer_id;
    });
  }
  run_.append(event::TimerCanceled{c.timer_id, canceled.started_event_id, completed_id_, ""});
  if (!canceled.wake_on_pool.empty()) {
    run_.send(SleeperChanged{state_.number, canceled.wake_on_pool});
  }
}

void Carrier::operator()(const command::RecordMarker& c) {
  checked(Cause::bad_record_marker_attributes,
          [&] { check_name(c.marker_name, "markerName", limits_); });
  for (const auto& [key, payloads] : c.details) check_size(bytes_of(payloads), "the marker");
  run_.append(event::MarkerRecorded{c.marker_name, c.details, completed_id_, c.header, c.failure},
              metadata_);
}

void Carrier::operator()(const command::CompleteWorkflowExecution& c) {
  require_nothing_buffered();
  check_size(bytes_of(c.result), "the result");
  run_.close(event::WorkflowExecutionCompleted{c.result, completed_id_, {}});
}

void Carrier::operator()(const command::FailWorkflowExecution& c) {
  require_nothing_buffered();
  require(c.failure.has_value(), Cause::bad_fail_workflow_execution_attributes,
          "failure is missing; it must be given");
  run_.close(event::WorkflowExecutionFailed{
      c.failure, RetryState::retry_policy_not_set, completed_id_, {}});
}

void Carrier::operator()(const command::CancelWorkflowExecution& c) {
  require_nothing_buffered();
  check_size(bytes_of(c.details), "the details");
  run_.close(event::WorkflowExecutionCanceled{completed_id_, c.details});
}

void Carrier::operator()(const command::ContinueAsNewWorkflowExecution& c) {
  constexpr Cause bad = Cause::bad_continue_as_new_attributes;
  require_nothing_buffered();
  require(!has_permit_prefix(state_.workflow_id), bad, "a permit cannot continue as new");
  checked(bad, [&] {
    check_optional_name(c.workflow_type.name, "workflowType.name", limits_);
    check_optional_name(c.task_queue.name, "taskQueue.name", limits_);
    check_duration(c.workflow_run_timeout, "workflowRunTimeout");
    check_duration(c.workflow_task_timeout, "workflowTaskTimeout");
  });
  check_size(bytes_of(c.input), "the input");
  check_search_attributes(c.search_attributes);

  const event::WorkflowExecutionStarted& old = state_.started;
  event::WorkflowExecutionStarted next = old;
  next.input = c.input;
  if (!c.workflow_type.name.empty()) next.workflow_type = c.workflow_type;
  if (!c.task_queue.name.empty()) next.task_queue.name = c.task_queue.name;
  if (c.workflow_run_timeout.count() > 0) next.workflow_run_timeout = c.workflow_run_timeout;
  if (c.workflow_task_timeout.count() > 0) next.workflow_task_timeout = c.workflow_task_timeout;
  next.continued_execution_run_id = state_.run_id;
  next.original_execution_run_id = run_.context().ids->new_run_id(run_.now());
  next.initiator = ContinueAsNewInitiator::workflow;
  next.last_completion_result = c.last_completion_result;
  next.continued_failure = c.failure;
  next.header = c.header;
  next.memo = c.memo ? c.memo : std::optional(state_.memo);
  if (next.memo->fields.empty()) next.memo.reset();
  next.search_attributes = c.search_attributes;
  if (!next.search_attributes && !state_.search_attributes.indexed_fields.empty()) {
    next.search_attributes = state_.search_attributes;
  }
  next.request_id = {};

  event::WorkflowExecutionContinuedAsNew e;
  e.new_execution_run_id = next.original_execution_run_id;
  e.workflow_type = next.workflow_type;
  e.task_queue = next.task_queue;
  e.input = c.input;
  e.workflow_run_timeout = next.workflow_run_timeout;
  e.workflow_task_timeout = next.workflow_task_timeout;
  e.workflow_task_completed_event_id = completed_id_;
  e.initiator = ContinueAsNewInitiator::workflow;
  e.failure = c.failure;
  e.last_completion_result = c.last_completion_result;
  e.header = c.header;
  e.memo = next.memo;
  e.search_attributes = next.search_attributes;
  run_.close(std::move(e));
  const RunId new_run_id = next.original_execution_run_id;
  run_.send(ContinueRun{state_.number, new_run_id, std::move(next)});
}

void Carrier::check_permit_child(const command::StartChildWorkflowExecution& c) const {
  constexpr Cause bad = Cause::bad_start_child_execution_attributes;
  require(c.parent_close_policy == ParentClosePolicy::unspecified ||
              c.parent_close_policy == ParentClosePolicy::terminate,
          bad, "a permit ends with its holder: its parentClosePolicy must be TERMINATE");
  require(c.workflow_id_reuse_policy != WorkflowIdReusePolicy::terminate_if_running, bad,
          "a start may not terminate a running permit");
  require(c.workflow_type.name == permit_workflow_type, bad,
          "only workflow type PermitSlotWorkflow may run under a permit: id");
}

void Carrier::operator()(const command::StartChildWorkflowExecution& given) {
  constexpr Cause bad = Cause::bad_start_child_execution_attributes;
  command::StartChildWorkflowExecution c = given;
  if (c.permit) {
    checked(bad, [&] { check_permit_request(*c.permit, limits_); });
    require(c.workflow_id.empty(), bad, "with a permit object the server chooses the workflow id");
    if (c.workflow_type.name.empty()) c.workflow_type.name = permit_workflow_type;
    if (c.task_queue.name.empty()) c.task_queue.name = limits_.permit_queue;
    check_permit_child(c);
    c.workflow_id = waiting_id(c.permit->pool, state_.next_event_id);
  } else {
    checked(bad, [&] { check_workflow_id(c.workflow_id, limits_); });
    if (has_permit_prefix(c.workflow_id)) check_permit_child(c);
  }
  checked(bad, [&] {
    check_name(c.workflow_type.name, "workflowType.name", limits_);
    check_optional_name(c.task_queue.name, "taskQueue.name", limits_);
    check_duration(c.workflow_execution_timeout, "workflowExecutionTimeout");
    check_duration(c.workflow_run_timeout, "workflowRunTimeout");
    check_duration(c.workflow_task_timeout, "workflowTaskTimeout");
    check_priority(c.priority);
  });
  require(c.namespace_.empty() || c.namespace_ == state_.namespace_, bad,
          "a child in another namespace is not offered");
  require(state_.children.size() < limits_.pending_max,
          Cause::pending_child_workflows_limit_exceeded,
          "the run already has its limit of pending children");
  check_size(bytes_of(c.input), "the child's input");
  check_search_attributes(c.search_attributes);
  if (c.parent_close_policy == ParentClosePolicy::unspecified) {
    c.parent_close_policy = ParentClosePolicy::terminate;
  }
  if (c.task_queue.name.empty()) c.task_queue.name = state_.started.task_queue.name;
  c.namespace_ = state_.namespace_;
  children_started_.insert(c.workflow_id);

  event::StartChildWorkflowExecutionInitiated e;
  e.namespace_ = c.namespace_;
  e.workflow_id = c.workflow_id;
  e.workflow_type = c.workflow_type;
  e.task_queue = c.task_queue;
  e.input = c.input;
  e.workflow_execution_timeout = c.workflow_execution_timeout;
  e.workflow_run_timeout = c.workflow_run_timeout;
  e.workflow_task_timeout = c.workflow_task_timeout;
  e.parent_close_policy = c.parent_close_policy;
  e.workflow_task_completed_event_id = completed_id_;
  e.workflow_id_reuse_policy = c.workflow_id_reuse_policy;
  e.header = c.header;
  e.memo = c.memo;
  e.search_attributes = c.search_attributes;
  e.priority = c.priority;
  e.permit = c.permit;
  const std::int64_t initiated = run_.append(std::move(e), metadata_);
  const WorkflowExecution root =
      state_.started.root_workflow_execution.value_or(state_.execution());
  run_.send(StartChild{sender(initiated), completed_id_, root, std::move(c)});
}

void Carrier::operator()(const command::SignalExternalWorkflowExecution& c) {
  constexpr Cause bad = Cause::bad_signal_workflow_execution_attributes;
  checked(bad, [&] { check_name(c.signal_name, "signalName", limits_); });
  require(c.execution && !c.execution->workflow_id.empty(), bad, "execution.workflowId is missing");
  require(c.namespace_.empty() || c.namespace_ == state_.namespace_, bad,
          "a signal to another namespace is not offered");
  require(!has_permit_prefix(c.execution->workflow_id) || c.child_workflow_only ||
              !c.execution->run_id.empty(),
          bad, "a signal to a permit must name its run or be child-only");
  require(bytes_of(c.input) <= limits_.payload_bytes_max, Cause::bad_signal_input_size,
          "the signal's input is too large");
  event::SignalExternalWorkflowExecutionInitiated e;
  e.workflow_task_completed_event_id = completed_id_;
  e.namespace_ = state_.namespace_;
  e.workflow_execution = c.execution;
  e.signal_name = c.signal_name;
  e.input = c.input;
  e.child_workflow_only = c.child_workflow_only;
  e.header = c.header;
  const std::int64_t initiated = run_.append(std::move(e), metadata_);
  run_.send(SignalRun{sender(initiated), c});
}

void Carrier::operator()(const command::RequestCancelExternalWorkflowExecution& c) {
  constexpr Cause bad = Cause::bad_request_cancel_external_workflow_execution_attributes;
  require(!c.workflow_id.empty(), bad, "workflowId is missing");
  require(c.namespace_.empty() || c.namespace_ == state_.namespace_, bad,
          "a cancel in another namespace is not offered");
  // One that names its run means an earlier child of that id.
  require(!c.run_id.empty() || !children_started_.contains(c.workflow_id), bad,
          "the same completion starts and cancels this child");
  event::RequestCancelExternalWorkflowExecutionInitiated e;
  e.workflow_task_completed_event_id = completed_id_;
  e.namespace_ = state_.namespace_;
  e.workflow_execution = WorkflowExecution{c.workflow_id, c.run_id};
  e.child_workflow_only = c.child_workflow_only;
  e.reason = c.reason;
  const std::int64_t initiated = run_.append(std::move(e), metadata_);
  run_.send(CancelRun{sender(initiated), c});
}

void Carrier::check_search_attributes(const std::optional<SearchAttributes>& attributes) const {
  static const std::set<std::string> predefined = {"TemporalChangeVersion", "BuildIds"};
  if (!attributes) return;
  for (const auto& [key, payload] : attributes->indexed_fields) {
    if (!predefined.contains(key)) {
      reject(Cause::bad_search_attributes, "search attribute " + key + " is not defined");
    }
  }
  check_size(bytes_of(attributes->indexed_fields), "the search attributes");
}

void Carrier::operator()(const command::UpsertWorkflowSearchAttributes& c) {
  require(c.search_attributes.has_value(), Cause::bad_search_attributes,
          "searchAttributes is missing");
  check_search_attributes(c.search_attributes);
  run_.append(event::UpsertWorkflowSearchAttributes{completed_id_, c.search_attributes}, metadata_);
}

void Carrier::operator()(const command::ModifyWorkflowProperties& c) {
  require(c.upserted_memo.has_value(), Cause::bad_modify_workflow_properties_attributes,
          "upsertedMemo is missing");
  check_size(bytes_of(c.upserted_memo->fields) + bytes_of(state_.memo.fields), "the memo");
  run_.append(event::WorkflowPropertiesModified{completed_id_, c.upserted_memo}, metadata_);
}

}  // namespace

void check_nothing_after_close(const std::vector<Command>& commands) {
  for (std::size_t i = 0; i + 1 < commands.size(); ++i) {
    if (!closes(commands[i])) continue;
    throw invalid_argument("COMMAND_AFTER_CLOSE",
                           "command " + std::to_string(i + 1) +
                               " closes the run, so it must be the last of the completion");
  }
}

void carry_out(Transition& run, const std::vector<Command>& commands,
               std::int64_t workflow_task_completed_event_id, const Limits& limits) {
  Carrier carrier(run, workflow_task_completed_event_id, limits);
  for (const Command& command : commands) carrier.carry_out(command);
}

}  // namespace permit::core
