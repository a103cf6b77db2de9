#include "tests/fuzz/commands.h"

namespace permit::fuzz {

using namespace std::chrono_literals;

Duration some_duration(Choices& choices) {
  static constexpr Duration durations[] = {
      1s, 2s, 5s, 10s, 15s, 30s, 60s, 90s, 5min, 10min, 1h, 1ms,  5s, 40min,         10s, 5s,
      1s, 2s, 5s, 20s, 15s, 30s, 60s, 90s, 3s,   1min,  2h, 10ms, 0s, 24h * 365 * 2, 7s,  -1s};
  return choices.pick(durations);
}

std::optional<Payloads> some_payloads(Choices& choices) {
  const std::size_t what = choices.below(8);
  if (what < 4) return std::nullopt;
  if (what == 7) return json_payloads("\"" + std::string(700, 'x') + "\"");
  return json_payloads("{\"lease_seconds\":" + std::to_string(what) + "}");
}

std::optional<Failure> some_failure(Choices& choices) {
  if (choices.one_in(4)) return std::nullopt;
  Failure failure;
  failure.message = "failed";
  failure.application_failure_info.emplace();
  failure.application_failure_info->non_retryable = choices.one_in(3);
  if (choices.one_in(3))
    failure.application_failure_info->next_retry_delay = some_duration(choices);
  return failure;
}

PermitRequest some_permit_request(Choices& choices) {
  PermitRequest request;
  request.pool = PoolName(choices.pick(pools));
  const std::size_t how = choices.byte();
  if (how % 16 == 15) request.slots = {SlotName("a"), SlotName("b")};
  if (how / 16 % 4 == 3) request.only.emplace_back(choices.pick(short_names));
  static constexpr std::int32_t counts[] = {0, 0, 0, 0, 1, 1, 2, 0, 0, 0, 0, 0, 1, 2, 3, -1};
  request.count = choices.pick(counts);
  if (how >= 128) {
    request.lease = some_duration(choices);
    request.max_hold = some_duration(choices);
    request.wait_timeout = some_duration(choices);
  }
  const std::size_t order = choices.byte();
  request.order = static_cast<PermitOrder>(order % 3);
  request.wait = order / 3 % 2 == 1;
  if (order / 6 % 8 == 7) request.labels = {{"k", "v"}};
  return request;
}

namespace {

using namespace command;

ScheduleActivityTask some_activity(Choices& choices, const RunId& run) {
  ScheduleActivityTask activity;
  activity.activity_id = choices.pick(short_names);
  activity.activity_type.name = "A";
  activity.task_queue.name = choices.pick(queues);
  activity.input = some_payloads(choices);
  const std::size_t how = choices.byte();
  if (how % 16 != 15) activity.start_to_close_timeout = some_duration(choices);
  if (how / 8 % 2 == 1) activity.schedule_to_close_timeout = some_duration(choices);
  if (how / 16 % 4 == 3) activity.heartbeat_timeout = some_duration(choices);
  if (how / 64 % 2 == 1) {
    RetryPolicy policy;
    policy.initial_interval = some_duration(choices);
    policy.backoff_coefficient = choices.byte() / 32.0;
    policy.maximum_attempts = static_cast<std::int32_t>(choices.below(4));
    activity.retry_policy = policy;
  }
  if (how >= 192) activity.permit_run_id = run;
  return activity;
}

StartChildWorkflowExecution some_child(Choices& choices) {
  StartChildWorkflowExecution child;
  const std::size_t how = choices.byte();
  child.parent_close_policy = static_cast<ParentClosePolicy>(how % 4);
  if (how / 4 % 2 == 0) {
    child.permit = some_permit_request(choices);
    if (how / 8 % 8 == 0) child.workflow_id = WorkflowId(choices.pick(workflow_ids));
    return child;
  }
  child.workflow_id = WorkflowId(choices.pick(workflow_ids));
  child.workflow_type.name = how / 64 == 3 ? "PermitSlotWorkflow" : "T";
  child.task_queue.name = choices.pick(queues);
  child.input = some_payloads(choices);
  child.workflow_id_reuse_policy = static_cast<WorkflowIdReusePolicy>(how / 8 % 5);
  if (choices.one_in(3)) child.workflow_execution_timeout = some_duration(choices);
  return child;
}

SignalExternalWorkflowExecution some_message(Choices& choices, const RunId& run) {
  SignalExternalWorkflowExecution message;
  message.execution.emplace();
  message.execution->workflow_id =
      WorkflowId(choices.one_in(2) ? choices.pick(permit_ids) : choices.pick(workflow_ids));
  if (!choices.one_in(4)) message.execution->run_id = run;
  message.signal_name = choices.pick(signal_names);
  message.input = some_payloads(choices);
  message.child_workflow_only = choices.one_in(4);
  return message;
}

CommandAttributes some_closing(Choices& choices) {
  switch (choices.below(4)) {
    case 0:
      return CompleteWorkflowExecution{some_payloads(choices)};
    case 1:
      return FailWorkflowExecution{some_failure(choices)};
    case 2:
      return CancelWorkflowExecution{};
    default: {
      ContinueAsNewWorkflowExecution next;
      next.workflow_type.name = choices.one_in(4) ? "" : "T";
      next.input = some_payloads(choices);
      if (choices.one_in(4)) next.workflow_run_timeout = some_duration(choices);
      return next;
    }
  }
}

CommandAttributes some_attributes(Choices& choices, const RunId& run) {
  switch (choices.below(16)) {
    case 0:
    case 1:
      return some_activity(choices, run);
    case 2:
      return RequestCancelActivityTask{choices.byte() % 64};
    case 3:
    case 4:
      return StartTimer{choices.pick(short_names), some_duration(choices),
                        PoolName(choices.one_in(4) ? choices.pick(pools) : "")};
    case 5:
      return CancelTimer{choices.pick(short_names)};
    case 6:
      return some_closing(choices);
    case 7:
    case 8:
    case 9:
    case 10:
      return some_child(choices);
    case 11:
    case 12:
      return some_message(choices, run);
    case 13: {
      RequestCancelExternalWorkflowExecution cancel;
      cancel.workflow_id = WorkflowId(choices.pick(workflow_ids));
      if (choices.one_in(2)) cancel.run_id = run;
      cancel.child_workflow_only = choices.one_in(3);
      return cancel;
    }
    case 14: {
      RecordMarker marker;
      marker.marker_name = choices.pick(short_names);
      if (const auto details = some_payloads(choices)) marker.details["d"] = *details;
      return marker;
    }
    default: {
      ModifyWorkflowProperties modify;
      modify.upserted_memo.emplace();
      if (const auto payloads = some_payloads(choices)) {
        modify.upserted_memo->fields[choices.pick(short_names)] = payloads->payloads[0];
      }
      return modify;
    }
  }
}

}  // namespace

Command some_command(Choices& choices, const RunId& run) {
  Command command;
  command.attributes = some_attributes(choices, run);
  return command;
}

}  // namespace permit::fuzz
