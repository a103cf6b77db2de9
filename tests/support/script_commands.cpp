#include "tests/support/script_commands.h"

#include "tests/support/words.h"

namespace permit::test {

namespace {

std::optional<Payloads> json_or_nothing(const std::string& json) {
  return json.empty() ? std::nullopt : std::optional(json_payloads(json));
}

Failure application_failure(Words& words) {
  Failure failure;
  failure.message = words.next();
  failure.application_failure_info = ApplicationFailureInfo{words.get("type"), false, {}, {}};
  return failure;
}

PermitRequest permit_request(Words& words) {
  PermitRequest request;
  request.pool = PoolName(words.next());
  request.slots = words.slots("slots");
  request.only = words.slots("only");
  request.count = words.number("count");
  request.lease = words.duration("lease");
  request.max_hold = words.duration("max-hold");
  request.order = words.enumerator<PermitOrder>("order");
  request.wait = words.flag("wait");
  request.wait_timeout = words.duration("wait-timeout");
  request.reason = words.get("reason");
  return request;
}

CommandAttributes permit(Words& words) {
  command::StartChildWorkflowExecution c;
  c.permit = permit_request(words);
  c.workflow_type.name = words.get("type");
  c.task_queue.name = words.get("queue");
  c.workflow_id = WorkflowId(words.get("id"));
  c.parent_close_policy = words.enumerator<ParentClosePolicy>("policy");
  if (words.has("priority")) c.priority = Priority{words.number("priority"), "", 0};
  return c;
}

CommandAttributes start_child(Words& words) {
  command::StartChildWorkflowExecution c;
  c.workflow_id = WorkflowId(words.next());
  c.workflow_type.name = words.get("type", "Child");
  c.task_queue.name = words.get("queue", c.workflow_id.value);
  c.parent_close_policy = words.enumerator<ParentClosePolicy>("policy");
  c.workflow_id_reuse_policy = words.enumerator<WorkflowIdReusePolicy>("reuse");
  c.workflow_execution_timeout = words.duration("timeout");
  c.input = words.payloads("input");
  return c;
}

CommandAttributes activity(Cluster& cluster, Words& words) {
  command::ScheduleActivityTask c;
  c.activity_id = words.next();
  c.activity_type.name = words.get("type", "Act");
  c.task_queue.name = words.get("queue");
  c.input = words.payloads("input");
  c.schedule_to_close_timeout = words.duration("to-close");
  c.schedule_to_start_timeout = words.duration("to-start");
  c.start_to_close_timeout = words.duration("timeout");
  c.heartbeat_timeout = words.duration("heartbeat");
  if (words.has("attempts") || words.has("backoff") || words.has("no-retry")) {
    RetryPolicy policy;
    policy.maximum_attempts = words.number("attempts");
    policy.initial_interval = words.duration("backoff");
    if (words.has("no-retry")) policy.non_retryable_error_types = {words.get("no-retry")};
    c.retry_policy = policy;
  }
  if (words.has("under")) c.permit_run_id = cluster.run_id(words.get("under"));
  return c;
}

std::int64_t scheduled_event_of(Cluster& cluster, const WorkflowExecution& run,
                                const std::string& activity_id) {
  if (activity_id.find_first_not_of("0123456789") == std::string::npos) {
    return std::stoll(activity_id);
  }
  const auto number = cluster.store().run_by_id(run.run_id);
  std::int64_t found = 0;
  for (const Event& event : cluster.history(number.value())) {
    const auto* scheduled = event.get_if<event::ActivityTaskScheduled>();
    if (scheduled != nullptr && scheduled->activity_id == activity_id) found = event.event_id;
  }
  return found;
}

CommandAttributes signal_external(Cluster& cluster, Words& words) {
  command::SignalExternalWorkflowExecution c;
  c.execution = parse_execution(cluster, words.next());
  c.signal_name = words.next();
  c.child_workflow_only = words.flag("child-only");
  c.input = words.payloads("input");
  return c;
}

CommandAttributes cancel_external(Cluster& cluster, Words& words) {
  command::RequestCancelExternalWorkflowExecution c;
  const WorkflowExecution target = parse_execution(cluster, words.next());
  c.workflow_id = target.workflow_id;
  c.run_id = target.run_id;
  c.child_workflow_only = words.flag("child-only");
  c.reason = words.get("reason");
  return c;
}

CommandAttributes continue_as_new(Words& words) {
  command::ContinueAsNewWorkflowExecution c;
  c.workflow_type.name = words.get("type");
  c.task_queue.name = words.get("queue");
  c.input = words.payloads("input");
  return c;
}

CommandAttributes memo(Words& words) {
  command::ModifyWorkflowProperties c;
  const std::string key = words.next();
  if (!key.empty()) c.upserted_memo = Memo{{{key, json_payload(words.next_json())}}};
  return c;
}

CommandAttributes upsert(Words& words) {
  command::UpsertWorkflowSearchAttributes c;
  const std::string key = words.next();
  if (!key.empty()) {
    c.search_attributes = SearchAttributes{{{key, json_payload(words.next_json())}}};
  }
  return c;
}

CommandAttributes start_timer(Words& words) {
  const std::string id = words.next();
  const std::string span = words.next();
  return command::StartTimer{id, span.empty() ? Duration{} : parse_span(span),
                             PoolName(words.get("wake"))};
}

CommandAttributes parse(Cluster& cluster, const WorkflowExecution& run, const std::string& verb,
                        Words& words) {
  if (verb == "start-timer") return start_timer(words);
  if (verb == "cancel-timer") return command::CancelTimer{words.next()};
  if (verb == "marker") return command::RecordMarker{words.next(), {}, {}, {}};
  if (verb == "memo") return memo(words);
  if (verb == "upsert") return upsert(words);
  if (verb == "activity") return activity(cluster, words);
  if (verb == "cancel-activity") {
    return command::RequestCancelActivityTask{scheduled_event_of(cluster, run, words.next())};
  }
  if (verb == "start-child") return start_child(words);
  if (verb == "permit") return permit(words);
  if (verb == "signal-external") return signal_external(cluster, words);
  if (verb == "cancel-external") return cancel_external(cluster, words);
  if (verb == "complete") {
    if (words.has("bytes")) {
      const auto size = static_cast<std::size_t>(words.number("bytes"));
      return command::CompleteWorkflowExecution{
          json_payloads("\"" + std::string(size, 'x') + "\"")};
    }
    return command::CompleteWorkflowExecution{json_or_nothing(words.next_json())};
  }
  if (verb == "fail-without-failure") return command::FailWorkflowExecution{};
  if (verb == "fail") return command::FailWorkflowExecution{application_failure(words)};
  if (verb == "cancel-workflow") return command::CancelWorkflowExecution{};
  if (verb == "continue-as-new") return continue_as_new(words);
  fail_script("there is no worker's command " + verb);
}

}  // namespace

WorkflowExecution parse_execution(Cluster& cluster, const std::string& text) {
  const auto mark = text.rfind('#');
  if (mark == std::string::npos) return {WorkflowId(text), RunId()};
  return {WorkflowId(text.substr(0, mark)), cluster.run_id(text)};
}

std::vector<Command> parse_commands(Cluster& cluster, const WorkflowExecution& run,
                                    const std::string& text) {
  std::vector<Command> commands;
  for (const std::string& one : split(text, ';')) {
    if (one.empty()) continue;
    Words words(one);
    const std::string verb = words.next();
    commands.push_back({parse(cluster, run, verb, words), std::nullopt});
    words.done();
  }
  return commands;
}

std::vector<Command> permit_commands(const std::vector<Event>& history) {
  bool timer_started = false;
  bool timer_runs = false;
  std::string result;
  for (const Event& event : history) {
    const auto* signaled = event.get_if<event::WorkflowExecutionSignaled>();
    if (event.get_if<event::TimerStarted>()) timer_started = timer_runs = true;
    if (event.get_if<event::TimerFired>()) {
      timer_runs = false;
      if (result.empty()) result = "\"lease_expired\"";
    }
    if (signaled != nullptr && signaled->signal_name == "release" && result.empty()) {
      result = "\"released\"";
    }
  }
  std::vector<Command> commands;
  if (result.empty() && !timer_started) {
    const auto* started = history.front().get_if<event::WorkflowExecutionStarted>();
    const Duration left = started->permit->deadline - history.back().event_time;
    const Duration least = std::chrono::milliseconds(1);
    commands.push_back(
        {command::StartTimer{"lease", std::max(left, least), PoolName()}, std::nullopt});
  }
  if (result.empty()) return commands;
  if (timer_runs) commands.push_back({command::CancelTimer{"lease"}, std::nullopt});
  commands.push_back({command::CompleteWorkflowExecution{json_payloads(result)}, std::nullopt});
  return commands;
}

}  // namespace permit::test
