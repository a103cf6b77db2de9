#include "apps/cli/history_view.h"

#include <iostream>
#include <variant>

#include "apps/cli/duration_text.h"
#include "apps/cli/exit_codes.h"
#include "apps/cli/permit_commands.h"
#include "orchestrator/protocol/json.h"

namespace permit::cli {

namespace {

std::string shown(const std::optional<Payloads>& payloads) {
  if (!payloads) return "";
  const std::string text = to_json(*payloads, PayloadForm::shorthand);
  const bool is_list = text.size() > 2 && text.front() == '[';
  return printable(is_list ? text.substr(1, text.size() - 2) : text, 60);
}

std::string id_of(const std::optional<WorkflowExecution>& execution) {
  return execution ? execution->workflow_id.value : "";
}

// What of an event people look for, if anything.
struct Gist {
  std::string operator()(const event::WorkflowExecutionStarted& e) const {
    std::string text = e.workflow_type.name;
    if (e.parent_workflow_execution) {
      text += ", parent " + e.parent_workflow_execution->workflow_id.value;
    }
    if (e.permit) text += ", fence " + std::to_string(e.permit->fence.value);
    return text;
  }
  std::string operator()(const event::WorkflowTaskScheduled& e) const {
    return "queue " + e.task_queue.name;
  }
  std::string operator()(const event::WorkflowTaskStarted& e) const { return e.identity; }
  std::string operator()(const event::TimerStarted& e) const {
    return e.timer_id + ", " + show_duration(e.start_to_fire_timeout);
  }
  std::string operator()(const event::TimerFired& e) const { return e.timer_id; }
  std::string operator()(const event::TimerCanceled& e) const { return e.timer_id; }
  std::string operator()(const event::ActivityTaskScheduled& e) const {
    return e.activity_type.name + " " + shown(e.input);
  }
  std::string operator()(const event::ActivityTaskStarted& e) const {
    return e.identity + ", attempt " + std::to_string(e.attempt);
  }
  std::string operator()(const event::ActivityTaskCompleted& e) const { return shown(e.result); }
  std::string operator()(const event::WorkflowExecutionSignaled& e) const {
    return e.signal_name + " " + shown(e.input);
  }
  std::string operator()(const event::WorkflowExecutionCompleted& e) const {
    return shown(e.result);
  }
  std::string operator()(const event::WorkflowExecutionTerminated& e) const {
    return e.reason + (e.identity.empty() ? "" : ", by " + e.identity);
  }
  std::string operator()(const event::ChildWorkflowExecutionStarted& e) const {
    return id_of(e.workflow_execution);
  }
  std::string operator()(const event::ChildWorkflowExecutionCompleted& e) const {
    return id_of(e.workflow_execution) + " " + shown(e.result);
  }
  template <class Other>
  std::string operator()(const Other& e) const {
    if constexpr (requires { e.failure; }) {
      return message_of(e.failure);
    } else {
      return "";
    }
  }
  static std::string message_of(const Failure& failure) { return failure.message; }
  static std::string message_of(const std::optional<Failure>& failure) {
    return failure ? failure->message : "";
  }
};

bool is_workflow_task(const Event& event) { return event.name().starts_with("WorkflowTask"); }

void print_line(const Output& out, const Event& event, Time began) {
  std::string id = std::to_string(event.event_id);
  if (id.size() < 3) id.insert(0, 3 - id.size(), ' ');
  std::string since = "+" + show_duration(event.event_time - began);
  since.resize(std::max<std::size_t>(since.size(), 9), ' ');
  std::string name(event.name());
  const std::string gist = std::visit(Gist(), static_cast<const EventVariant&>(event.attributes));
  if (!gist.empty()) name.resize(std::max<std::size_t>(name.size(), 32), ' ');
  out.text(id + "  " + out.clock(event.event_time) + "  " + since + "  " + name +
           (gist.empty() ? "" : "  " + printable(gist)));
}

// Page by page, so that a long history needs no more memory than a page; following, each page
// waits for the next event.
class Pages {
 public:
  Pages(Session& session, const WorkflowExecution& execution, Follow follow) : session_(session) {
    request_.namespace_ = session.namespace_name();
    request_.execution = execution;
    request_.wait_new_event = follow == Follow::until_closed;
  }
  // Empty after the last.
  std::optional<std::vector<Event>> next() {
    if (ended_) return std::nullopt;
    const auto response = worker::call<GetWorkflowExecutionHistoryResponse>(
        session_.transport(), "GetWorkflowExecutionHistory", request_);
    request_.next_page_token = response.next_page_token;
    ended_ = request_.next_page_token.value.empty();
    return read_json<std::vector<Event>>(response.history.events.text);
  }

 private:
  Session& session_;
  GetWorkflowExecutionHistoryRequest request_;
  bool ended_ = false;
};

}  // namespace

int show_history(Session& session, const WorkflowExecution& execution, Detail detail,
                 Follow follow) {
  const Output& out = session.out();
  Pages pages(session, execution, follow);
  std::optional<Time> began;
  std::string document;
  int hidden = 0;
  while (const auto events = pages.next()) {
    for (const Event& event : *events) {
      if (!began) began = event.event_time;
      if (out.format() == Format::jsonl) out.json(to_json(event));
      if (out.format() == Format::json) document += (document.empty() ? "" : ",") + to_json(event);
      if (detail == Detail::events_that_matter && is_workflow_task(event)) {
        ++hidden;
      } else if (out.is_text()) {
        print_line(out, event, *began);
      }
    }
  }
  if (out.format() == Format::json) out.json(R"({"events":[)" + document + "]}");
  if (hidden > 0) {
    out.text("     (" + std::to_string(hidden) + " workflow-task events hidden; --all)");
  }
  return exit_ok;
}

WorkflowExecution run_named(Session& session, const WorkflowId& id, const std::string& suffix) {
  if (suffix.empty() || suffix.size() >= 36) return {id, RunId(suffix)};
  ListWorkflowExecutionsRequest request;
  request.namespace_ = session.namespace_name();
  request.page_size = 1000;
  request.query = "WorkflowId = '" + id.value + "'";
  std::vector<RunId> found;
  const auto page = worker::call<ListWorkflowExecutionsResponse>(session.transport(),
                                                                 "ListWorkflowExecutions", request);
  for (const auto& run : page.executions) {
    if (run.execution.run_id.value.ends_with(suffix)) found.push_back(run.execution.run_id);
  }
  if (found.empty()) {
    throw not_found("RUN_NOT_FOUND", "no run of " + id.value + " ends in " + suffix);
  }
  if (found.size() > 1) {
    throw UsageError(std::to_string(found.size()) + " runs of " + id.value + " end in " + suffix +
                     "; write more of it");
  }
  return {id, found.front()};
}

}  // namespace permit::cli
