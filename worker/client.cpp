#include "worker/client.h"

#include <random>

#include "orchestrator/protocol/ensure.h"

namespace permit::worker {

std::string path_of(std::string_view rpc) {
  if (rpc.find('/') != std::string_view::npos) return "/" + std::string(rpc);
  return "/temporal.api.workflowservice.v1.WorkflowService/" + std::string(rpc);
}

// What the server says in an error's body: a google.rpc.Status with an ErrorInfo.
Error error_of(int status, const std::string& body) {
  const nlohmann::json parsed = nlohmann::json::parse(body, nullptr, false);
  if (!parsed.is_object() || !parsed.contains("message")) {
    return Error(ErrorCode::unknown, "HTTP_" + std::to_string(status),
                 "the server answered with HTTP status " + std::to_string(status));
  }
  std::string reason;
  for (const auto& detail : parsed.value("details", nlohmann::json::array())) {
    if (detail.is_object() && detail.contains("reason")) reason = detail.value("reason", "");
  }
  Error error(static_cast<ErrorCode>(parsed.value("code", 2)), reason, parsed.value("message", ""));
  for (const auto& detail : parsed.value("details", nlohmann::json::array())) {
    error.with_detail(detail.dump());
  }
  return error;
}

std::string new_request_id() {
  thread_local std::mt19937_64 words{std::random_device{}()};
  static constexpr char digits[] = "0123456789abcdef";
  std::string id;
  for (int i = 0; i < 2; ++i) {
    std::uint64_t word = words();
    for (int nibble = 0; nibble < 16; ++nibble, word >>= 4U) id += digits[word & 0xfU];
  }
  return id;
}

WorkflowExecution Client::start(StartWorkflowExecutionRequest request) {
  request.namespace_ = namespace_;
  request.identity = identity_;
  request.request_id = new_request_id();
  WorkflowExecution execution{request.workflow_id, {}};
  execution.run_id =
      call<StartWorkflowExecutionResponse>(transport_, "StartWorkflowExecution", request).run_id;
  return execution;
}

void send_signal(Client& client, const WorkflowExecution& execution, std::string name,
                 std::optional<Payloads> input) {
  SignalWorkflowExecutionRequest request;
  request.namespace_ = client.namespace_name();
  request.workflow_execution = execution;
  request.signal_name = std::move(name);
  request.input = std::move(input);
  request.identity = client.identity();
  request.request_id = new_request_id();
  call<EmptyResponse>(client.transport(), "SignalWorkflowExecution", request);
}

std::optional<Payloads> send_query(Client& client, const WorkflowExecution& execution,
                                   std::string name, std::optional<Payloads> arguments) {
  QueryWorkflowRequest request;
  request.namespace_ = client.namespace_name();
  request.execution = execution;
  request.query.query_type = std::move(name);
  request.query.query_args = std::move(arguments);
  return call<QueryWorkflowResponse>(client.transport(), "QueryWorkflow", request).query_result;
}

void RunHandle::cancel(std::string reason) const {
  RequestCancelWorkflowExecutionRequest request;
  request.namespace_ = client_->namespace_name();
  request.workflow_execution = execution_;
  request.identity = client_->identity();
  request.request_id = new_request_id();
  request.reason = std::move(reason);
  call<EmptyResponse>(client_->transport(), "RequestCancelWorkflowExecution", request);
}

void RunHandle::terminate(std::string reason) const {
  TerminateWorkflowExecutionRequest request;
  request.namespace_ = client_->namespace_name();
  request.workflow_execution = execution_;
  request.identity = client_->identity();
  request.reason = std::move(reason);
  call<EmptyResponse>(client_->transport(), "TerminateWorkflowExecution", request);
}

DescribeWorkflowExecutionResponse RunHandle::describe() const {
  DescribeWorkflowExecutionRequest request;
  request.namespace_ = client_->namespace_name();
  request.execution = execution_;
  return call<DescribeWorkflowExecutionResponse>(client_->transport(), "DescribeWorkflowExecution",
                                                 request);
}

std::vector<Event> RunHandle::history() const {
  return fetch_history(client_->transport(), client_->namespace_name(), execution_);
}

std::vector<Event> fetch_history(Transport& transport, const std::string& namespace_name,
                                 const WorkflowExecution& execution) {
  GetWorkflowExecutionHistoryRequest request;
  request.namespace_ = namespace_name;
  request.execution = execution;
  std::vector<Event> events;
  do {
    const auto page = call<GetWorkflowExecutionHistoryResponse>(
        transport, "GetWorkflowExecutionHistory", request);
    for (Event& event : read_json<std::vector<Event>>(page.history.events.text)) {
      events.push_back(std::move(event));
    }
    request.next_page_token = page.next_page_token;
  } while (!request.next_page_token.value.empty());
  return events;
}

namespace {

Failure ended(std::string message) {
  Failure failure;
  failure.message = std::move(message);
  return failure;
}

}  // namespace

std::optional<Payloads> RunHandle::raw_result() const {
  GetWorkflowExecutionHistoryRequest request;
  request.namespace_ = client_->namespace_name();
  request.execution = execution_;
  request.wait_new_event = true;
  request.history_event_filter_type = HistoryEventFilterType::close_event;
  for (;;) {
    const auto page = call<GetWorkflowExecutionHistoryResponse>(
        client_->transport(), "GetWorkflowExecutionHistory", request);
    const auto events = read_json<std::vector<Event>>(page.history.events.text);
    request.next_page_token = page.next_page_token;
    if (events.empty()) continue;
    const Event& close = events.back();
    if (const auto* e = close.get_if<event::WorkflowExecutionCompleted>()) return e->result;
    if (const auto* e = close.get_if<event::WorkflowExecutionFailed>()) {
      throw WorkflowFailed(e->failure.value_or(ended("the run failed")));
    }
    if (close.get_if<event::WorkflowExecutionCanceled>() != nullptr) {
      throw Canceled("the run was canceled");
    }
    if (const auto* e = close.get_if<event::WorkflowExecutionTerminated>()) {
      throw WorkflowFailed(ended("the run was terminated: " + e->reason));
    }
    if (close.get_if<event::WorkflowExecutionTimedOut>() != nullptr) {
      throw WorkflowFailed(ended("the run timed out"));
    }
    if (const auto* e = close.get_if<event::WorkflowExecutionContinuedAsNew>()) {
      request.execution.run_id = e->new_execution_run_id;
      request.next_page_token = {};
    }
  }
}

}  // namespace permit::worker
