// Typed calls to the server, over whatever carries them. A call blocks; errors of the server come
// out as Error, with its code and reason. Thread-safe if the transport is.
//
//   Client client(transport);
//   auto run = client.start(nightly, StartOptions("nightly-2026-11-18"), plan);
//   Report report = run.result();
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "orchestrator/protocol/error.h"
#include "orchestrator/protocol/event.h"
#include "orchestrator/protocol/json.h"
#include "orchestrator/protocol/request.h"
#include "worker/convert.h"
#include "worker/names.h"

namespace permit::worker {

// Carries one call: the name of an RPC (of Temporal's service, unless it says which, as in
// "permit.api.v1.PermitService/ListPools") and its request message as JSON, to its response as
// JSON. Throws Error. A call is bounded in time by the transport.
class Transport {
 public:
  Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;
  virtual ~Transport() = default;
  virtual std::string call(std::string_view rpc, const std::string& request) = 0;
};

// How a call looks over HTTP: where it is posted to, and what an answer above 299 says.
std::string path_of(std::string_view rpc);
Error error_of(int status, const std::string& body);

template <class Response, class Request>
Response call(Transport& transport, std::string_view rpc, const Request& request) {
  return read_json<Response>(transport.call(rpc, to_json(request)));
}

class StartOptions {
 public:
  explicit StartOptions(std::string workflow_id) {
    request_.workflow_id = WorkflowId(std::move(workflow_id));
  }
  StartOptions& task_queue(std::string name) {
    request_.task_queue.name = std::move(name);
    return *this;
  }
  StartOptions& execution_timeout(Duration limit) {
    request_.workflow_execution_timeout = limit;
    return *this;
  }
  StartOptions& run_timeout(Duration limit) {
    request_.workflow_run_timeout = limit;
    return *this;
  }
  StartOptions& task_timeout(Duration limit) {
    request_.workflow_task_timeout = limit;
    return *this;
  }
  StartOptions& id_reuse(WorkflowIdReusePolicy policy) {
    request_.workflow_id_reuse_policy = policy;
    return *this;
  }
  StartOptions& id_conflict(WorkflowIdConflictPolicy policy) {
    request_.workflow_id_conflict_policy = policy;
    return *this;
  }
  template <class T>
  StartOptions& memo(std::string key, const T& value) {
    if (!request_.memo) request_.memo.emplace();
    request_.memo->fields[std::move(key)] = to_payload(value);
    return *this;
  }
  const StartWorkflowExecutionRequest& request() const { return request_; }

 private:
  StartWorkflowExecutionRequest request_;
};

class Client;

// One run as its starter sees it.
class RunHandle {
 public:
  RunHandle(Client& client, WorkflowExecution execution)
      : client_(&client), execution_(std::move(execution)) {}

  const WorkflowExecution& execution() const { return execution_; }
  template <class... Args>
  void signal(std::string name, const Args&... args) const;
  template <class R, class... Args>
  R query(std::string name, const Args&... args) const;
  void cancel(std::string reason = {}) const;
  void terminate(std::string reason) const;
  DescribeWorkflowExecutionResponse describe() const;
  std::vector<Event> history() const;

  // Waits until the run, and those it continues as, have closed. Throws WorkflowFailed, Canceled.
  std::optional<Payloads> raw_result() const;

 private:
  Client* client_;
  WorkflowExecution execution_;
};

template <class R>
class TypedRunHandle : public RunHandle {
 public:
  using RunHandle::RunHandle;
  R result() const {
    const std::optional<Payloads> raw = raw_result();
    if constexpr (!std::is_void_v<R>) return from_payloads<R>(raw);
  }
};

// The run failed, timed out or was terminated; its cause is what its code threw.
class WorkflowFailed : public Failed {
 public:
  using Failed::Failed;
  std::optional<ApplicationFailed> application() const {
    if (!failure_.application_failure_info) return std::nullopt;
    return ApplicationFailed(failure_);
  }
};

class Client {
 public:
  // `transport` outlives it.
  explicit Client(Transport& transport, std::string identity = "permit-client",
                  std::string namespace_name = "default")
      : transport_(transport),
        identity_(std::move(identity)),
        namespace_(std::move(namespace_name)) {}

  template <class R, class... Args>
  TypedRunHandle<R> start(WorkflowName<R(Args...)> name, const StartOptions& options,
                          const std::type_identity_t<Args>&... args) {
    StartWorkflowExecutionRequest request = options.request();
    request.workflow_type.name = name.name;
    request.input = to_payloads(args...);
    return TypedRunHandle<R>(*this, start(std::move(request)));
  }
  // A run that somebody else has started; without a run id, whichever is current.
  template <class R>
  TypedRunHandle<R> run_of(WorkflowExecution execution) {
    return TypedRunHandle<R>(*this, std::move(execution));
  }

  const std::string& identity() const { return identity_; }
  const std::string& namespace_name() const { return namespace_; }
  Transport& transport() { return transport_; }

 private:
  WorkflowExecution start(StartWorkflowExecutionRequest request);

  Transport& transport_;
  const std::string identity_;
  const std::string namespace_;
};

// A unique name for one request, so that the server knows a repetition.
std::string new_request_id();

// All of a run's history, page by page.
std::vector<Event> fetch_history(Transport& transport, const std::string& namespace_name,
                                 const WorkflowExecution& execution);

void send_signal(Client& client, const WorkflowExecution& execution, std::string name,
                 std::optional<Payloads> input);
std::optional<Payloads> send_query(Client& client, const WorkflowExecution& execution,
                                   std::string name, std::optional<Payloads> arguments);

template <class... Args>
void RunHandle::signal(std::string name, const Args&... args) const {
  send_signal(*client_, execution_, std::move(name), to_payloads(args...));
}

template <class R, class... Args>
R RunHandle::query(std::string name, const Args&... args) const {
  return from_payloads<R>(send_query(*client_, execution_, std::move(name), to_payloads(args...)));
}

}  // namespace permit::worker
