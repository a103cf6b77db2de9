#include <doctest/doctest.h>

#include <map>
#include <string>
#include <vector>

#include "worker/test_environment.h"

using namespace permit;
using namespace permit::worker;
using namespace std::chrono_literals;

namespace {

constexpr WorkflowName<std::string()> flow{"flow"};
constexpr WorkflowName<std::string(std::string)> child_flow{"child"};
constexpr ActivityName<std::string(std::string)> echo{"echo"};
constexpr ActivityName<int(int)> flaky{"flaky"};

ActivityOptions quick() { return ActivityOptions().start_to_close(1min); }

Async<std::string> echo_child(Workflow workflow, std::string text) {
  std::vector<std::string> notes;
  workflow.on_signal("note", [&notes](std::string note) { notes.push_back(note); });
  if (text == "fail") throw ApplicationFailed("as told").type("Told").non_retryable();
  if (text == "wait") {
    const auto noted = [&notes] { return !notes.empty(); };
    co_await workflow.wait_until(noted);
    co_return "noted " + notes.front();
  }
  co_await workflow.sleep(1s);
  co_return "child " + text;
}

// A world with the activities of these tests, and the workflow that a test is about.
struct World {
  explicit World(Async<std::string> (*function)(Workflow), std::size_t cache = 1'000) {
    registry.workflow(flow, function).workflow(child_flow, echo_child);
    registry.activity(echo, [](ActivityContext&, std::string text) { return text; });
    registry.activity(flaky, [this](ActivityContext& context, int fails) {
      attempts.push_back(context.info().attempt);
      keys.push_back(context.idempotency_key());
      if (context.info().attempt <= fails) throw ApplicationFailed("not yet").type("NotYet");
      return context.info().attempt;
    });
    TestEnvironment::Options options;
    options.runs_cached_max = cache;
    options.replay_at_end = false;  // but in ~World, which may throw
    options.log = [this](LogLevel, const WorkflowInfo&, const std::string& text) {
      logged.push_back(text);
    };
    environment.emplace(registry, options);
  }
  ~World() noexcept(false) {
    if (std::uncaught_exceptions() == 0) environment->check();
  }
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  TypedRunHandle<std::string> start() {
    return environment->client().start(flow, StartOptions("flow"));
  }
  // The names of the events that commands left.
  std::string commands(const RunHandle& run) {
    std::string names;
    for (const Event& event : run.history()) {
      if (!is_of_command(event)) continue;
      names += (names.empty() ? "" : " ") + std::string(event.name());
    }
    return names;
  }
  static bool is_of_command(const Event& event) {
    const std::string_view name = event.name();
    return name.find("WorkflowTask") == name.npos && name.find("Signaled") == name.npos &&
           name != "WorkflowExecutionStarted" && name != "TimerFired" &&
           name != "ActivityTaskStarted";
  }

  Registry registry;
  std::vector<int> attempts;
  std::vector<std::string> keys;
  std::vector<std::string> logged;
  std::optional<TestEnvironment> environment;
};

}  // namespace

TEST_SUITE_BEGIN("workflow");

TEST_CASE("activities run side by side and all() keeps their order") {
  World world([](Workflow workflow) -> Async<std::string> {
    std::vector<Future<std::string>> futures;
    for (const char* text : {"a", "b", "c"}) {
      std::string word = text;
      futures.push_back(workflow.execute_activity(echo, quick(), word));
    }
    std::vector<std::string> words = co_await all(futures);
    co_return words[0] + words[1] + words[2];
  });
  const auto run = world.start();
  CHECK(run.result() == "abc");
  CHECK(world.commands(run) ==
        "ActivityTaskScheduled ActivityTaskScheduled ActivityTaskScheduled "
        "ActivityTaskCompleted ActivityTaskCompleted ActivityTaskCompleted "
        "WorkflowExecutionCompleted");
}

TEST_CASE("a retried activity keeps its idempotency key and says its attempt") {
  World world([](Workflow workflow) -> Async<std::string> {
    int attempt = co_await workflow.execute_activity(flaky, quick(), 2);
    co_return std::to_string(attempt);
  });
  CHECK(world.start().result() == "3");
  CHECK(world.attempts == std::vector<int>{1, 2, 3});
  CHECK(world.keys[0] == world.keys[2]);
}

TEST_CASE("an activity's failure keeps type, message and details") {
  World world([](Workflow workflow) -> Async<std::string> {
    const ActivityOptions once = quick().retry(2);
    std::string said;
    try {
      co_await workflow.execute_activity(flaky, once, 5);
    } catch (const ActivityFailed& failed) {
      said = failed.application()->type() + ": " + failed.application()->message();
    }
    co_return said;
  });
  CHECK(world.start().result() == "NotYet: not yet");
  CHECK(world.attempts.size() == 2);
}

TEST_CASE("what a workflow throws as Failed fails its run, with its type") {
  World world([](Workflow) -> Async<std::string> {
    throw ApplicationFailed("no disk").type("Disk");
    co_return "";
  });
  const auto run = world.start();
  try {
    run.result();
    FAIL("it should have failed");
  } catch (const WorkflowFailed& failed) {
    CHECK(failed.message() == "no disk");
    CHECK(failed.application()->type() == "Disk");
  }
}

TEST_CASE("any other exception fails the task, which is tried again") {
  static int runs = 0;
  World world([](Workflow) -> Async<std::string> {
    if (++runs < 3) throw std::runtime_error("a bug");
    co_return "fixed";
  });
  runs = 0;
  CHECK(world.start().result() == "fixed");
  REQUIRE(world.logged.size() == 2);
  CHECK(world.logged[0] == "workflow task failed, attempt 1: a bug");
}

TEST_CASE("a timer that is canceled in the task that starts it never was") {
  World world([](Workflow workflow) -> Async<std::string> {
    const Future<void> timer = workflow.sleep(1h);
    timer.cancel();
    try {
      co_await timer;
    } catch (const Canceled&) {
    }
    co_return "done";
  });
  const auto run = world.start();
  CHECK(run.result() == "done");
  CHECK(world.commands(run) == "WorkflowExecutionCompleted");
}

TEST_CASE("wait_until is true in time and false late, and cancels its timer") {
  const auto wait_for_release = [](Workflow workflow) -> Async<std::string> {
    bool released = false;
    workflow.on_signal("release", [&released] { released = true; });
    const auto is_released = [&released] { return released; };
    const bool in_time = co_await workflow.wait_until(is_released, 45min);
    co_return in_time ? "released" : "lease_expired";
  };
  SUBCASE("in time") {
    World world(wait_for_release);
    const auto run = world.start();
    world.environment->advance(44min);
    run.signal("release");
    CHECK(run.result() == "released");
    CHECK(world.commands(run) == "TimerStarted TimerCanceled WorkflowExecutionCompleted");
  }
  SUBCASE("late") {
    World world(wait_for_release);
    const auto run = world.start();
    world.environment->advance(45min);
    CHECK(run.result() == "lease_expired");
    CHECK(world.commands(run) == "TimerStarted WorkflowExecutionCompleted");
  }
  SUBCASE("the signal comes first, the timer fires before the worker is back") {
    World world(wait_for_release);
    const auto run = world.start();
    world.environment->settle();
    world.environment->stop_worker();
    run.signal("release");
    world.environment->advance(50min);
    world.environment->restart_worker();
    CHECK(run.result() == "released");
  }
  SUBCASE("the timer fires first, the signal comes before the worker is back") {
    World world(wait_for_release);
    const auto run = world.start();
    world.environment->settle();
    world.environment->stop_worker();
    world.environment->advance(50min);
    run.signal("release");
    world.environment->restart_worker();
    CHECK(run.result() == "lease_expired");
  }
  SUBCASE("the signal comes before the first task") {
    World world(wait_for_release);
    world.environment->stop_worker();
    const auto run = world.start();
    run.signal("release");
    world.environment->restart_worker();
    CHECK(run.result() == "released");
    CHECK(world.commands(run) == "WorkflowExecutionCompleted");
  }
}

TEST_CASE("a child gives its result, its failure and its run id") {
  World world([](Workflow workflow) -> Async<std::string> {
    const ChildOptions options = ChildOptions().id("kid");
    std::string good = "good";
    Child<std::string> child = co_await workflow.start_child(child_flow, options, good);
    std::string result = co_await child.result();
    std::string bad = "fail";
    try {
      co_await workflow.execute_child(child_flow, options, bad);
    } catch (const ChildFailed& failed) {
      result += ", " + failed.application()->type();
    }
    co_return child.id().value + " " + std::to_string(child.run_id().empty()) + " " + result;
  });
  CHECK(world.start().result() == "kid 0 child good, Told");
}

TEST_CASE("a child whose id is taken is ChildNotStarted; a signal reaches this very run") {
  World world([](Workflow workflow) -> Async<std::string> {
    const ChildOptions options = ChildOptions().id("kid");
    std::string wait = "wait";
    Child<std::string> child = co_await workflow.start_child(child_flow, options, wait);
    std::string second = "not refused";
    try {
      co_await workflow.start_child(child_flow, options, wait);
    } catch (const ChildNotStarted& refused) {
      second = refused.is_already_started() ? "refused" : "odd";
    }
    std::string note = "x";
    co_await child.signal("note", note);
    std::string result = co_await child.result();
    co_return second + ", " + result;
  });
  CHECK(world.start().result() == "refused, noted x");
}

TEST_CASE("one task cancels a child and starts the next of its id") {
  World world([](Workflow workflow) -> Async<std::string> {
    const ChildOptions options = ChildOptions().id("kid");
    std::string wait = "wait";
    Child<std::string> child = co_await workflow.start_child(child_flow, options, wait);
    child.cancel();
    std::string second = "not refused";
    try {
      co_await workflow.start_child(child_flow, options, wait);
    } catch (const ChildNotStarted&) {
      second = "refused";
    }
    try {
      co_await child.result();
    } catch (const Canceled&) {
      second += ", canceled";
    }
    co_return second;
  });
  CHECK(world.start().result() == "refused, canceled");
}

TEST_CASE("signals to other runs are delivered, or say that they reached nobody") {
  World world([](Workflow workflow) -> Async<std::string> {
    WorkflowExecution nobody{WorkflowId("nobody"), {}};
    try {
      co_await workflow.signal_external(nobody, "note");
    } catch (const ExternalFailed& failed) {
      co_return failed.message();
    }
    co_return "delivered";
  });
  CHECK(world.start().result() ==
        "the signal reached nobody: there is no open run nobody of that kind");
}

TEST_CASE("side effects run once, random streams and uuids are the run's own") {
  static int rolled = 0;
  World world(
      [](Workflow workflow) -> Async<std::string> {
        const int first = workflow.side_effect([] { return ++rolled; });
        co_await workflow.sleep(1s);
        const int second = workflow.side_effect([] { return ++rolled; });
        const std::string id = workflow.uuid();
        co_await workflow.sleep(1s);
        std::vector<int> order{0, 1, 2, 3};
        workflow.random("slots").shuffle(order);
        std::string text;
        for (const int slot : order) text += std::to_string(slot);
        co_return std::to_string(first) + std::to_string(second) + " " + std::to_string(id.size()) +
            " " + std::to_string(text.size());
      },
      0);
  rolled = 0;
  CHECK(world.start().result() == "12 36 4");
  CHECK(rolled == 2);
}

TEST_CASE("what a run knows of its history is the same on replay") {
  World world([](Workflow workflow) -> Async<std::string> {
    std::string seen = std::to_string(workflow.info().history_events);
    co_await workflow.sleep(1s);
    seen += " " + std::to_string(workflow.info().history_events);
    workflow.upsert_memo("seen", seen);
    co_await workflow.sleep(1s);
    co_return seen;
  });
  const auto run = world.start();
  world.environment->advance(1500ms);
  world.environment->restart_worker();
  CHECK(run.result() == "3 8");
}

TEST_CASE("a cancel request reaches every await; shielded work goes on") {
  World world([](Workflow workflow) -> Async<std::string> {
    bool canceled = false;
    try {
      co_await workflow.sleep(10h);
    } catch (const Canceled&) {
      canceled = true;
    }
    const Workflow shielded = workflow.shielded();
    std::string text = "clean";
    std::string word = co_await shielded.execute_activity(echo, quick(), text);
    if (canceled) throw Canceled();
    co_return word;
  });
  const auto run = world.start();
  world.environment->advance(1h);
  run.cancel();
  CHECK_THROWS_AS(run.result(), Canceled);
  CHECK(world.commands(run) ==
        "TimerStarted WorkflowExecutionCancelRequested TimerCanceled ActivityTaskScheduled "
        "ActivityTaskCompleted WorkflowExecutionCanceled");
}

TEST_CASE("a part is canceled by itself") {
  World world([](Workflow workflow) -> Async<std::string> {
    const Workflow part = workflow.cancelable();
    const Future<void> inside = part.sleep(1h);
    const Future<void> outside = workflow.sleep(1min);
    co_await workflow.sleep(1s);
    part.cancel();
    std::string text;
    try {
      co_await inside;
    } catch (const Canceled&) {
      text = "inside canceled";
    }
    co_await outside;
    try {
      co_await part.sleep(1s);
    } catch (const Canceled&) {
      text += ", and nothing begins there any more";
    }
    co_return text;
  });
  CHECK(world.start().result() == "inside canceled, and nothing begins there any more");
}

TEST_CASE("any() is the first; spawned coroutines run beside") {
  World world([](Workflow workflow) -> Async<std::string> {
    std::vector<Future<void>> timers{workflow.sleep(3s), workflow.sleep(1s), workflow.sleep(2s)};
    std::size_t first = co_await any(timers);
    std::string text = "spawned";
    const Future<std::string> spawned =
        workflow.spawn(workflow.execute_child(child_flow, ChildOptions(), text));
    std::string result = co_await spawned;
    co_return std::to_string(first) + " " + result;
  });
  CHECK(world.start().result() == "1 child spawned");
}

TEST_CASE("a signal handler may be a coroutine") {
  World world([](Workflow workflow) -> Async<std::string> {
    std::string text;
    // The run keeps its handlers, and their captures with them, for as long as it lives.
    // NOLINTNEXTLINE(cppcoreguidelines-avoid-capturing-lambda-coroutines)
    const auto handler = [&text, workflow](std::string word) -> Async<void> {
      std::string echoed = co_await workflow.execute_activity(echo, quick(), word);
      text += echoed;
    };
    workflow.on_signal("say", handler);
    const auto said_all = [&text] { return text.size() >= 4; };
    co_await workflow.wait_until(said_all);
    co_return text;
  });
  const auto run = world.start();
  run.signal("say", std::string("ab"));
  run.signal("say", std::string("cd"));
  CHECK(run.result() == "abcd");
}

TEST_CASE("a run that ends while its handlers run is told so") {
  World world([](Workflow workflow) -> Async<std::string> {
    // NOLINTNEXTLINE(cppcoreguidelines-avoid-capturing-lambda-coroutines): the run keeps it
    const auto handler = [workflow]() -> Async<void> { co_await workflow.sleep(1h); };
    workflow.on_signal("slow", handler);
    co_await workflow.sleep(1s);
    if (workflow.handlers_running() > 0 && workflow.now() > workflow.start_time() + 1min) {
      const auto all_done = [workflow] { return workflow.handlers_running() == 0; };
      co_await workflow.wait_until(all_done);
    }
    co_return "done";
  });
  const auto run = world.start();
  run.signal("slow");
  world.environment->advance(2s);
  REQUIRE(!world.logged.empty());
  CHECK(world.logged[0].find("ends while handlers of these signals still run: \"slow\"") !=
        std::string::npos);
  world.environment->stop_worker();
  run.terminate("enough");
}

TEST_CASE("queries see the run, open and closed, and cannot change it") {
  World world([](Workflow workflow) -> Async<std::string> {
    int epoch = 0;
    workflow.on_query("epoch", [&epoch] { return epoch; });
    const auto words = std::make_shared<std::vector<std::string>>(1, "one");
    workflow.on_query("words", words, [](const std::vector<std::string>& all, int more) {
      return static_cast<int>(all.size()) + more - 1;
    });
    workflow.on_query("bad", [workflow] {
      workflow.sleep(1s);
      return 0;
    });
    for (; epoch < 3; ++epoch) co_await workflow.sleep(1min);
    co_return "done";
  });
  const auto run = world.start();
  world.environment->advance(90s);
  CHECK(run.query<int>("epoch") == 1);
  CHECK_THROWS_WITH_AS(run.query<int>("bad"), "a query handler of \"flow\" changes its run", Error);
  CHECK_THROWS_WITH_AS(run.query<int>("what"),
                       "workflow \"flow\" has no query \"what\"; it has: bad, epoch, words", Error);
  world.environment->restart_worker();
  CHECK(run.query<int>("epoch") == 1);
  CHECK(run.result() == "done");
  CHECK_THROWS_WITH_AS(run.query<int>("epoch"),
                       "the run has closed, and what query \"epoch\" reads went with it; to have "
                       "it answered still, register it with a state of its own",
                       Error);
  CHECK(run.query<int>("words", 2) == 2);
}

TEST_CASE("continue_as_new begins another run with other input") {
  constexpr WorkflowName<std::string(int)> count{"count"};
  Registry registry;
  Async<std::string> (*const counting)(Workflow, int) = [](Workflow workflow,
                                                           int left) -> Async<std::string> {
    co_await workflow.sleep(1s);
    if (left > 0) workflow.continue_as_new(left - 1);
    co_return "counted";
  };
  registry.workflow(count, counting);
  TestEnvironment environment(registry);
  CHECK(environment.client().start(count, StartOptions("c"), 3).result() == "counted");
  CHECK(environment.now().time_since_epoch() % 60s == 4s);
}

TEST_CASE("a handle that is used outside its workflow says so") {
  static std::optional<Workflow> leaked;
  World world([](Workflow workflow) -> Async<std::string> {
    leaked.emplace(workflow);
    co_await workflow.sleep(1h);
    co_return "";
  });
  world.start();
  world.environment->settle();
  CHECK_THROWS_AS(leaked->sleep(1s), Misuse);
  leaked.reset();
}

TEST_CASE("a million awaits that end at once do not grow the stack") {
  World world([](Workflow) -> Async<std::string> {
    const auto one = []() -> Async<int> { co_return 1; };
    std::int64_t sum = 0;
    for (int i = 0; i < 1'000'000; ++i) {
      Async<int> next = one();
      const int value = co_await next;
      sum += value;
    }
    co_return std::to_string(sum);
  });
  CHECK(world.start().result() == "1000000");
}

TEST_CASE("frames are destroyed wherever they wait, and their destructors do nothing") {
  static int destroyed = 0;
  struct Guard {
    Workflow workflow;
    ~Guard() {
      ++destroyed;
      if (workflow.is_closing()) return;
      workflow.upsert_memo("released", true);
    }
  };
  World world([](Workflow workflow) -> Async<std::string> {
    Guard guard(workflow);
    std::string text = "wait";
    co_await workflow.execute_child(child_flow, ChildOptions(), text);
    co_return "";
  });
  const auto run = world.start();
  world.environment->settle();
  destroyed = 0;
  world.environment->restart_worker();
  CHECK(destroyed == 1);
  CHECK(world.commands(run) ==
        "StartChildWorkflowExecutionInitiated ChildWorkflowExecutionStarted");
}

TEST_CASE("a restarted worker and a restarted server lose nothing") {
  World world([](Workflow workflow) -> Async<std::string> {
    std::string text = "a";
    std::string words;
    for (int i = 0; i < 3; ++i) {
      words += co_await workflow.execute_activity(echo, quick(), text);
      co_await workflow.sleep(1min);
    }
    co_return words;
  });
  const auto run = world.start();
  world.environment->advance(30s);
  world.environment->restart_worker();
  world.environment->advance(1min);
  world.environment->restart_server();
  CHECK(run.result() == "aaa");
}

TEST_SUITE_END();
