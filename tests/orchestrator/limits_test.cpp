// Limits that take long to reach as they are, with smaller numbers: the answer at the limit, and
// what becomes of a run that is past it.
#include <doctest/doctest.h>

#include <chrono>
#include <memory>
#include <optional>

#include "orchestrator/protocol/json.h"
#include "orchestrator/service/service.h"
#include "orchestrator/store/store.h"

namespace permit::service {
namespace {

using namespace std::chrono_literals;

class SmallServer {
 public:
  explicit SmallServer(core::Limits limits) : store_(in_memory()) {
    Options options;
    options.seed = 1;
    options.token_secret = "test";
    options.limits = std::move(limits);
    options.check_every_batch = true;
    service_ = std::make_unique<Service>(store_, clock_, std::move(options));
  }
  ~SmallServer() { service_->check_everything(); }

  Service& service() { return *service_; }

  template <class Response, class Request, class R>
  std::optional<Result<Response>> ask(const Request& request,
                                      R (Service::*method)(Request, Done<Response>)) {
    auto answer = std::make_shared<std::optional<Result<Response>>>();
    ((*service_).*method)(request,
                          [answer](Result<Response> result) { *answer = std::move(result); });
    while (service_->run_batch()) continue;
    return *answer;
  }

  void start(const char* id) {
    StartWorkflowExecutionRequest request;
    request.namespace_ = "default";
    request.workflow_id = WorkflowId(id);
    request.workflow_type.name = "T";
    request.task_queue.name = "q";
    REQUIRE(reason(ask(request, &Service::start)).empty());
  }

  std::string signal(const char* id) {
    SignalWorkflowExecutionRequest request;
    request.namespace_ = "default";
    request.workflow_execution.workflow_id = WorkflowId(id);
    request.signal_name = "s";
    return reason(ask(request, &Service::signal));
  }

  WorkflowExecutionInfo info(const char* id) {
    const DescribeWorkflowExecutionRequest request{"default", {WorkflowId(id), RunId()}};
    const auto answer = ask(request, &Service::describe);
    return std::get<DescribeWorkflowExecutionResponse>(answer.value()).workflow_execution_info;
  }

  // Empty if it was answered.
  template <class T>
  static std::string reason(const std::optional<Result<T>>& answer) {
    if (!answer) return "no answer";
    const auto* error = std::get_if<Error>(&*answer);
    return error == nullptr ? "" : error->reason();
  }

 private:
  static store::Database::Options in_memory() {
    store::Database::Options options;
    options.mode = store::Database::Mode::in_memory;
    return options;
  }

  ManualClock clock_{Time(Duration(1'785'585'600'000'000))};
  store::Store store_;
  std::unique_ptr<Service> service_;
};

TEST_CASE("a run takes as many signals as it may and then none (case 55)") {
  core::Limits limits;
  limits.signals_max = 5;
  SmallServer server(limits);
  server.start("w");
  for (int i = 0; i < 5; ++i) CHECK(server.signal("w").empty());
  CHECK(server.signal("w") == "SIGNALS_LIMIT");
  CHECK(server.info("w").status == WorkflowExecutionStatus::running);
  server.start("other");
  CHECK(server.signal("other").empty());
}

TEST_CASE("a run whose history is past its limit is ended by the next that is added (case 56)") {
  core::Limits limits;
  limits.history_events_max = 20;
  SmallServer server(limits);
  server.start("w");
  for (int i = 0; i < 30 && server.info("w").status == WorkflowExecutionStatus::running; ++i) {
    CHECK(server.signal("w").empty());
  }
  const WorkflowExecutionInfo info = server.info("w");
  CHECK(info.status == WorkflowExecutionStatus::terminated);
  CHECK(info.history_length <= 23);
  CHECK(server.signal("w") == "WORKFLOW_ALREADY_COMPLETED");
}

TEST_CASE("a poll for ten hours waits for a minute (case 60)") {
  SmallServer server({});
  PollWorkflowTaskQueueRequest request;
  request.namespace_ = "default";
  request.task_queue.name = "q";
  request.poll_wait = 10h;
  const auto asked = std::chrono::steady_clock::now();
  const auto answer = std::make_shared<std::optional<Result<PollWorkflowTaskQueueResponse>>>();
  server.service().poll_workflow_task(
      request,
      [answer](Result<PollWorkflowTaskQueueResponse> result) { *answer = std::move(result); });
  while (server.service().run_batch()) continue;
  const auto deadline = server.service().next_poll_deadline();
  REQUIRE(deadline);
  CHECK(*deadline <= std::chrono::steady_clock::now() + 60s);
  CHECK(*deadline >= asked + 59s);
  CHECK_FALSE(answer->has_value());
  server.service().expire_polls(*deadline);
  while (server.service().run_batch()) continue;
  REQUIRE(answer->has_value());
  CHECK(std::get<PollWorkflowTaskQueueResponse>(**answer).task_token.value.empty());
}

}  // namespace
}  // namespace permit::service
