// What a permit in hand does: how it is given back, lost, renewed.
#include "tests/permits/world.h"

using namespace permit;
using namespace permit::permits;
using namespace permit::test;
using namespace permit::worker;

namespace {

using Strings = std::vector<std::string>;

Async<std::string> hold_and_return(Workflow workflow) {
  const Semaphore gpus(workflow, "gpu", 2);
  const Permit permit = co_await gpus.acquire();
  co_await workflow.sleep(1min);
  co_return permit.id() + " " + std::to_string(permit.fence());
}

}  // namespace

TEST_CASE("A permit is a running child; leaving its scope releases it, in the closing commit") {
  PermitWorld world(hold_and_return);
  const auto run = world.start("train");
  world.environment->settle();
  const auto children = PermitWorld::all<event::ChildWorkflowExecutionStarted>(run);
  REQUIRE(children.size() == 1);
  const std::string id = children[0].workflow_execution->workflow_id.value;
  CHECK((id == "permit:gpu:0" || id == "permit:gpu:1"));
  CHECK(world.permit_run(id).query<bool>("held"));
  CHECK(run.result() == id + " 1");
  CHECK(PermitWorld::outcome(world.permit_run(id)) == Outcome::released);
  CHECK(world.permit_run(id).result() == "released");
  CHECK_FALSE(world.permit_run(id).query<bool>("held"));
  // Acquire, sleep, release and end: a command each, and no other.
  const auto events = PermitWorld::events_of(run);
  CHECK(events.at("SignalExternalWorkflowExecutionInitiated") == 1);
  CHECK(events.at("TimerStarted") == 1);
  CHECK(events.at("WorkflowTaskCompleted") == 3);
}

namespace {

Async<std::string> all_ways_out(Workflow workflow) {
  const Semaphore gpus(workflow, "gpu", 1);
  std::string outcomes;
  try {
    const Permit permit = co_await gpus.acquire();
    throw ApplicationFailed("by exception");
  } catch (const ApplicationFailed&) {
    outcomes += "thrown ";
  }
  Permit permit = co_await gpus.acquire();
  const std::optional<Outcome> first = co_await permit.release();
  outcomes += first == Outcome::released ? "released " : "not ";
  const std::optional<Outcome> again = co_await permit.release();
  outcomes += again == Outcome::released ? "again " : "not ";
  permit = co_await gpus.acquire();
  Permit moved = std::move(permit);
  outcomes += moved.is_held() ? "held " : "not ";
  std::optional<Permit> refused = co_await gpus.try_acquire();
  outcomes += refused ? "two holders " : "full ";
  {
    const Permit gone = std::move(moved);
  }
  refused = co_await gpus.try_acquire();
  outcomes += refused ? "free" : "leaked";
  co_return outcomes;
}

}  // namespace

TEST_CASE("Every way out of a scope releases, once, and a moved permit with its new owner") {
  for (const std::size_t cache : {0U, 1'000U}) {
    PermitWorld world(all_ways_out, cache);
    const auto run = world.start("ways");
    CHECK(run.result() == "thrown released again held full free");
    CHECK(PermitWorld::events_of(run).at("SignalExternalWorkflowExecutionInitiated") == 4);
  }
}

namespace {

Async<std::string> keep_for_an_hour(Workflow workflow) {
  const Semaphore gpus(workflow, "gpu", 1);
  const auto options = PermitOptions().lease(2h);
  const Permit permit = co_await gpus.acquire(options);
  for (int i = 0; i < 60; ++i) co_await workflow.sleep(1min);
  co_return permit.is_held() ? "held" : "lost";
}

}  // namespace

TEST_CASE("A run that leaves memory keeps its permit") {
  PermitWorld world(keep_for_an_hour, 0);  // after every task
  const auto run = world.start("keep");
  for (int i = 0; i < 5; ++i) {
    world.environment->advance(5min);
    world.environment->restart_worker();
    world.environment->restart_server();
    CHECK(world.permit_run("permit:gpu:0").query<bool>("held"));
  }
  CHECK(run.result() == "held");
  CHECK(PermitWorld::events_of(run).at("SignalExternalWorkflowExecutionInitiated") == 1);
}

// --- Sections ---

namespace {

constexpr ActivityName<std::string(std::string)> work{"work"};

Async<std::string> section(Workflow workflow, int kind) {
  const Semaphore gpus(workflow, "gpu", 1);
  const auto options = PermitOptions().lease(10min).renewed_by_heartbeats(false);
  std::string done;
  // with_permit keeps the closure.
  // NOLINTNEXTLINE(cppcoreguidelines-avoid-capturing-lambda-coroutines)
  const auto body = [kind, &done](Workflow inside, Held permit) -> Async<std::string> {
    if (kind == 1) throw ApplicationFailed("in the section");
    const Duration needed = kind == 0 ? 1min : 20min;
    try {
      co_await inside.sleep(needed);
    } catch (const Canceled&) {
      done =
          "stopped at " + std::to_string((inside.now() - inside.start_time()).count() / 60'000'000);
      if (kind == 4) co_return "ignored";
      throw;
    }
    co_return "slot " + permit.slot();
  };
  try {
    const std::string result = co_await gpus.with_permit(options, body);
    co_return result;
  } catch (const PermitLost& lost) {
    co_return std::string(lost.outcome() == Outcome::lease_expired ? "expired, " : "forced, ") +
        done;
  }
}

}  // namespace

TEST_CASE("with_permit releases after a result, an exception and a cancellation") {
  PermitWorld world(section);
  CHECK(world.start("result", 0).result() == "slot 0");
  CHECK(PermitWorld::outcome(world.permit_run("permit:gpu:0")) == Outcome::released);
  CHECK_THROWS_WITH_AS(world.start("throws", 1).result(), doctest::Contains("in the section"),
                       WorkflowFailed);
  CHECK(PermitWorld::outcome(world.permit_run("permit:gpu:0")) == Outcome::released);
  const auto run = world.start("canceled", 2);
  world.environment->advance(1min);
  run.cancel();
  CHECK_THROWS_AS(run.result(), Canceled);
  CHECK(PermitWorld::outcome(world.permit_run("permit:gpu:0")) == Outcome::released);
}

TEST_CASE("A permit that is lost cancels its section, and the holder knows how") {
  PermitWorld world(section);
  CHECK(world.start("expires", 3).result() == "expired, stopped at 10");
  CHECK(PermitWorld::outcome(world.permit_run("permit:gpu:0")) == Outcome::lease_expired);
  CHECK(world.start("ignores", 4).result() == "expired, stopped at 10");
  const auto run = world.start("forced", 3);
  world.environment->advance(2min);
  world.permit_run("permit:gpu:0").terminate("operator");
  CHECK(run.result() == "forced, stopped at 2");
  CHECK(PermitWorld::outcome(world.permit_run("permit:gpu:0")) == Outcome::force_released);
}

TEST_CASE("A terminated holder's permit ends in that commit") {
  PermitWorld world(keep_for_an_hour);
  const auto run = world.start("keep");
  world.environment->advance(1min);
  run.terminate("gone");
  CHECK(PermitWorld::outcome(world.permit_run("permit:gpu:0")) == Outcome::holder_closed);
}

namespace {

bool bug_is_fixed = false;

Async<std::string> section_with_bug(Workflow workflow) {
  const Semaphore gpus(workflow, "gpu", 1);
  const auto options = PermitOptions().lease(10h);
  const auto body = [](Workflow inside, Held permit) -> Async<std::string> {
    co_await inside.sleep(1min);
    if (!bug_is_fixed) throw std::out_of_range("a bug");
    co_await inside.sleep(1min);
    co_return permit.is_held() ? "held" : "lost";
  };
  const std::string result = co_await gpus.with_permit(options, body);
  co_return result;
}

}  // namespace

TEST_CASE("A bug in a section fails its task; once it is fixed, the run goes on with its permit") {
  for (const std::size_t cache : {0U, 1'000U}) {
    bug_is_fixed = false;
    PermitWorld world(section_with_bug, cache);
    const auto run = world.start("buggy");
    world.environment->advance(5min);
    CHECK(world.permit_run("permit:gpu:0").query<bool>("held"));
    CHECK(PermitWorld::events_of(run).at("WorkflowTaskFailed") == 1);
    bug_is_fixed = true;
    world.environment->restart_worker();
    CHECK(run.result() == "held");
    CHECK(PermitWorld::outcome(world.permit_run("permit:gpu:0")) == Outcome::released);
  }
}

// --- Renewing ---

namespace {

Async<std::string> renewing(Workflow workflow) {
  const Semaphore gpus(workflow, "gpu", 1);
  const auto options = PermitOptions().lease(10min).max_hold(25min);
  const Permit permit = co_await gpus.acquire(options);
  std::string minutes;
  const auto note = [&](std::optional<Time> deadline) {
    minutes += deadline ? std::to_string((*deadline - workflow.start_time()) / 1min) + " " : "no ";
  };
  note(permit.deadline());
  co_await workflow.sleep(6min);
  const std::optional<Time> second = co_await permit.renew();
  note(second);
  co_await workflow.sleep(9min);
  const std::optional<Time> third = co_await permit.renew();
  note(third);
  note(permit.deadline());
  co_await workflow.sleep(9min);
  const std::optional<Time> fourth = co_await permit.renew();
  note(fourth);
  co_await workflow.sleep(2min);
  const std::optional<Time> late = co_await permit.renew();
  note(late);
  const std::optional<Outcome> outcome = co_await permit.release();
  co_return minutes + (outcome == Outcome::lease_expired ? "expired" : "?");
}

}  // namespace

TEST_CASE("renew() moves the deadline, not past max_hold; too late it says no") {
  PermitWorld world(renewing);
  const auto run = world.start("renewing");
  CHECK(run.result() == "10 16 25 25 25 no expired");
  CHECK(PermitWorld::outcome(world.permit_run("permit:gpu:0")) == Outcome::lease_expired);
  CHECK(world.logged.back().find("had ended before its release") != std::string::npos);
}

namespace {

Async<std::string> work_under_permit(Workflow workflow) {
  const Semaphore gpus(workflow, "gpu", 1);
  const auto options = PermitOptions().lease(10min);
  const auto body = [](Workflow inside, Held permit) -> Async<std::string> {
    const auto under = permit.cover(ActivityOptions().start_to_close(3h).heartbeat(5min));
    const std::string result = co_await inside.execute_activity(work, under, permit.slot());
    co_return result;
  };
  const std::string result = co_await gpus.with_permit(options, body);
  co_return result;
}

}  // namespace

TEST_CASE("The heartbeats of an activity under a permit renew it, and no event is written") {
  PermitWorld world(work_under_permit);
  int beats = 0;
  world.registry.activity(work, [&](ActivityContext& context, std::string slot) {
    for (; beats < 30; ++beats) {
      world.environment->advance(4min);
      context.heartbeat(beats);
    }
    return "worked on " + slot;
  });
  CHECK(world.start("train").result() == "worked on 0");
  CHECK(beats == 30);  // two hours on a lease of ten minutes
  CHECK(PermitWorld::outcome(world.permit_run("permit:gpu:0")) == Outcome::released);
  CHECK(world.permit_run("permit:gpu:0").history().size() == 7);
}

TEST_CASE("A canceled section keeps its slot until its activity has stopped") {
  PermitWorld world(work_under_permit);
  Outcome while_working = Outcome::released;
  world.registry.activity(work, [&](ActivityContext& context, std::string) -> std::string {
    world.environment->advance(1min);
    WorkflowExecution execution;
    execution.workflow_id = WorkflowId("train");
    world.environment->client().run_of<std::string>(execution).cancel();
    world.environment->advance(1min);
    while_working = PermitWorld::outcome(world.permit_run("permit:gpu:0"));
    context.heartbeat();
    return "not told to stop";
  });
  CHECK_THROWS_AS(world.start("train").result(), Canceled);
  CHECK(while_working == Outcome::unspecified);
  CHECK(PermitWorld::outcome(world.permit_run("permit:gpu:0")) == Outcome::released);
}

TEST_CASE("An activity under a permit that stops beating fails, and the slot is free") {
  PermitWorld world(work_under_permit);
  int attempts = 0;
  world.registry.activity(work, [&](ActivityContext& context, std::string) {
    ++attempts;
    world.environment->advance(6min);  // past its heartbeat timeout
    context.heartbeat();
    return std::string("not heard");
  });
  CHECK_THROWS_WITH_AS(world.start("train").result(), doctest::Contains("timed out"),
                       WorkflowFailed);
  CHECK(attempts == 1);
  CHECK(PermitWorld::outcome(world.permit_run("permit:gpu:0")) == Outcome::released);
}

namespace {

Async<std::string> activity_under(Workflow workflow, int kind) {
  const Semaphore gpus(workflow, "gpu", 1);
  PermitOptions options;
  if (kind == 0) options.plain().lease(10min);
  if (kind == 1) options.fair().lease(5min).max_hold(10min);
  if (kind == 2) options.fair().lease(10min).renewed_by_heartbeats(false);
  const Permit permit = co_await gpus.acquire(options);
  const auto under = permit.cover(ActivityOptions().start_to_close(3h).heartbeat(1min));
  co_await workflow.execute_activity(work, under, permit.slot());
  co_return "done";
}

}  // namespace

TEST_CASE("An activity is to end before its permit must, also if its workflow was told late") {
  PermitWorld world(activity_under);
  world.registry.workflow(flow, keep_for_an_hour);
  world.registry.activity(work, [](ActivityContext&, std::string slot) { return slot; });
  const auto limit_of = [](const PermitWorld::Run& run) {
    return PermitWorld::all<event::ActivityTaskScheduled>(run).at(0).schedule_to_close_timeout;
  };
  const auto plain = world.start("plain", 0);
  CHECK(plain.result() == "done");
  CHECK(limit_of(plain) == 10min - 1s);  // its heartbeats cannot renew it
  for (const int kind : {1, 2}) {
    const auto keeper = world.start("keeper");
    world.environment->settle();
    const auto late = world.start("late", kind);
    world.environment->settle();
    world.environment->stop_worker();
    keeper.terminate("makes way");
    world.environment->advance(4min);
    world.environment->restart_worker();
    CHECK(late.result() == "done");
    CHECK(limit_of(late) == 6min - 1s);
  }
}

namespace {

Async<std::string> renewed_from_outside(Workflow workflow) {
  const Semaphore gpus(workflow, "gpu", 1);
  const Permit permit = co_await gpus.acquire();
  bool done = false;
  workflow.on_signal("done", [&done] { done = true; });
  const auto is_done = [&done] { return done; };
  co_await workflow.wait_until(is_done);
  const std::optional<Time> renewed = co_await permit.renew();
  const std::optional<Outcome> outcome = co_await permit.release();
  co_return std::string(renewed ? "renewed" : "full") +
      (outcome == Outcome::released ? ", released" : ", not released");
}

}  // namespace

TEST_CASE("A permit that has taken all the signals a run may take can still be released") {
  PermitWorld world(renewed_from_outside);
  const auto run = world.start("renewed");
  world.environment->settle();
  const auto execution =
      world.permit_run("permit:gpu:0").describe().workflow_execution_info.execution;
  const auto permit = world.environment->client().run_of<std::string>(execution);
  world.environment->stop_worker();  // which would see each
  for (int i = 0; i < 10'000; ++i) permit.signal("renew");
  world.environment->advance(1min);
  CHECK_THROWS_WITH_AS(permit.signal("renew"), doctest::Contains("has taken its 10000 signals"),
                       Error);
  world.environment->restart_worker();
  run.signal("done");
  CHECK(run.result() == "full, released");
}

// --- The old guard ---

namespace {

Async<std::string> old_guard(Workflow workflow) {
  const Semaphore gpus(workflow, "gpu", 1);
  const auto options = PermitOptions().lease(1min);
  const Permit first = co_await gpus.acquire(options);
  co_await workflow.sleep(2min);
  const Permit second = co_await gpus.acquire(options);
  const std::optional<Outcome> outcome = co_await first.release();
  co_await workflow.sleep(10s);
  std::string said = outcome == Outcome::lease_expired ? "expired " : "? ";
  said += second.is_held() ? "second held " : "second lost ";
  co_return said + std::to_string(first.fence()) + "<" + std::to_string(second.fence());
}

}  // namespace

TEST_CASE("The guard of a permit that was lost cannot free the same run's next one") {
  PermitWorld world(old_guard);
  CHECK(world.start("old").result() == "expired second held 1<2");
}
