// Queries are in memory only, so whatever else is lost with a batch, they must not be.
#include <doctest/doctest.h>

#include <optional>
#include <string>

#include "tests/support/cluster.h"

namespace permit::test {
namespace {

const std::string default_namespace = "default";

// Asks run `w`, whose tasks go to the queue `q`; the answers are there once they have come.
class Asker {
 public:
  Cluster& cluster() { return cluster_; }

  void start() {
    StartWorkflowExecutionRequest request;
    request.namespace_ = default_namespace;
    request.workflow_id = WorkflowId("w");
    request.workflow_type.name = "T";
    request.task_queue.name = "q";
    cluster_.service().start(request, [](auto) {});
  }

  void ask() {
    QueryWorkflowRequest request;
    request.namespace_ = default_namespace;
    request.execution.workflow_id = WorkflowId("w");
    request.query.query_type = "held";
    cluster_.service().query(request, [this](service::Result<QueryWorkflowResponse> result) {
      const auto* error = std::get_if<Error>(&result);
      answer_ = error != nullptr ? error->reason() : "answered";
    });
  }

  // Takes `w`'s first task and completes it; with a sticky queue, if one is named.
  void work(const std::string& sticky = "") {
    RespondWorkflowTaskCompletedRequest request;
    request.namespace_ = default_namespace;
    request.task_token = poll("q").value().task_token;
    if (!sticky.empty()) {
      request.sticky_attributes = StickyExecutionAttributes{};
      request.sticky_attributes->worker_task_queue.name = sticky;
    }
    cluster_.service().complete_workflow_task(request, [](auto) {});
    cluster_.settle();
  }

  // Nothing if the poll was refused; if it is still parked, the worker hangs up.
  std::optional<PollWorkflowTaskQueueResponse> poll(const std::string& queue) {
    PollWorkflowTaskQueueRequest request;
    request.namespace_ = default_namespace;
    request.task_queue.name = queue;
    std::int64_t id = 0;
    const auto result = cluster_.call<PollWorkflowTaskQueueResponse>(
        [&](auto done) { id = cluster_.service().poll_workflow_task(request, std::move(done)); });
    if (!result) cluster_.service().forget_poll(id);
    if (!result || std::holds_alternative<Error>(*result)) return std::nullopt;
    return std::get<PollWorkflowTaskQueueResponse>(*result);
  }

  void answer(const PollWorkflowTaskQueueResponse& task) {
    RespondQueryTaskCompletedRequest request;
    request.namespace_ = default_namespace;
    request.task_token = task.task_token;
    request.completed_type = QueryResultType::answered;
    cluster_.service().complete_query(request, [](auto) {});
    cluster_.settle();
  }

  // A batch that comes to nothing. What was submitted before is part of it.
  void fail_batch() {
    SignalWorkflowExecutionRequest request;
    request.namespace_ = default_namespace;
    request.workflow_execution.workflow_id = WorkflowId("w");
    request.signal_name = "s";
    request.input = json_payloads("\"" + std::string(100'000, 'x') + "\"");
    cluster_.fill_disk();
    cluster_.service().signal(request, [](service::Result<EmptyResponse> result) {
      CHECK(std::get<Error>(result).reason() == "DISK_FULL");
    });
    cluster_.settle();
    cluster_.free_disk();
  }

  const std::string& answer() const { return answer_; }

 private:
  Cluster cluster_;
  std::string answer_;
};

TEST_CASE("a query on a queue is still offered after a batch that came to nothing") {
  Asker asker;
  asker.start();
  asker.work();
  asker.ask();
  asker.fail_batch();
  const auto task = asker.poll("q");
  REQUIRE(task.has_value());
  CHECK(task->query.value().query_type == "held");
  CHECK(asker.answer().empty());
  asker.answer(*task);
  CHECK(asker.answer() == "answered");
  CHECK(!asker.poll("q"));
}

TEST_CASE("a query that a worker was given before a failed batch is answered by it or by another") {
  for (const bool by_another : {false, true}) {
    CAPTURE(by_another);
    Asker asker;
    asker.start();
    asker.work();
    asker.ask();
    const auto first = asker.poll("q");
    REQUIRE(first.has_value());
    asker.fail_batch();
    asker.answer(by_another ? asker.poll("q").value() : *first);
    CHECK(asker.answer() == "answered");
    CHECK(!asker.poll("q"));
  }
}

TEST_CASE("a query of a run whose start came to nothing is refused") {
  Asker asker;
  asker.start();
  asker.ask();
  asker.fail_batch();
  CHECK(asker.answer() == "DISK_FULL");
  // Another run gets its number, but not its query.
  asker.start();
  asker.work();
  CHECK(!asker.poll("q"));
}

TEST_CASE("a query for a worker that leaves goes to the normal queue") {
  Asker asker;
  asker.start();
  asker.work("sticky");
  CHECK(!asker.poll("sticky"));
  asker.ask();
  asker.cluster().settle();
  ShutdownWorkerRequest request;
  request.namespace_ = default_namespace;
  request.sticky_task_queue = "sticky";
  asker.cluster().service().shutdown_worker(request, [](auto) {});
  asker.cluster().settle();
  const auto task = asker.poll("q");
  REQUIRE(task.has_value());
  CHECK(task->query.value().query_type == "held");
}

TEST_CASE("a worker that leaves and names a queue that is not sticky takes nothing with it") {
  Asker asker;
  asker.start();
  asker.cluster().settle();
  ShutdownWorkerRequest request;
  request.namespace_ = default_namespace;
  request.sticky_task_queue = "q";
  const auto result = asker.cluster().call<EmptyResponse>(
      [&](auto done) { asker.cluster().service().shutdown_worker(request, std::move(done)); });
  CHECK(std::holds_alternative<EmptyResponse>(result.value()));
  CHECK(asker.poll("q").has_value());
}

}  // namespace
}  // namespace permit::test
