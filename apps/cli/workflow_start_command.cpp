// permit workflow start | execute | result.
#include <algorithm>
#include <cctype>
#include <iostream>
#include <nlohmann/json.hpp>

#include "apps/cli/exit_codes.h"
#include "apps/cli/workflow_commands.h"
#include "orchestrator/protocol/json.h"
#include "worker/client.h"

namespace permit::cli {

namespace {

template <class Policy>
Policy policy_typed(const Arguments& arguments, const std::string& flag) {
  const auto word = arguments.text(flag);
  if (!word) return Policy::unspecified;
  for (const Flag& known : arguments.command->flags) {
    if (known.name != flag) continue;
    const auto found = std::find(known.choices.begin(), known.choices.end(), *word);
    return static_cast<Policy>(found - known.choices.begin() + 1);  // listed in the enum's order
  }
  return Policy::unspecified;
}

std::optional<Memo> memo_typed(const Arguments& arguments) {
  Memo memo;
  for (const std::string& text : arguments.all("memo")) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw UsageError("--memo: \"" + text + "\" is not KEY=JSON");
    }
    const std::string key = text.substr(0, equals);
    memo.fields[key] = json_typed("--memo " + key, text.substr(equals + 1));
  }
  if (memo.fields.empty()) return std::nullopt;
  return memo;
}

StartWorkflowExecutionRequest request_typed(Session& session) {
  const Arguments& arguments = session.arguments();
  const auto type = arguments.text("type");
  if (!type) {
    throw UsageError("say what to run: permit " + arguments.command->name + " --type NAME");
  }
  StartWorkflowExecutionRequest request;
  request.namespace_ = session.namespace_name();
  request.workflow_id = WorkflowId(workflow_id_typed(arguments));
  if (request.workflow_id.empty()) request.workflow_id = WorkflowId(worker::new_request_id());
  request.workflow_type.name = *type;
  request.task_queue.name = session.settings().text("task_queue");
  request.input = input_of(arguments);
  request.workflow_execution_timeout =
      arguments.duration("execution-timeout").value_or(Duration(0));
  request.workflow_run_timeout = arguments.duration("run-timeout").value_or(Duration(0));
  request.workflow_task_timeout = arguments.duration("task-timeout").value_or(Duration(0));
  request.identity = session.identity();
  request.request_id = worker::new_request_id();
  request.workflow_id_reuse_policy =
      policy_typed<WorkflowIdReusePolicy>(arguments, "id-reuse-policy");
  request.workflow_id_conflict_policy =
      policy_typed<WorkflowIdConflictPolicy>(arguments, "id-conflict-policy");
  request.memo = memo_typed(arguments);
  return request;
}

StartWorkflowExecutionResponse start(Session& session) {
  const StartWorkflowExecutionRequest request = request_typed(session);
  auto response = worker::call<StartWorkflowExecutionResponse>(session.transport(),
                                                               "StartWorkflowExecution", request);
  if (response.workflow_id.empty()) response.workflow_id = request.workflow_id;
  return response;
}

std::string sentence_of(const StartWorkflowExecutionResponse& started) {
  return printable(started.workflow_id.value) + (started.started ? " started" : " runs already") +
         ", run " + started.run_id.value;
}

// --- How a run ended ---

struct End {
  WorkflowExecution execution;  // the last run of those that continue each other
  WorkflowExecutionStatus status = WorkflowExecutionStatus::unspecified;
  std::optional<Payloads> result;
  Failure failure;
};

// Of the event that closes a run. Of one that continues as another: that other's id.
struct ReadEnd {
  End& end;
  void operator()(const event::WorkflowExecutionCompleted& e) const {
    end.status = WorkflowExecutionStatus::completed;
    end.result = e.result;
  }
  void operator()(const event::WorkflowExecutionFailed& e) const {
    end.status = WorkflowExecutionStatus::failed;
    if (e.failure) end.failure = *e.failure;
  }
  void operator()(const event::WorkflowExecutionCanceled&) const {
    end.status = WorkflowExecutionStatus::canceled;
  }
  void operator()(const event::WorkflowExecutionTerminated& e) const {
    end.status = WorkflowExecutionStatus::terminated;
    end.failure.message = e.reason;
  }
  void operator()(const event::WorkflowExecutionTimedOut&) const {
    end.status = WorkflowExecutionStatus::timed_out;
  }
  void operator()(const event::WorkflowExecutionContinuedAsNew& e) const {
    end.execution.run_id = e.new_execution_run_id;
  }
  template <class Other>
  void operator()(const Other&) const {}
};

End wait_for_end(Session& session, const WorkflowExecution& execution) {
  End end;
  end.execution = execution;
  GetWorkflowExecutionHistoryRequest request;
  request.namespace_ = session.namespace_name();
  request.execution = execution;
  request.wait_new_event = true;
  request.history_event_filter_type = HistoryEventFilterType::close_event;
  while (end.status == WorkflowExecutionStatus::unspecified) {
    const auto page = worker::call<GetWorkflowExecutionHistoryResponse>(
        session.transport(), "GetWorkflowExecutionHistory", request);
    request.next_page_token = page.next_page_token;
    for (const Event& event : read_json<std::vector<Event>>(page.history.events.text)) {
      std::visit(ReadEnd{end}, static_cast<const EventVariant&>(event.attributes));
    }
    if (end.execution == request.execution) continue;
    request.execution = end.execution;
    request.next_page_token = {};
  }
  return end;
}

std::string how_it_ended(const End& end) {
  const std::string why = show_failure(end.failure);
  switch (end.status) {
    case WorkflowExecutionStatus::failed:
      return "failed" + (why.empty() ? "" : ": " + why);
    case WorkflowExecutionStatus::canceled:
      return "was canceled";
    case WorkflowExecutionStatus::terminated:
      return "was terminated" + (why.empty() ? "" : ": " + why);
    case WorkflowExecutionStatus::timed_out:
      return "ran out of time";
    default:
      return "completed";
  }
}

std::string json_of(const End& end) {
  // As a run's description has them.
  std::string status = word_of(end.status);
  if (status == "TimedOut") status = "Timed_Out";
  for (char& c : status) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  nlohmann::json execution;
  execution["workflowId"] = end.execution.workflow_id.value;
  execution["runId"] = end.execution.run_id.value;
  std::string text = R"({"execution":)" + execution.dump() +
                     R"(,"status":"WORKFLOW_EXECUTION_STATUS_)" + status + "\"";
  if (end.result) text += ",\"result\":" + to_json(*end.result, PayloadForm::shorthand);
  if (end.status != WorkflowExecutionStatus::completed) {
    text += ",\"failure\":" + to_json(end.failure, PayloadForm::shorthand);
  }
  return text + "}";
}

// The exit code.
int print_end(Session& session, const WorkflowExecution& execution) {
  const Output& out = session.out();
  const End end = wait_for_end(session, execution);
  out.json(json_of(end));
  if (end.status != WorkflowExecutionStatus::completed) {
    std::cerr << "permit: " << printable(execution.workflow_id.value) << " " << how_it_ended(end)
              << "\n";
    return exit_failed;
  }
  if (!end.result) return exit_ok;
  // To the letter, so that a program can read it.
  for (const Payload& payload : end.result->payloads) {
    out.text(to_json(payload, PayloadForm::shorthand));
  }
  return exit_ok;
}

}  // namespace

int run_workflow_start(Session& session) {
  const StartWorkflowExecutionResponse started = start(session);
  session.out().json(to_json(started));
  session.out().text(sentence_of(started));
  return exit_ok;
}

int run_workflow_execute(Session& session) {
  const StartWorkflowExecutionResponse started = start(session);
  session.out().note(sentence_of(started));
  return print_end(session, {started.workflow_id, started.run_id});
}

int run_workflow_result(Session& session) {
  WorkflowExecution execution = workflow_named(session);
  // The run that is current now, also if another begins meanwhile.
  if (execution.run_id.empty()) {
    execution.run_id = describe_run(session, execution).workflow_execution_info.execution.run_id;
  }
  return print_end(session, execution);
}

}  // namespace permit::cli
