#include "tests/support/script.h"

#include <algorithm>

#include "orchestrator/protocol/json.h"
#include "tests/support/event_text.h"
#include "tests/support/script_commands.h"

namespace permit::test {

namespace {

const std::string default_namespace = "default";

std::vector<Event> events_of(const PollWorkflowTaskQueueResponse& task) {
  return read_json<std::vector<Event>>(task.history.value().events.text);
}

// "w#1" of "w#1/a".
std::pair<std::string, std::string> parse_activity(const std::string& text) {
  const auto slash = text.rfind('/');
  if (slash == std::string::npos) fail_script(text + " is not RUN/ACTIVITY");
  return {text.substr(0, slash), text.substr(slash + 1)};
}

}  // namespace

const std::map<std::string, Script::Handler>& Script::handlers() {
  static const std::map<std::string, Handler> handlers = {
      {"start", &Script::start},
      {"signal", &Script::signal},
      {"signal-with-start", &Script::signal_with_start},
      {"cancel", &Script::cancel},
      {"terminate", &Script::terminate},
      {"describe", &Script::describe},
      {"history", &Script::history},
      {"events", &Script::events},
      {"poll", &Script::poll},
      {"park", &Script::park},
      {"fail-task", &Script::fail_task},
      {"reset-sticky", &Script::reset_sticky},
      {"poll-activity", &Script::poll_activity},
      {"heartbeat", &Script::heartbeat},
      {"complete-activity", &Script::complete_activity},
      {"fail-activity", &Script::fail_activity},
      {"cancel-activity", &Script::cancel_activity},
      {"permits", &Script::permits},
      {"work-permits", &Script::work_permits},
      {"pool", &Script::pool},
      {"line", &Script::line},
      {"holds", &Script::holds},
      {"drain", &Script::drain},
      {"undrain", &Script::undrain},
      {"acquire", &Script::acquire},
      {"hang-up", &Script::hang_up},
      {"wait-over", &Script::wait_over},
      {"renew", &Script::renew},
      {"release", &Script::release},
      {"force-release", &Script::force_release},
      {"remove-waiter", &Script::remove_waiter},
      {"why", &Script::why},
      {"advance", &Script::advance},
      {"crash", &Script::crash},
      {"restart", &Script::restart},
      {"fill-disk", &Script::fill_disk},
      {"free-disk", &Script::free_disk}};
  return handlers;
}

std::vector<std::string> Script::run(const std::vector<std::string>& commands) {
  printed_.clear();
  cluster_.new_commits();
  for (const std::string& command : commands) run_one(command);
  return std::move(printed_);
}

void Script::run_one(const std::string& line) {
  const std::string verb = line.substr(0, line.find(' '));
  if (verb == "try:") {
    try_commands(line.substr(verb.size()));
  } else if (verb == "complete" || verb == "do") {
    auto colon = line.find(": ");
    if (colon == std::string::npos) colon = line.size() - 1;
    if (line[colon] != ':') fail_script("there is no colon in: " + line);
    const std::string whose = line.substr(verb.size(), colon - verb.size());
    const std::string commands = line.substr(colon + 1);
    Words words(whose);
    if (verb == "do" && !take_task_of(words)) {
      say("there is no task for it");
    } else {
      complete(words, commands);
    }
  } else {
    const auto handler = handlers().find(verb);
    if (handler == handlers().end()) fail_script("there is no command " + verb);
    Words words(line.substr(verb.size()));
    (this->*handler->second)(words);
    words.done();
  }
  after();
}

void Script::after() {
  while (permits_on_ && work_one_permit()) {
  }
}

void Script::say(const std::string& text) { printed_.push_back(cluster_.with_names(text)); }

void Script::say(const Error& error) { say("error " + error.reason() + ": " + error.message()); }

// --- Clients ---

void Script::start(Words& words) {
  StartWorkflowExecutionRequest request;
  request.namespace_ = default_namespace;
  request.workflow_type.name = words.get("type", "T");
  request.input = words.payloads("input");
  request.workflow_execution_timeout = words.duration("timeout");
  request.workflow_run_timeout = words.duration("run-timeout");
  request.workflow_task_timeout = words.duration("task-timeout");
  request.request_id = words.get("id");
  request.workflow_id_reuse_policy = words.enumerator<WorkflowIdReusePolicy>("reuse");
  request.workflow_id_conflict_policy = words.enumerator<WorkflowIdConflictPolicy>("conflict");
  const std::string queue = words.get("queue");
  do {
    request.workflow_id = WorkflowId(words.next());
    request.task_queue.name = queue.empty() ? request.workflow_id.value : queue;
    const auto answer = ask<StartWorkflowExecutionResponse>(
        [&](auto done) { cluster_.service().start(request, std::move(done)); });
    if (!answer) continue;
    say((answer->started ? "started " : "exists ") + cluster_.name(answer->run_id) +
        (answer->status == WorkflowExecutionStatus::running ? ""
                                                            : " " + enum_text(answer->status)));
  } while (words.has_next());
}

// On a fresh run each time, for what is refused.
void Script::try_commands(const std::string& commands) {
  StartWorkflowExecutionRequest request;
  request.namespace_ = default_namespace;
  request.workflow_id = WorkflowId("try");
  request.workflow_type.name = "T";
  request.task_queue.name = "try";
  request.workflow_id_conflict_policy = WorkflowIdConflictPolicy::terminate_existing;
  ask<StartWorkflowExecutionResponse>(
      [&](auto done) { cluster_.service().start(request, std::move(done)); });
  Words words("try");
  if (!take_task("try", "worker")) fail_script("there is no task");
  complete(words, commands);
}

void Script::signal(Words& words) {
  SignalWorkflowExecutionRequest request;
  request.namespace_ = default_namespace;
  request.workflow_execution = parse_execution(cluster_, words.next());
  request.signal_name = words.next();
  request.input = words.payloads("input");
  request.request_id = words.get("id");
  for (int i = words.number("times", 1); i > 0; --i) {
    ask<EmptyResponse>([&](auto done) { cluster_.service().signal(request, std::move(done)); });
  }
}

void Script::signal_with_start(Words& words) {
  SignalWithStartWorkflowExecutionRequest request;
  request.namespace_ = default_namespace;
  request.workflow_id = WorkflowId(words.next());
  request.signal_name = words.next();
  request.workflow_type.name = words.get("type", "T");
  request.task_queue.name = words.get("queue", request.workflow_id.value);
  request.request_id = words.get("id");
  request.workflow_id_reuse_policy = words.enumerator<WorkflowIdReusePolicy>("reuse");
  request.workflow_id_conflict_policy = words.enumerator<WorkflowIdConflictPolicy>("conflict");
  const auto answer = ask<SignalWithStartWorkflowExecutionResponse>(
      [&](auto done) { cluster_.service().signal_with_start(request, std::move(done)); });
  if (answer) say((answer->started ? "started " : "exists ") + cluster_.name(answer->run_id));
}

void Script::cancel(Words& words) {
  RequestCancelWorkflowExecutionRequest request;
  request.namespace_ = default_namespace;
  request.workflow_execution = parse_execution(cluster_, words.next());
  request.request_id = words.get("id");
  request.reason = words.get("reason");
  if (words.has("first")) request.first_execution_run_id = cluster_.run_id(words.get("first"));
  ask<EmptyResponse>(
      [&](auto done) { cluster_.service().request_cancel(request, std::move(done)); });
}

void Script::terminate(Words& words) {
  TerminateWorkflowExecutionRequest request;
  request.namespace_ = default_namespace;
  request.workflow_execution = parse_execution(cluster_, words.next());
  request.reason = words.get("reason");
  if (words.has("first")) request.first_execution_run_id = cluster_.run_id(words.get("first"));
  ask<EmptyResponse>([&](auto done) { cluster_.service().terminate(request, std::move(done)); });
}

void Script::describe(Words& words) {
  const DescribeWorkflowExecutionRequest request{default_namespace,
                                                 parse_execution(cluster_, words.next())};
  const auto answer = ask<DescribeWorkflowExecutionResponse>(
      [&](auto done) { cluster_.service().describe(request, std::move(done)); });
  if (!answer) return;
  const WorkflowExecutionInfo& info = answer->workflow_execution_info;
  std::string text = cluster_.name(info.execution) + " " + enum_text(info.status) +
                     " events=" + std::to_string(info.history_length);
  if (answer->workflow_extended_info.cancel_requested) text += " cancel-requested";
  if (info.fence.value != 0) text += " deadline=" + cluster_.relative(info.deadline);
  if (info.fence.value != 0 && info.status == WorkflowExecutionStatus::running) {
    text += " backstop=" + cluster_.relative(answer->workflow_extended_info.run_expiration_time);
  }
  if (info.outcome != Outcome::unspecified) text += " outcome=" + enum_text(info.outcome);
  if (!info.cause.empty()) text += " cause=" + info.cause;
  say(text);
  if (answer->pending_workflow_task) {
    const PendingWorkflowTaskInfo& task = *answer->pending_workflow_task;
    say("  task " + enum_text(task.state) + " attempt=" + std::to_string(task.attempt));
  }
  for (const PendingActivityInfo& activity : answer->pending_activities) {
    std::string line = "  activity " + activity.activity_id + " " + enum_text(activity.state) +
                       " attempt=" + std::to_string(activity.attempt);
    if (is_set(activity.next_attempt_schedule_time)) {
      line += " next=" + cluster_.relative(activity.next_attempt_schedule_time);
    }
    if (activity.last_failure) line += " last='" + activity.last_failure->message + "'";
    if (activity.heartbeat_details)
      line += " heartbeat=" + payloads_text(*activity.heartbeat_details);
    say(line);
  }
  for (const PendingChildExecutionInfo& child : answer->pending_children) {
    say("  child " + cluster_.name(WorkflowExecution{child.workflow_id, child.run_id}) + " " +
        enum_text(child.parent_close_policy));
  }
}

void Script::history(Words& words) {
  const WorkflowExecution execution = parse_execution(cluster_, words.next());
  const auto run = execution.run_id.empty()
                       ? cluster_.store().latest_run(default_namespace, execution.workflow_id)
                       : cluster_.store().run_by_id(execution.run_id);
  if (!run) {
    say("there is no such run");
    return;
  }
  const int from = words.number("from", 1);
  for (const Event& event : cluster_.history(*run)) {
    if (event.event_id < from) continue;
    say(std::to_string(event.event_id) + " " + cluster_.relative(event.event_time) + " " +
        event_text(cluster_, event, Detail::full));
  }
}

void Script::events(Words&) { say_commits(); }

void Script::say_commits() {
  for (const Cluster::Commit& commit : cluster_.new_commits()) {
    say("at " + cluster_.relative(commit.events.back().second.event_time));
    for (const auto& [run, event] : commit.events) {
      say("  " + run + " " + std::to_string(event.event_id) + " " +
          event_text(cluster_, event, Detail::brief));
    }
  }
}

// --- Workers: workflow tasks ---

void Script::print_task(const PollWorkflowTaskQueueResponse& task) {
  const std::vector<Event> events = events_of(task);
  std::string text = cluster_.name(*task.workflow_execution);
  if (task.attempt > 1) text += " attempt " + std::to_string(task.attempt);
  text += " events " + std::to_string(events.front().event_id) + "-" +
          std::to_string(events.back().event_id) + ", new:";
  for (const Event& event : events) {
    if (event.event_id > task.previous_started_event_id) text += " " + std::string(event.name());
  }
  say(text);
}

void Script::remember(const PollWorkflowTaskQueueResponse& task) {
  const Task taken{task.task_token, *task.workflow_execution};
  tasks_[cluster_.name(*task.workflow_execution)].push_back(taken);
  tasks_[task.workflow_execution->workflow_id.value].push_back(taken);
}

std::optional<PollWorkflowTaskQueueResponse> Script::take_task(const std::string& queue,
                                                               const std::string& identity) {
  PollWorkflowTaskQueueRequest request;
  request.namespace_ = default_namespace;
  request.task_queue.name = queue;
  request.identity = identity;
  request.poll_wait = Duration(1);
  auto result = cluster_.call<PollWorkflowTaskQueueResponse>(
      [&](auto done) { cluster_.service().poll_workflow_task(request, std::move(done)); });
  if (!result) {
    cluster_.service().expire_polls(std::chrono::steady_clock::now() +
                                    std::chrono::milliseconds(1));
    return std::nullopt;
  }
  auto task = std::get<PollWorkflowTaskQueueResponse>(std::move(*result));
  remember(task);
  return task;
}

void Script::poll(Words& words) {
  const auto task = take_task(words.next(), words.get("as", "worker"));
  if (task) {
    print_task(*task);
  } else {
    say("nothing");
  }
}

void Script::park(Words& words) {
  PollWorkflowTaskQueueRequest request;
  request.namespace_ = default_namespace;
  request.task_queue.name = words.next();
  request.identity = words.get("as", "worker");
  const auto late = [this](service::Result<PollWorkflowTaskQueueResponse> result) {
    const auto& task = std::get<PollWorkflowTaskQueueResponse>(result);
    if (!task.workflow_execution) return;
    remember(task);
    print_task(task);
  };
  const auto at_once = cluster_.call<PollWorkflowTaskQueueResponse>(
      [&](auto done) { cluster_.service().poll_workflow_task(request, std::move(done)); }, late);
  if (at_once) late(*at_once);
}

bool Script::take_task_of(Words words) {
  const DescribeWorkflowExecutionRequest request{default_namespace,
                                                 parse_execution(cluster_, words.next())};
  const auto answer = ask<DescribeWorkflowExecutionResponse>(
      [&](auto done) { cluster_.service().describe(request, std::move(done)); });
  if (!answer) return false;
  return take_task(answer->execution_config.task_queue.name, "worker").has_value();
}

const Script::Task& Script::task_of(Words& words) {
  const std::string run = words.next();
  const auto& handed_out = tasks_[run];
  if (handed_out.empty()) fail_script("no worker has had a task of " + run);
  const auto which = words.number("task", static_cast<int>(handed_out.size()));
  return handed_out.at(static_cast<std::size_t>(which) - 1);
}

void Script::complete(Words& words, const std::string& commands) {
  const Task task = task_of(words);
  RespondWorkflowTaskCompletedRequest request;
  request.namespace_ = default_namespace;
  request.task_token = task.token;
  request.identity = words.get("as", "worker");
  request.commands = parse_commands(cluster_, task.run, commands);
  request.force_create_new_workflow_task = words.flag("force-new");
  request.return_new_workflow_task = words.flag("inline");
  if (words.has("sticky")) {
    StickyExecutionAttributes sticky;
    sticky.worker_task_queue.name = words.get("sticky");
    sticky.schedule_to_start_timeout = std::chrono::seconds(10);
    request.sticky_attributes = sticky;
  }
  words.done();
  const auto answer = ask<RespondWorkflowTaskCompletedResponse>(
      [&](auto done) { cluster_.service().complete_workflow_task(request, std::move(done)); });
  if (!answer || !answer->workflow_task) return;
  remember(*answer->workflow_task);
  print_task(*answer->workflow_task);
}

void Script::fail_task(Words& words) {
  RespondWorkflowTaskFailedRequest request;
  request.namespace_ = default_namespace;
  request.task_token = task_of(words).token;
  request.cause = words.enumerator<WorkflowTaskFailedCause>("cause");
  if (request.cause == WorkflowTaskFailedCause::unspecified) {
    request.cause = WorkflowTaskFailedCause::workflow_worker_unhandled_failure;
  }
  ask<EmptyResponse>(
      [&](auto done) { cluster_.service().fail_workflow_task(request, std::move(done)); });
}

void Script::reset_sticky(Words& words) {
  const ResetStickyTaskQueueRequest request{default_namespace,
                                            parse_execution(cluster_, words.next())};
  ask<EmptyResponse>([&](auto done) { cluster_.service().reset_sticky(request, std::move(done)); });
}

// --- The permit worker ---

bool Script::work_one_permit() {
  const auto task = take_task("permits", "permit-worker");
  if (!task) return false;
  RespondWorkflowTaskCompletedRequest request;
  request.namespace_ = default_namespace;
  request.task_token = task->task_token;
  request.commands = permit_commands(events_of(*task));
  ask<RespondWorkflowTaskCompletedResponse>(
      [&](auto done) { cluster_.service().complete_workflow_task(request, std::move(done)); });
  return true;
}

void Script::permits(Words& words) { permits_on_ = words.next() == "on"; }

void Script::work_permits(Words&) {
  while (work_one_permit()) {
  }
}

// --- Workers: activities ---

void Script::poll_activity(Words& words) {
  PollActivityTaskQueueRequest request;
  request.namespace_ = default_namespace;
  request.task_queue.name = words.next();
  request.identity = words.get("as", "worker");
  request.poll_wait = Duration(1);
  const auto result = cluster_.call<PollActivityTaskQueueResponse>(
      [&](auto done) { cluster_.service().poll_activity_task(request, std::move(done)); });
  if (!result) {
    cluster_.service().expire_polls(std::chrono::steady_clock::now() +
                                    std::chrono::milliseconds(1));
    say("nothing");
    return;
  }
  const auto& task = std::get<PollActivityTaskQueueResponse>(*result);
  const std::string run = cluster_.name(*task.workflow_execution);
  activity_tokens_[run + "/" + task.activity_id].push_back(task.task_token);
  activity_tokens_[task.workflow_execution->workflow_id.value + "/" + task.activity_id].push_back(
      task.task_token);
  std::string text = run + "/" + task.activity_id + " attempt " + std::to_string(task.attempt);
  if (task.heartbeat_details) text += " heartbeat=" + payloads_text(*task.heartbeat_details);
  say(text);
}

Bytes Script::activity_token(const std::string& activity, Words& words) {
  const auto& tokens = activity_tokens_[activity];
  if (tokens.empty()) fail_script("no worker has had activity " + activity);
  const int which = words.number("task", static_cast<int>(tokens.size()));
  return tokens.at(static_cast<std::size_t>(which) - 1);
}

// The same request by token, or by id: `fill` sets what both have.
template <class T, class ByToken, class ById, class Fill, class Send, class SendById>
std::optional<T> Script::on_activity(Words& words, const Fill& fill, const Send& send,
                                     const SendById& send_by_id) {
  const std::string activity = words.next();
  const auto [run, activity_id] = parse_activity(activity);
  if (words.flag("by-id")) {
    const WorkflowExecution execution = parse_execution(cluster_, run);
    ById request;
    request.namespace_ = default_namespace;
    request.workflow_id = execution.workflow_id;
    request.run_id = execution.run_id;
    request.activity_id = activity_id;
    fill(request);
    return ask<T>([&](auto done) { (cluster_.service().*send_by_id)(request, std::move(done)); });
  }
  ByToken request;
  request.namespace_ = default_namespace;
  request.task_token = activity_token(activity, words);
  fill(request);
  return ask<T>([&](auto done) { (cluster_.service().*send)(request, std::move(done)); });
}

void Script::heartbeat(Words& words) {
  const auto details = words.payloads("details");
  const auto answer =
      on_activity<RecordActivityTaskHeartbeatResponse, RecordActivityTaskHeartbeatRequest,
                  RecordActivityTaskHeartbeatByIdRequest>(
          words, [&](auto& request) { request.details = details; }, &service::Service::heartbeat,
          &service::Service::heartbeat_by_id);
  if (!answer) return;
  if (answer->cancel_requested) say("cancel requested");
  if (is_set(answer->permit_deadline)) {
    say("permit until " + cluster_.relative(answer->permit_deadline));
  }
}

void Script::complete_activity(Words& words) {
  const auto result = words.payloads("result");
  on_activity<EmptyResponse, RespondActivityTaskCompletedRequest,
              RespondActivityTaskCompletedByIdRequest>(
      words, [&](auto& request) { request.result = result; }, &service::Service::complete_activity,
      &service::Service::complete_activity_by_id);
}

void Script::fail_activity(Words& words) {
  Failure failure;
  failure.message = words.get("message", "boom");
  failure.application_failure_info =
      ApplicationFailureInfo{words.get("type"), words.flag("final"), {}, words.duration("delay")};
  on_activity<EmptyResponse, RespondActivityTaskFailedRequest,
              RespondActivityTaskFailedByIdRequest>(
      words, [&](auto& request) { request.failure = failure; }, &service::Service::fail_activity,
      &service::Service::fail_activity_by_id);
}

void Script::cancel_activity(Words& words) {
  on_activity<EmptyResponse, RespondActivityTaskCanceledRequest,
              RespondActivityTaskCanceledByIdRequest>(
      words, [](auto&) {}, &service::Service::cancel_activity,
      &service::Service::cancel_activity_by_id);
}

// --- Time and failure ---

void Script::advance(Words& words) {
  const Time goal = cluster_.now() + parse_span(words.next());
  cluster_.new_commits();
  constexpr int steps_max = 10'000;
  int steps = 0;
  while (cluster_.service().next_due() <= goal) {
    if (++steps > steps_max) fail_script("time stands still");
    cluster_.step_to(goal);
    after();
  }
  cluster_.step_to(goal);
  after();
  if (!words.flag("quietly")) say_commits();
}

void Script::crash(Words& words) { cluster_.crash(words.duration("for")); }

void Script::restart(Words& words) { cluster_.restart(words.duration("for")); }

void Script::fill_disk(Words&) { cluster_.fill_disk(); }

void Script::free_disk(Words&) { cluster_.free_disk(); }

}  // namespace permit::test
