#include <doctest/doctest.h>

#include "worker/test_environment.h"

using namespace permit;
using namespace permit::worker;
using namespace std::chrono_literals;

namespace {

constexpr ActivityName<std::string(std::string)> greet{"greet"};
constexpr WorkflowName<std::string(std::string)> hello{"hello"};

Async<std::string> hello_workflow(Workflow workflow, std::string name) {
  const auto quick = ActivityOptions().start_to_close(1min);
  std::string greeting = co_await workflow.execute_activity(greet, quick, name);
  co_await workflow.sleep(45min);
  co_return greeting + "!";
}

}  // namespace

TEST_CASE("a workflow runs an activity, sleeps and returns") {
  Registry registry;
  registry.workflow(hello, hello_workflow);
  registry.activity(greet, [](ActivityContext&, std::string name) { return "hello " + name; });
  TestEnvironment environment(registry);
  const auto run = environment.client().start(hello, StartOptions("h"), "world");
  CHECK(run.result() == "hello world!");
}
