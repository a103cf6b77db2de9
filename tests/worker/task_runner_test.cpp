#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "orchestrator/protocol/json.h"
#include "worker/test_environment.h"

using namespace permit;
using namespace permit::worker;
using namespace std::chrono_literals;

namespace {

constexpr WorkflowName<std::string()> flow{"flow"};
constexpr ActivityName<std::string()> later{"later"};

// Whose frames were destroyed, in order.
std::vector<std::string> gone;

struct InFrame {
  explicit InFrame(std::string its_id) : id(std::move(its_id)) {}
  ~InFrame() { gone.push_back(id); }
  InFrame(const InFrame&) = delete;
  InFrame& operator=(const InFrame&) = delete;
  const std::string id;
};

Async<std::string> sleeper(Workflow workflow) {
  const InFrame frame(workflow.info().execution.workflow_id.value);
  workflow.on_query("awake", [] { return false; });
  co_await workflow.sleep(1h);
  co_return "";
}

Async<std::string> wait_for_later(Workflow workflow) {
  const auto options = ActivityOptions().start_to_close(1h);
  std::string text = co_await workflow.execute_activity(later, options);
  co_return text;
}

PollWorkflowTaskQueueResponse task_of(const std::string& id) {
  PollWorkflowTaskQueueResponse task;
  task.workflow_execution = WorkflowExecution{WorkflowId(id), RunId("run of " + id)};
  task.workflow_type = WorkflowType{"flow"};
  task.attempt = 1;
  return task;
}

PollWorkflowTaskQueueResponse first_task(const std::string& id) {
  std::vector<Event> events(3);
  event::WorkflowExecutionStarted started;
  started.workflow_type.name = "flow";
  events[0].attributes = started;
  events[1].attributes = event::WorkflowTaskScheduled{};
  events[2].attributes = event::WorkflowTaskStarted{};
  std::int64_t event_id = 0;
  for (Event& event : events) event.event_id = ++event_id;
  PollWorkflowTaskQueueResponse task = task_of(id);
  task.history = RawHistory{RawJson{to_json(events)}};
  return task;
}

// Answered only by a run that is kept: it comes without a history.
PollWorkflowTaskQueueResponse query_task(const std::string& id) {
  PollWorkflowTaskQueueResponse task = task_of(id);
  task.query.emplace().query_type = "awake";
  return task;
}

}  // namespace

TEST_SUITE_BEGIN("task runner");

TEST_CASE("the run that was used least recently makes room for the next") {
  Registry registry;
  registry.workflow(flow, sleeper);
  TaskRunner::Options options;
  options.sticky_queue = "sticky";
  options.runs_cached_max = 2;
  TaskRunner runner(registry, options);
  const auto is_kept = [&](const std::string& id) {
    const WorkflowTaskAnswer answer = runner.run(query_task(id));
    return std::get<RespondQueryTaskCompletedRequest>(answer).completed_type ==
           QueryResultType::answered;
  };
  const auto begin = [&](const std::string& id) {
    const WorkflowTaskAnswer answer = runner.run(first_task(id));
    REQUIRE(std::get<RespondWorkflowTaskCompletedRequest>(answer).commands.size() == 1);
  };
  gone.clear();
  begin("a");
  begin("b");
  CHECK(gone.empty());
  CHECK(is_kept("a"));  // and so b is the one that was used least recently
  begin("c");
  CHECK(gone == std::vector<std::string>{"b"});
  CHECK(runner.runs_cached() == 2);
  CHECK(!is_kept("b"));
  CHECK(is_kept("a"));
  begin("d");
  CHECK(gone == std::vector<std::string>{"b", "c"});
  CHECK(is_kept("a"));
  CHECK(is_kept("d"));
}

TEST_CASE("a task that goes on with a kept run is a hit, one that begins it anew a miss") {
  Registry registry;
  registry.workflow(flow, sleeper);
  TaskRunner::Options options;
  options.sticky_queue = "sticky";
  options.fetch_history = [](const WorkflowExecution& execution) {
    return read_json<std::vector<Event>>(
        first_task(execution.workflow_id.value).history->events.text);
  };
  TaskRunner runner(registry, options);
  const auto counts = [&] {
    return std::to_string(runner.cache_hits()) + " hits, " + std::to_string(runner.cache_misses()) +
           " misses";
  };
  PollWorkflowTaskQueueResponse first = first_task("a");
  first.task_token = Bytes{"a"};
  runner.run(first);
  CHECK(counts() == "0 hits, 0 misses");
  PollWorkflowTaskQueueResponse next = task_of("a");
  next.history = RawHistory{RawJson{"[]"}};
  next.previous_started_event_id = 3;
  next.task_token = Bytes{"b"};
  runner.run(next);
  CHECK_MESSAGE(counts() == "0 hits, 1 misses", "its answer may not have been taken");
  const RunId run = next.workflow_execution->run_id;
  runner.accepted(run, Bytes{"a"});
  runner.run(next);
  CHECK_MESSAGE(counts() == "0 hits, 2 misses", "that was the answer to another task");
  runner.accepted(run, Bytes{"b"});
  runner.run(next);
  CHECK(counts() == "1 hits, 2 misses");
  runner.accepted(run, Bytes{"b"});
  runner.evict(run);
  runner.run(next);
  CHECK(counts() == "1 hits, 3 misses");
}

TEST_CASE("an activity that completes later is completed by its token, once") {
  Bytes token;
  Registry registry;
  registry.workflow(flow, wait_for_later);
  registry.activity(later, [&token](ActivityContext& context) -> std::string {
    token = context.info().task_token;
    context.complete_later();
  });
  TestEnvironment environment(registry);
  const auto run = environment.client().start(flow, StartOptions("f"));
  environment.advance(50min);
  REQUIRE(!token.value.empty());
  CHECK(run.describe().workflow_execution_info.status == WorkflowExecutionStatus::running);

  RespondActivityTaskCompletedRequest request;
  request.namespace_ = "default";
  request.task_token = token;
  request.result = to_payloads(std::string("from elsewhere"));
  Transport& transport = environment.client().transport();
  call<EmptyResponse>(transport, "RespondActivityTaskCompleted", request);
  CHECK(run.result() == "from elsewhere");
  CHECK_THROWS_AS(call<EmptyResponse>(transport, "RespondActivityTaskCompleted", request), Error);
}

TEST_SUITE_END();
