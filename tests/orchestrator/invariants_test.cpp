// The checks that every test and every checking build run: each must see the damage it is for. The
// fold, too, refuses a history that cannot be, which is how a damaged database is noticed.
#include "orchestrator/core/invariants.h"

#include <doctest/doctest.h>

#include "orchestrator/core/client_transitions.h"
#include "orchestrator/protocol/ensure.h"
#include "tests/support/core_run.h"

namespace permit::core {
namespace {

using namespace std::chrono_literals;
using test::CoreRun;

// The condition that is broken, or nothing.
template <class Check>
std::string broken(Check check) {
  try {
    check();
  } catch (const InvariantViolated& violated) {
    return violated.what();
  }
  return "";
}

bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

// What check_run says of the state after `spoil`.
template <class Spoil>
std::string spoiled(const CoreRun& run, Spoil spoil) {
  RunState state = run.state;
  REQUIRE(broken([&] { check_run(state); }) == "");
  spoil(state);
  return broken([&] { check_run(state); });
}

CoreRun open_run() { return CoreRun(); }

CoreRun busy_run() {
  CoreRun run;
  run.take_task();
  command::ScheduleActivityTask activity;
  activity.activity_id = "a";
  activity.activity_type.name = "A";
  activity.start_to_close_timeout = 5s;
  command::StartChildWorkflowExecution child;
  child.workflow_id = WorkflowId("c");
  child.workflow_type.name = "C";
  run.complete({activity, child, command::StartTimer{"t", 10s, PoolName()}});
  return run;
}

CoreRun closed(CoreRun run) {
  run.step([](Transition& t) { terminate(t, {}); });
  return run;
}

TEST_CASE("a state whose workflow task cannot be is seen") {
  const CoreRun run = open_run();
  const auto seen = [&](auto spoil) { return spoiled(run, spoil); };
  CHECK(has(seen([](RunState& s) { s.next_event_id = 1; }), "next_event_id > 1"));
  CHECK(has(seen([](RunState& s) { s.workflow_task().attempt = 0; }), "attempt >= 1"));
  CHECK(has(seen([](RunState& s) {
              s.workflow_task().scheduled_event_id = 0;
              s.workflow_task().started_event_id = 3;
            }),
            "state.has_task() || !state.task_started()"));
  CHECK(has(seen([](RunState& s) {
              s.workflow_task().started_event_id = s.workflow_task().scheduled_event_id;
            }),
            "started_event_id > task.scheduled_event_id"));
  CHECK(has(seen([](RunState& s) { s.workflow_task().scheduled_event_id = s.next_event_id; }),
            "scheduled_event_id < state.next_event_id"));
  CHECK(
      has(seen([](RunState& s) { s.volatile_state.buffered.emplace_back(); }), "buffered.empty()"));
  CHECK(has(seen([](RunState& s) {
              s.workflow_task() = {};
              s.wants_workflow_task = true;
            }),
            "!state.wants_workflow_task"));
}

TEST_CASE("an open run that has ended is seen, and a permit without an end") {
  const CoreRun run = open_run();
  CHECK(has(spoiled(run, [&](RunState& s) { s.close_time = run.now; }), "close_time"));
  CHECK(has(spoiled(run, [](RunState& s) { s.hold_end.emplace(); }), "hold_end"));
  CHECK(has(spoiled(run, [](RunState& s) { s.started.permit.emplace(); }), "expiration(state)"));
}

TEST_CASE("a closed run that keeps anything is seen") {
  const CoreRun run = closed(open_run());
  const auto seen = [&](auto spoil) { return spoiled(run, spoil); };
  CHECK(has(seen([](RunState& s) { s.close_time = {}; }), "close_time"));
  CHECK(has(seen([](RunState& s) { s.close_time = s.start_time - 1s; }), "close_time"));
  CHECK(has(seen([](RunState& s) { s.workflow_task().scheduled_event_id = 2; }), "has_task()"));
  CHECK(has(seen([](RunState& s) { s.timers["t"]; }), "timers.empty()"));
  CHECK(has(seen([](RunState& s) { s.activities[2]; }), "activities.empty()"));
  CHECK(has(seen([](RunState& s) { s.children[2]; }), "children.empty()"));
  CHECK(
      has(seen([](RunState& s) { s.volatile_state.buffered.emplace_back(); }), "buffered.empty()"));
  CHECK(has(seen([](RunState& s) { s.backing_off[PoolName("gpu")]; }), "backing_off.empty()"));
  CHECK(has(seen([](RunState& s) { s.hold_end.emplace(); }), "is_permit()"));

  const CoreRun permit = closed(CoreRun(CoreRun::permit_start()));
  CHECK(has(spoiled(permit, [](RunState& s) { s.hold_end.reset(); }), "is_permit()"));
}

TEST_CASE("an activity or a child that cannot be is seen") {
  const CoreRun run = busy_run();
  const auto seen = [&](auto spoil) { return spoiled(run, spoil); };
  CHECK(has(seen([](RunState& s) { s.activities[0]; }), "id > 0"));
  CHECK(has(seen([](RunState& s) { s.activities[s.next_event_id]; }), "id < state.next_event_id"));
  CHECK(has(seen([](RunState& s) {
              s.activities.begin()->second.attempt.waits_for_retry = true;
              s.activities.begin()->second.attempt.started_time = s.start_time;
            }),
            "waits_for_retry"));
  CHECK(has(seen([](RunState& s) { s.children[0]; }), "id > 0"));
  CHECK(has(seen([](RunState& s) { s.children[s.next_event_id]; }), "id < state.next_event_id"));
  CHECK(has(seen([](RunState& s) {
              s.children.begin()->second.waits_for = PoolName("gpu");
              s.children.begin()->second.runs.emplace_back();
            }),
            "waits_for"));
}

// What check_history says of these, numbered 1 to n behind a start.
std::string history_of(std::vector<EventAttributes> attributes) {
  std::vector<Event> history{{1, Time(1h), CoreRun::plain_start(), {}}};
  for (EventAttributes& one : attributes) {
    const auto id = static_cast<std::int64_t>(history.size()) + 1;
    history.push_back({id, Time(1h), std::move(one), {}});
  }
  return broken([&] { check_history(history); });
}

template <class T>
T answering(std::int64_t initiated_event_id) {
  T event;
  event.initiated_event_id = initiated_event_id;
  return event;
}

TEST_CASE("a history in which answers have no question is seen") {
  using namespace event;
  const StartChildWorkflowExecutionInitiated asked;
  const auto started = answering<ChildWorkflowExecutionStarted>(2);
  const auto failed = answering<StartChildWorkflowExecutionFailed>(2);
  CHECK(history_of({asked, started, started}) == "");  // a request for two slots
  CHECK(history_of({asked, failed}) == "");
  CHECK(has(history_of({started}), "initiated.contains"));
  CHECK(has(history_of({failed}), "initiated.erase"));
  CHECK(has(history_of({asked, failed, failed}), "initiated.erase"));
  CHECK(has(history_of({asked, failed, started}), "initiated.contains"));

  const TimerStarted timer{"t", 5s, 0, PoolName()};
  const TimerFired fired{"t", 2};
  const TimerCanceled canceled{"t", 2, 0, ""};
  CHECK(history_of({timer, fired, timer, canceled}) == "");
  CHECK(has(history_of({timer, timer}), "timers.insert"));
  CHECK(has(history_of({timer, fired, fired}), "timers.erase"));
  CHECK(has(history_of({timer, fired, canceled}), "timers.erase"));
}

TEST_CASE("a history that does not count, or goes on after its end, is seen") {
  using namespace event;
  CHECK(history_of({WorkflowExecutionSignaled{}, WorkflowExecutionCompleted{}}) == "");
  CHECK(has(history_of({WorkflowExecutionCompleted{}, WorkflowExecutionSignaled{}}), "!closed"));
  CHECK(has(history_of({CoreRun::plain_start()}), "(id == 1)"));
  const std::vector<Event> gap{{1, Time(1h), CoreRun::plain_start(), {}},
                               {3, Time(1h), WorkflowExecutionSignaled{}, {}}};
  CHECK(has(broken([&] { check_history(gap); }), "event_id"));
}

// What the fold says of this event, as the next of a run with an activity, a child and a timer.
std::string folded(EventAttributes attributes) {
  CoreRun run = busy_run();
  run.signal("s");  // so that a task is offered
  const Event event{run.state.next_event_id, run.now, std::move(attributes), {}};
  return broken([&] { apply(run.state, event); });
}

TEST_CASE("the fold refuses events that answer nothing") {
  using namespace event;
  CHECK(has(folded(CoreRun::plain_start()), "event_id == 1"));
  CHECK(has(folded(WorkflowTaskStarted{}), "scheduled_event_id"));
  CHECK(has(folded(WorkflowTaskCompleted{}), "scheduled_event_id"));
  CHECK(has(folded(ActivityTaskCancelRequested{99, 4}), "activities.end()"));
  CHECK(has(folded(ActivityTaskCompleted{{}, 99, 0, ""}), "activities.erase"));
  CHECK(has(folded(TimerFired{"other", 2}), "timers.erase"));
  CHECK(has(folded(TimerCanceled{"other", 2, 4, ""}), "timers.erase"));
  CHECK(has(folded(answering<StartChildWorkflowExecutionFailed>(99)), "children.end()"));
  CHECK(has(folded(answering<ChildWorkflowExecutionStarted>(99)), "children.end()"));
  CHECK(has(folded(answering<ChildWorkflowExecutionCompleted>(99)), "children.end()"));

  const std::int64_t initiated = busy_run().last<StartChildWorkflowExecutionInitiated>();
  auto stranger = answering<ChildWorkflowExecutionCompleted>(initiated);
  stranger.workflow_execution = WorkflowExecution{WorkflowId("c"), RunId("not its run")};
  CHECK(has(folded(stranger), "erased == 1"));
}

TEST_CASE("what is buffered settles its timer or activity once") {
  using namespace event;
  RunState state = busy_run().state;
  const auto noted = [&](EventAttributes attributes) {
    return broken([&] { note_buffered(state, {0, Time(1h), std::move(attributes), {}}); });
  };
  const std::int64_t activity = state.activities.begin()->first;
  CHECK(has(noted(ActivityTaskCompleted{{}, 99, 0, ""}), "activities.end()"));
  CHECK(noted(ActivityTaskCompleted{{}, activity, 0, ""}) == "");
  CHECK(has(noted(ActivityTaskCanceled{{}, 0, activity, 0, ""}), "closed"));
  CHECK(has(noted(TimerFired{"other", 2}), "timers.end()"));
  CHECK(noted(TimerFired{"t", 2}) == "");
  CHECK(has(noted(TimerFired{"t", 2}), "fired"));
}

}  // namespace
}  // namespace permit::core
