// Transitions called directly: what they refuse before anything is written, since no caller may ask
// for it, and corners that take long to reach through a server.
#include <doctest/doctest.h>

#include "orchestrator/core/activity_transitions.h"
#include "orchestrator/core/client_transitions.h"
#include "orchestrator/core/transition.h"
#include "orchestrator/protocol/ensure.h"
#include "tests/support/core_run.h"

namespace permit::core {
namespace {

using namespace std::chrono_literals;
using test::CoreRun;

// That the step breaks an invariant, and leaves the run's history as it was.
template <class Step>
bool refused(CoreRun run, Step step) {
  const std::int64_t before = run.state.next_event_id;
  CHECK_THROWS_AS(run.step(step), InvariantViolated);
  return run.state.next_event_id == before;
}

CoreRun with_task_taken() {
  CoreRun run;
  run.take_task();
  return run;
}

CoreRun idle_run(std::vector<CommandAttributes> commands = {}) {
  CoreRun run = with_task_taken();
  run.complete(std::move(commands));
  return run;
}

CoreRun closed_run() {
  CoreRun run;
  run.step([](Transition& t) { terminate(t, {}); });
  return run;
}

CoreRun permit_run() { return CoreRun(CoreRun::permit_start()); }

command::ScheduleActivityTask activity() {
  command::ScheduleActivityTask c;
  c.activity_id = "a";
  c.activity_type.name = "A";
  c.start_to_close_timeout = 60s;
  return c;
}

// A permit's run whose lease timer runs, as its worker starts it.
CoreRun held_permit() {
  CoreRun run = permit_run();
  run.take_task();
  run.complete({command::StartTimer{"lease", 60s, PoolName()}});
  return run;
}

const auto take = [](Transition& t) { start_workflow_task(t, {"worker", 2}, Limits()); };
const auto complete = [](Transition& t) { complete_workflow_task(t, {}, Limits()); };
const auto fail = [](Transition& t) { fail_workflow_task(t, {}); };

TEST_CASE("a workflow task is taken once, and ended by who has it") {
  CHECK(refused(with_task_taken(), take));
  CHECK(refused(idle_run(), take));
  CHECK(refused(CoreRun(), complete));
  CHECK(refused(CoreRun(), fail));
  CHECK(refused(idle_run(), [](Transition& t) { time_out_workflow_task(t); }));
  // On the normal queue a task waits as long as it takes.
  CHECK(refused(CoreRun(), [](Transition& t) { time_out_workflow_task(t); }));
}

TEST_CASE("a run has one workflow task at a time, and none once it is closed") {
  const auto schedule = [](Transition& t) { t.schedule_workflow_task(); };
  const auto retry = [](Transition& t) { t.schedule_transient_task(2); };
  CHECK(refused(CoreRun(), schedule));
  CHECK(refused(closed_run(), schedule));
  CHECK(refused(CoreRun(), retry));
  CHECK(refused(closed_run(), retry));
  CHECK(refused(idle_run(), [](Transition& t) { t.schedule_transient_task(1); }));

  CoreRun closed = closed_run();
  closed.state.wants_workflow_task = true;
  CHECK(closed.step([](Transition&) {}).events.empty());
  CoreRun idle = idle_run();
  CHECK(idle.step([](Transition&) {}).events.empty());
  idle.signal("s");
  CHECK(idle.state.has_task());
  idle.signal("s");
  CHECK(idle.state.wants_workflow_task);
  CHECK(idle.step([](Transition&) {}).events.empty());
}

TEST_CASE("a closed run takes nothing more, and a close drops nothing that is buffered") {
  CHECK(
      refused(closed_run(), [](Transition& t) { t.receive(event::WorkflowExecutionSignaled{}); }));
  CoreRun run = with_task_taken();
  run.signal("s");
  CHECK(refused(run, [](Transition& t) { t.close(event::WorkflowExecutionCompleted{}); }));
}

TEST_CASE("an activity is taken once, and ends once") {
  CoreRun run = idle_run({activity()});
  const ActivityRef ref{run.last<event::ActivityTaskScheduled>()};
  const auto start = [&](Transition& t) { start_activity(t, ref, "worker", 1); };
  CHECK(refused(run, [](Transition& t) { start_activity(t, {99}, "worker", 1); }));
  CoreRun taken = run;
  taken.step(start);
  CHECK(refused(taken, start));
  run.state.activities.begin()->second.attempt.waits_for_retry = true;
  CHECK(refused(run, start));

  taken.signal("s");
  taken.take_task();  // so that the end of the activity is buffered
  const auto end = [&](Transition& t) { complete_activity(t, ref, {}, "worker"); };
  taken.step(end);
  CHECK(refused(taken, end));
}

TEST_CASE("an activity's cancellation that is told beside a task comes behind the signals") {
  CoreRun run = idle_run({activity()});
  const ActivityRef ref{run.last<event::ActivityTaskScheduled>()};
  run.step([&](Transition& t) { start_activity(t, ref, "worker", 1); });
  run.signal("s");
  run.take_task();
  run.complete({command::RequestCancelActivityTask{ref.scheduled_event_id}});
  run.signal("s");
  run.take_task();
  run.step([&](Transition& t) { cancel_activity(t, ref, json_payloads("1"), "worker"); });
  run.signal("s");
  CHECK(run.last<event::ActivityTaskCanceled>() == 0);  // buffered
  run.complete({});
  const auto& canceled = run.get<event::ActivityTaskCanceled>();
  CHECK(canceled.started_event_id == run.last<event::ActivityTaskStarted>());
  CHECK(canceled.latest_cancel_requested_event_id ==
        run.last<event::ActivityTaskCancelRequested>());
  CHECK(run.last<event::WorkflowExecutionSignaled>() < run.last<event::ActivityTaskCanceled>());
  CHECK(run.state.activities.empty());
}

TEST_CASE("a run is started once") {
  CoreRun run;
  const Context context{run.now, nullptr};
  CHECK_THROWS_AS(start(run.state, CoreRun::plain_start(), context, {}), InvariantViolated);
}

TEST_CASE("a repeated signal is taken once, be the first in history or buffered") {
  CoreRun run = with_task_taken();
  event::WorkflowExecutionSignaled signaled;
  signaled.signal_name = "s";
  signaled.request_id = "r";
  const auto send = [&] {
    Taken taken = Taken::yes;
    run.step([&](Transition& t) { taken = signal(t, signaled, run.limits); });
    return taken;
  };
  CHECK(send() == Taken::yes);
  CHECK(send() == Taken::already);
  run.complete({});
  CHECK(send() == Taken::already);
  CHECK(run.state.signals_received == 1);
  signaled.request_id = "another";
  CHECK(send() == Taken::yes);
}

TEST_CASE("only a permit whose lease runs is released or renewed") {
  const auto let_go = [](Transition& t) { release(t, {}); };
  CHECK(refused(CoreRun(), let_go));
  CoreRun held = held_permit();
  CHECK(!lease_has_ended(held.state));
  CHECK(renew(held.state, held.now + 30s, std::nullopt) == held.now + 90s);
  CHECK(renew(held.state, held.now + 31s, 1s) == held.now + 90s);  // never shorter
  CHECK(renew(held.state, held.now + 90s, std::nullopt) == std::nullopt);

  CoreRun ended = held_permit();
  ended.now += 60s;
  ended.step([](Transition& t) { fire_due(t); });
  CHECK(lease_has_ended(ended.state));
  CHECK(refused(ended, let_go));
  // Even if its clock were behind the deadline: that the timer has fired is in history.
  CHECK(renew(ended.state, ended.now - 1s, std::nullopt) == std::nullopt);

  CoreRun plain;
  CHECK_THROWS_AS(renew(plain.state, plain.now, std::nullopt), InvariantViolated);
  held.step([](Transition& t) { terminate(t, {}); });
  CHECK_THROWS_AS(renew(held.state, held.now, std::nullopt), InvariantViolated);
}

TEST_CASE("of a permit's timers only the lease follows the deadline") {
  CoreRun run = permit_run();
  run.take_task();
  run.complete({command::StartTimer{"lease", 60s, PoolName()},
                command::StartTimer{"other", 40s, PoolName()}});
  const Time start = run.now;
  renew(run.state, start + 20s, std::nullopt);
  const auto due = [&](const char* id) {
    return timer_due(run.state, id, run.state.timers.at(id));
  };
  CHECK(due("lease") == start + 80s);
  CHECK(due("other") == start + 40s);

  // The other's end, told beside a task, is not the lease's.
  run.signal("s");
  run.take_task();
  run.now = start + 40s;
  run.state.workflow_task().timeout = 120s;
  run.step([](Transition& t) { fire_due(t); });
  REQUIRE(run.state.volatile_state.buffered.size() == 1);
  CHECK(!lease_has_ended(run.state));
}

TEST_CASE("a long history is suggested to be cut, and one that is too long ends") {
  CoreRun run;
  CHECK(!over_history_limit(run.state, run.limits));
  run.state.history_bytes = run.limits.history_bytes_suggest;
  run.take_task();
  CHECK(run.get<event::WorkflowTaskStarted>().suggest_continue_as_new);
  run.state.history_bytes = run.limits.history_bytes_max;
  CHECK(!over_history_limit(run.state, run.limits));
  ++run.state.history_bytes;
  CHECK(over_history_limit(run.state, run.limits));
}

TEST_CASE("a task that is offered again is shown to who takes it, not before") {
  CoreRun run = with_task_taken();
  run.step(fail);
  CHECK(run.state.workflow_task().attempt == 2);
  CHECK(transient_events(run.state, run.limits).empty());
  run.take_task();
  CHECK(transient_events(run.state, run.limits).size() == 2);
}

TEST_CASE("a completion that names no sticky queue ends the old one") {
  CoreRun run = with_task_taken();
  RespondWorkflowTaskCompletedRequest request;
  request.sticky_attributes.emplace();
  const auto respond = [&](const char* queue) {
    request.sticky_attributes->worker_task_queue.name = queue;
    run.step([&](Transition& t) { complete_workflow_task(t, request, run.limits); });
  };
  respond("mine");
  CHECK(run.state.volatile_state.sticky.name == "mine");
  CHECK(run.state.volatile_state.sticky.schedule_to_start == run.limits.sticky_timeout_default);
  run.signal("s");
  CHECK(task_queue_of(run.state) == "mine");
  run.take_task();
  respond("");
  CHECK(run.state.volatile_state.sticky.name.empty());
  run.signal("s");
  CHECK(task_queue_of(run.state) == "work");
}

TEST_CASE("what a permit request was refused with decides whether the run backs off") {
  command::StartChildWorkflowExecution c;
  c.permit.emplace();
  c.permit->pool = PoolName("gpu");
  CoreRun run = with_task_taken();
  const auto ask_and_fail = [&](std::optional<PermitFailure> failure) {
    if (!run.state.task_started()) run.take_task();
    run.complete({c});
    event::StartChildWorkflowExecutionFailed failed;
    failed.initiated_event_id = run.last<event::StartChildWorkflowExecutionInitiated>();
    failed.permit_failure = std::move(failure);
    run.step([&](Transition& t) { t.receive(failed); });
  };
  ask_and_fail(PermitFailure{PermitFailureKind::taken, ""});
  ask_and_fail(PermitFailure{PermitFailureKind::drained, ""});
  CHECK(run.state.backing_off.at(PoolName("gpu")).probes == 2);
  ask_and_fail(std::nullopt);
  CHECK(run.state.backing_off.empty());
}

}  // namespace
}  // namespace permit::core
