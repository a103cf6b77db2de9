// Many runs that are due at once, none of them in memory.
#include <doctest/doctest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "orchestrator/service/service.h"
#include "orchestrator/store/store.h"
#include "tests/support/complaints.h"

namespace permit::service {
namespace {

using std::chrono::seconds;

store::Database::Options in_memory() {
  store::Database::Options options;
  options.mode = store::Database::Mode::in_memory;
  return options;
}

class DueRuns {
 public:
  DueRuns() {
    Options options;
    options.seed = 1;
    options.token_secret = "test";
    options.cache_bytes_max = 1;  // between batches nothing is kept
    options.check_every_batch = true;
    service_ = std::make_unique<Service>(store_, clock_, std::move(options));
  }
  ~DueRuns() {
    if (!has_broken_) service_->check_everything();
  }

  void start(const std::string& id) {
    StartWorkflowExecutionRequest request;
    request.namespace_ = "default";
    request.workflow_id = WorkflowId(id);
    request.workflow_type.name = "T";
    request.task_queue.name = "q";
    request.workflow_run_timeout = seconds(10);
    service_->start(request, must<StartWorkflowExecutionResponse>());
  }

  // The only task of queue "q" starts these.
  void start_children(int count) {
    Bytes token;
    PollWorkflowTaskQueueRequest poll;
    poll.namespace_ = "default";
    poll.task_queue.name = "q";
    service_->poll_workflow_task(poll, [&](Result<PollWorkflowTaskQueueResponse> task) {
      token = std::get<PollWorkflowTaskQueueResponse>(task).task_token;
    });
    settle();
    RespondWorkflowTaskCompletedRequest completion;
    completion.namespace_ = "default";
    completion.task_token = token;
    for (int i = 0; i < count; ++i) {
      command::StartChildWorkflowExecution child;
      child.workflow_id = WorkflowId("child-" + std::to_string(i));
      child.workflow_type.name = "T";
      child.task_queue.name = "other";
      child.workflow_run_timeout = seconds(10);
      completion.commands.push_back({std::move(child), std::nullopt});
    }
    service_->complete_workflow_task(completion, must<RespondWorkflowTaskCompletedResponse>());
    settle();
  }

  // Its history gets an event that its row knows nothing of.
  void break_history(RunNumber run) {
    has_broken_ = true;
    store_.begin();
    store_.append_history(
        run, 1'000,
        R"({"eventId":"1000","eventType":"EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED",)"
        R"("workflowExecutionSignaledEventAttributes":{"signalName":"s"}})");
    store_.commit(clock_.now());
  }

  void pass(Duration time) {
    clock_.set(clock_.now() + time);
    settle();
  }

  void settle() {
    while (service_->run_batch()) continue;
  }

  int count(WorkflowExecutionStatus status) {
    int found = 0;
    for (std::int64_t number = 1; number <= store_.counters().run; ++number) {
      const auto row = store_.run(RunNumber{number});
      if (row && row->status == status) ++found;
    }
    return found;
  }

 private:
  template <class Response>
  static Done<Response> must() {
    return [](Result<Response> result) { REQUIRE(std::holds_alternative<Response>(result)); };
  }

  ManualClock clock_{Time(Duration(1'785'585'600'000'000))};
  store::Store store_{in_memory()};
  std::unique_ptr<Service> service_;
  bool has_broken_ = false;
};

TEST_CASE("of runs due at once one may end others") {
  constexpr int children = 120;
  constexpr int others = 230;
  DueRuns runs;
  runs.start("parent");
  runs.settle();
  runs.start_children(children);
  for (int i = 0; i < others; ++i) runs.start("w-" + std::to_string(i));
  runs.settle();
  runs.pass(seconds(10));
  CHECK(runs.count(WorkflowExecutionStatus::running) == 0);
  CHECK(runs.count(WorkflowExecutionStatus::terminated) == children);
  CHECK(runs.count(WorkflowExecutionStatus::timed_out) == 1 + others);
}

TEST_CASE("of runs due at once a broken one stops no other") {
  constexpr int count = 180;
  DueRuns runs;
  for (int i = 0; i < count; ++i) runs.start("w-" + std::to_string(i));
  runs.settle();
  runs.break_history(RunNumber{20});
  runs.break_history(RunNumber{120});
  std::ostringstream said;
  {
    const test::Complaints complaints(said);
    runs.pass(seconds(10));
  }
  CHECK(said.str().find("run_left_alone") != std::string::npos);
  CHECK(runs.count(WorkflowExecutionStatus::running) == 2);
  CHECK(runs.count(WorkflowExecutionStatus::timed_out) == count - 2);
}

}  // namespace
}  // namespace permit::service
