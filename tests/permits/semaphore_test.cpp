// How permits are asked for: orders, waiting, refusals.
#include <algorithm>
#include <cmath>

#include "tests/permits/world.h"

using namespace permit;
using namespace permit::permits;
using namespace permit::test;
using namespace permit::worker;

namespace {

double minutes(Duration duration) { return std::chrono::duration<double>(duration).count() / 60; }

// Holds the one slot of pool "gpu" for ever.
Async<std::string> holder(Workflow workflow) {
  const Semaphore gpus(workflow, "gpu", 1);
  const auto options = PermitOptions().lease(24h * 300);
  const Permit permit = co_await gpus.acquire(options);
  bool done = false;
  workflow.on_signal("done", [&done] { done = true; });
  const auto is_done = [&done] { return done; };
  co_await workflow.wait_until(is_done);
  co_return "held";
}

// Asks as its number says.
Async<std::string> asker(Workflow workflow, int kind) {
  const Semaphore gpus(workflow, "gpu", 1);
  PermitOptions options;
  if (kind == 0) options.fair();
  if (kind == 2) options.timeout(2min);
  if (kind == 3) options.fair().timeout(2min);
  if (kind == 4) options.plain().timeout(30s);
  if (kind == 5) options.fair().timeout(0s);
  if (kind >= 10) options.fair().priority(kind - 10);
  try {
    const Permit permit = co_await gpus.acquire(options);
    co_return "fence " + std::to_string(permit.fence());
  } catch (const PermitTimedOut&) {
    co_return "timed out after " + std::to_string((workflow.now() - workflow.start_time()) / 1s);
  } catch (const RemovedFromLine&) {
    co_return "removed";
  }
}

// The world of `asker`, where somebody holds the slot.
struct Contended : PermitWorld {
  explicit Contended(std::size_t cache = 1'000) : PermitWorld(asker, cache) {
    registry.workflow(flow, holder);
    holding.emplace(PermitWorld::start("holder"));
    environment->settle();
  }
  std::optional<Run> holding;
};

}  // namespace

TEST_CASE("any: rounds at 5, 10, 20, 40 and 60 s, give or take 20 %, then a place in line") {
  Contended world;
  const auto run = world.start("asker", 1);
  world.environment->advance(10min);
  const auto timers = PermitWorld::all<event::TimerStarted>(run);
  const std::vector<double> pauses = {5, 10, 20, 40, 60};
  REQUIRE(timers.size() == pauses.size());
  for (std::size_t i = 0; i < pauses.size(); ++i) {
    const double pause = minutes(timers[i].start_to_fire_timeout) * 60;
    CHECK(pause >= pauses[i] * 0.8);
    CHECK(pause <= pauses[i] * 1.2);
    CHECK(timers[i].wake_on_pool.value == "gpu");
  }
  // A week adds nothing to that.
  const std::size_t events = run.history().size();
  CHECK(events < 200);
  world.environment->advance(24h * 7);
  CHECK(run.history().size() == events);
  world.holding->signal("done");
  CHECK(run.result() == "fence 2");
}

TEST_CASE("fair: a day in line adds no event, and the release starts the next in its commit") {
  Contended world;
  const auto run = world.start("asker", 0);
  world.environment->settle();
  const std::size_t events = run.history().size();
  CHECK(events < 20);
  world.environment->advance(24h);
  CHECK(run.history().size() == events);
  const Time freed = world.environment->now();
  world.holding->signal("done");
  CHECK(run.result() == "fence 2");
  const auto permit = world.permit_run("permit:gpu:0").history();
  CHECK(permit.front().event_time == freed);
}

TEST_CASE("A sleeper is woken when a slot frees") {
  Contended world;
  const auto run = world.start("asker", 1);
  world.environment->advance(50s);  // in its fourth pause, of 32 s at least
  const auto timers = PermitWorld::all<event::TimerStarted>(run);
  REQUIRE(timers.size() == 4);
  const Time freed = world.environment->now();
  world.holding->signal("done");
  world.environment->settle();
  CHECK(run.result() == "fence 2");
  CHECK(world.environment->now() == freed);
}

TEST_CASE("A timeout ends every way of waiting, when it says") {
  Contended world;
  for (const int kind : {2, 3, 4, 5}) {
    const auto run = world.start("asker" + std::to_string(kind), kind);
    const std::string seconds = kind == 5 ? "0" : kind == 4 ? "30" : "120";
    CHECK(run.result() == "timed out after " + seconds);
  }
}

TEST_CASE("Priority orders the line, then arrival") {
  Contended world;
  std::vector<PermitWorld::Run> runs;
  for (const int priority : {3, 5, 1, 3, 1, 2}) {
    runs.push_back(world.start("p" + std::to_string(runs.size()), 10 + priority));
    world.environment->settle();
  }
  world.holding->signal("done");
  std::string fences;
  for (const auto& run : runs) fences += run.result().substr(6) + " ";
  CHECK(fences == "5 7 2 6 3 4 ");
}

// --- Cancellation ---

TEST_CASE("A cancellation at any moment of an acquire leaves nothing held") {
  for (const int kind : {0, 1, 4}) {
    for (const bool is_free : {true, false}) {
      for (int steps = 0; steps < 25; ++steps) {
        CAPTURE(kind);
        CAPTURE(is_free);
        CAPTURE(steps);
        Contended world(steps % 2 == 0 ? 0 : 1'000);
        if (is_free) {
          world.holding->signal("done");
          world.holding->result();
        }
        const auto run = world.start("asker", kind);
        for (int i = 0; i < steps; ++i) world.environment->work();
        try {
          run.cancel();
        } catch (const Error& ended) {
          CHECK(is_free);
          CHECK(ended.code() == ErrorCode::not_found);
        }
        if (!is_free && steps % 3 == 0)
          world.holding->signal("done");  // the grant and the cancel cross
        try {
          const std::string result = run.result();
          CHECK(result.starts_with("fence "));
        } catch (const Canceled&) {
          // Nothing is held, as what follows shows.
        }
        world.environment->settle();
        if (is_free || steps % 3 == 0) {
          const Outcome outcome = PermitWorld::outcome(world.permit_run("permit:gpu:0"));
          CHECK(outcome == Outcome::released);
        }
        const auto next = world.start("next", 3);
        CHECK(next.result().starts_with(is_free || steps % 3 == 0 ? "fence " : "timed out"));
      }
    }
  }
}

namespace {

// Gives up waiting after a minute.
Async<std::string> impatient(Workflow workflow, int) {
  const Workflow inside = workflow.cancelable();
  const Semaphore gpus(inside, "gpu", 1);
  const auto wait = [](Semaphore from) -> Async<void> {
    const Permit permit = co_await from.acquire(PermitOptions().fair());
  };
  inside.spawn(wait(gpus));
  co_await workflow.sleep(1min);
  inside.cancel();
  co_await workflow.sleep(1min);
  co_return "gave up";
}

}  // namespace

TEST_CASE("Who gives up waiting and goes on holds nothing") {
  PermitWorld world(impatient);
  world.registry.workflow(flow, holder);
  const auto holding = world.start("holder");
  world.environment->settle();
  const auto run = world.start("impatient", 0);
  world.environment->advance(90s);
  holding.signal("done");
  CHECK(run.result() == "gave up");
  world.environment->advance(1h);
  CHECK(PermitWorld::outcome(world.permit_run("permit:gpu:0")) == Outcome::released);
}

namespace {

Async<std::string> tries(Workflow workflow, int kind) {
  const Semaphore gpus(workflow, "gpu", 1);
  PermitOptions options;
  if (kind == 1) options.fair();
  if (kind == 2) options.plain();
  const std::optional<Permit> permit = co_await gpus.try_acquire(options);
  const bool waited = workflow.now() > workflow.start_time();
  co_return std::string(permit ? "granted" : "none") + (waited ? ", late" : "");
}

}  // namespace

TEST_CASE("try_acquire does not wait, whatever the order") {
  PermitWorld world(tries);
  world.registry.workflow(flow, holder);
  const auto holding = world.start("holder");
  world.environment->settle();
  for (const int kind : {0, 1, 2}) CHECK(world.start("none", kind).result() == "none");
  holding.signal("done");
  holding.result();
  for (const int kind : {0, 1, 2}) CHECK(world.start("granted", kind).result() == "granted");
}

// --- The draw ---

namespace {

Async<std::string> draw(Workflow workflow) {
  const Semaphore gpus(workflow, "gpu", 4);
  const Permit permit = co_await gpus.acquire();
  co_return permit.slot();
}

}  // namespace

TEST_CASE("The first slot that is tried is uniform over 4,000 callers") {
  PermitWorld world(draw);
  std::map<std::string, int> first;
  constexpr int callers = 4'000;
  for (int i = 0; i < callers; ++i) {
    const auto run = world.start("draw" + std::to_string(i));
    const std::string slot = run.result();
    ++first[slot];
    const auto asked = PermitWorld::all<event::StartChildWorkflowExecutionInitiated>(run);
    REQUIRE(asked.at(0).permit->slots.at(0).value == slot);
  }
  REQUIRE(first.size() == 4);
  double chi_square = 0;
  for (const auto& [slot, times] : first) {
    const double off = times - callers / 4.0;
    chi_square += off * off / (callers / 4.0);
  }
  CHECK(chi_square < 11.34);  // p > 0.01 with three degrees of freedom
}

// --- Refusals ---

namespace {

Async<std::string> refused(Workflow workflow, int kind) {
  try {
    if (kind == 0) {
      const Semaphore pool(workflow, "known", 2);
      const Permit permit = co_await pool.acquire();
    }
    if (kind == 1) {
      const Semaphore pool(workflow, "known", 3);
      const Permit permit = co_await pool.acquire();
    }
    if (kind == 2) {
      const Semaphore pool(workflow, "known", 2);
      const std::vector<Permit> permits = co_await pool.acquire_n(3);
    }
    if (kind == 3) {
      const Semaphore pool(workflow, "known", 2);
      const std::vector<Permit> both = co_await pool.acquire_n(2);
      const Permit third = co_await pool.acquire();
    }
    if (kind == 4) {
      const Semaphore pool(workflow, "unheard-of");
      const Permit permit = co_await pool.acquire();
    }
    co_return "granted";
  } catch (const PermitError& error) {
    co_return error.type() + ": " + error.message();
  }
}

}  // namespace

TEST_CASE("What only the server knows comes as an exception of its own, with the numbers") {
  PermitWorld world(refused);
  CHECK(world.start("first", 0).result() == "granted");
  const std::string mismatch = world.start("belief", 1).result();
  CHECK(mismatch.starts_with("CapacityMismatch: "));
  CHECK(mismatch.find("2") != std::string::npos);
  CHECK(mismatch.find("3") != std::string::npos);
  CHECK(world.start("many", 2).result().starts_with("TooManySlots: "));
  CHECK(world.start("itself", 3).result().starts_with("SelfDeadlock: "));
  CHECK(world.start("unknown", 4).result().starts_with("CapacityMismatch: "));
  CHECK(world.start("unchanged", 0).result() == "granted");
}

namespace {

// What is thrown before anything is asked for.
Async<std::string> invalid(Workflow workflow, int kind) {
  using Names = std::vector<std::string>;
  const double nan = std::nan("");
  try {
    if (kind == 0) const Semaphore bad(workflow, "gpu", 0);
    if (kind == 1) const Semaphore bad(workflow, "gpu", -3);
    if (kind == 2) const Semaphore bad(workflow, "gpu", Names());
    if (kind == 3) const Semaphore bad(workflow, "gpu", Names(2, "a"));
    if (kind == 4) const Semaphore bad(workflow, "g:pu", 1);
    if (kind == 5) const Semaphore bad(workflow, "gpu", Names(1, "a:b"));
    if (kind == 6) const Semaphore bad(workflow, "", 1);
    const Semaphore gpus(workflow, "gpu", 2);
    PermitOptions options;
    if (kind == 7) options.lease(0s);
    if (kind == 8) options.lease(-1s);
    if (kind == 9) options.lease(PermitOptions::Seconds(nan));
    if (kind == 10) options.timeout(-1s);
    if (kind == 11) options.backoff(0s, 1min);
    if (kind == 12) options.backoff(2min, 1min);
    if (kind == 13) options.priority(6);
    if (kind == 14) options.plain().fair();
    if (kind == 15) options.plain();
    if (kind == 18) options.reason(std::string(1'001, 'x'));
    if (kind == 19) options.label("", "x");
    if (kind == 20) options.label("x", "a\nb");
    if (kind == 21) options.task_queue(std::string(256, 'x'));
    for (int i = 0; kind == 22 && i < 33; ++i) options.label("label" + std::to_string(i), "x");
    const int count = kind == 15 ? 2 : kind == 16 ? 0 : kind == 17 ? 10'001 : 1;
    const std::vector<Permit> permits = co_await gpus.acquire_n(count, options);
    co_return "granted";
  } catch (const InvalidPermit& error) {
    co_return error.type();
  }
}

}  // namespace

TEST_CASE("Invalid use throws before any command") {
  PermitWorld world(invalid);
  for (int kind = 0; kind <= 22; ++kind) {
    CAPTURE(kind);
    const auto run = world.start("invalid" + std::to_string(kind), kind);
    CHECK(run.result() == "InvalidPermit");
    CHECK(run.history().size() == 5);
  }
  CHECK(world.start("valid", 23).result() == "granted");
}

// --- Several at once ---

namespace {

Async<std::string> two_of_three(Workflow workflow, int) {
  const Semaphore gpus(workflow, "gpu", 3);
  const auto options = PermitOptions().fair();
  for (int i = 0; i < 5; ++i) {
    const std::vector<Permit> permits = co_await gpus.acquire_n(2, options);
    if (permits.size() != 2 || permits[0].slot() == permits[1].slot()) co_return "not two";
    co_await workflow.sleep(1s);
  }
  co_return "done";
}

}  // namespace

TEST_CASE("Several slots come in one commit, and callers who want several all get on") {
  PermitWorld world(two_of_three);
  std::vector<PermitWorld::Run> runs;
  for (int i = 0; i < 20; ++i) runs.push_back(world.start("two" + std::to_string(i), i));
  for (const auto& run : runs) {
    CHECK(run.result() == "done");
    const auto history = run.history();
    for (std::size_t i = 0; i + 1 < history.size(); ++i) {
      const bool first =
          history[i].get_if<event::ChildWorkflowExecutionStarted>() != nullptr &&
          (i == 0 || history[i - 1].get_if<event::ChildWorkflowExecutionStarted>() == nullptr);
      if (!first) continue;
      REQUIRE(history[i + 1].get_if<event::ChildWorkflowExecutionStarted>() != nullptr);
      CHECK(history[i].event_time == history[i + 1].event_time);
    }
  }
}

// --- plain ---

namespace {

// As documented: a wait that is longer than a history goes on in the next run.
Async<std::string> waits_plainly(Workflow workflow, int rounds) {
  const Semaphore gpus(workflow, "gpu", 1);
  const auto options = PermitOptions().plain();
  bool is_long = false;
  try {
    const Permit permit = co_await gpus.acquire(options);
    co_return "after " + std::to_string(rounds) + " runs, slot " + permit.slot();
  } catch (const HistoryNearLimit&) {
    is_long = true;
  }
  if (is_long) workflow.continue_as_new(rounds + 1);
  co_return "never";
}

}  // namespace

TEST_CASE(
    "plain: a week of probing and backing off, over several runs, without the server's help") {
  PermitWorld world(waits_plainly);
  world.registry.workflow(flow, holder);
  const auto holding = world.start("holder");
  world.environment->settle();
  const auto run = world.start("plain", 1);
  world.environment->advance(24h * 7);
  holding.signal("done");
  const std::string result = run.result();
  CHECK(result.find("slot 0") != std::string::npos);
  CHECK(result > "after 2");
  for (const auto& timer : PermitWorld::all<event::TimerStarted>(run)) {
    CHECK(timer.wake_on_pool.value.empty());
  }
  CHECK(PermitWorld::outcome(world.permit_run("permit:gpu:0")) == Outcome::released);
}

namespace {

Async<std::string> plain_holder(Workflow workflow, int kind) {
  const Semaphore gpus(workflow, "gpu", 2);
  const auto options = PermitOptions().plain().lease(1min);
  const Permit permit = co_await gpus.acquire(options);
  const std::optional<Permit> other = co_await gpus.try_acquire(options);
  const std::optional<Permit> none = co_await gpus.try_acquire(options);
  if (!other || none) co_return "not two";
  if (kind == 1) {
    co_await workflow.sleep(2min);
  }
  const std::optional<Outcome> outcome = co_await permit.release();
  if (!outcome) co_return "pending";
  co_return outcome == Outcome::released ? "released" : "expired";
}

}  // namespace

TEST_CASE("plain permits end by their own code: released, expired, or not known yet") {
  PermitWorld world(plain_holder);
  CHECK(world.start("released", 0).result() == "released");
  CHECK(world.start("expired", 1).result() == "expired");
  CHECK(PermitWorld::outcome(world.permit_run("permit:gpu:0")) != Outcome::unspecified);
}

// --- The line ---

namespace {

Async<std::string> in_order(Workflow workflow, int) {
  const Semaphore gpus(workflow, "gpu", 1);
  const auto options = PermitOptions().fair();
  const Permit permit = co_await gpus.acquire(options);
  co_await workflow.sleep(1s);
  co_return std::to_string(permit.fence());
}

}  // namespace

TEST_CASE("fair: 50 waiters in order, while the server restarts and newcomers arrive") {
  PermitWorld world(in_order);
  std::vector<PermitWorld::Run> runs;
  for (int i = 0; i < 50; ++i) {
    runs.push_back(world.start("w" + std::to_string(i), i));
    world.environment->settle();
  }
  for (int grant = 0; grant < 50; ++grant) {
    world.environment->advance(1s);
    runs.push_back(world.start("new" + std::to_string(grant), grant));
    if (grant % 5 == 4) world.environment->restart_server();
  }
  for (std::size_t i = 0; i < runs.size(); ++i) CHECK(runs[i].result() == std::to_string(i + 1));
}

// --- A clean job ---

namespace {

Async<std::string> clean(Workflow workflow, int cycles) {
  const Semaphore gpus(workflow, "gpu", 4);
  for (int i = 1; i < cycles; ++i) {
    const Permit permit = co_await gpus.acquire();
    const std::optional<Outcome> outcome = co_await permit.release();
    if (outcome != Outcome::released) co_return "not released";
  }
  const Permit permit = co_await gpus.acquire();
  co_return "clean";  // right after
}

}  // namespace

TEST_CASE("A clean job's permit ends released, 10,000 times in a row") {
  PermitWorld world(clean);
  for (int i = 0; i < 2'000; ++i) {
    REQUIRE(world.start("once" + std::to_string(i), 1).result() == "clean");
  }
  for (int i = 0; i < 40; ++i) {
    REQUIRE(world.start("often" + std::to_string(i), 200).result() == "clean");
  }
}
