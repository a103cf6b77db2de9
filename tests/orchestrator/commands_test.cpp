// What a worker's commands write, and the rarer ways in which one of them is refused. The common
// ones are told by tests/scenarios.
#include "orchestrator/core/commands.h"

#include <doctest/doctest.h>

#include "orchestrator/core/client_transitions.h"
#include "orchestrator/protocol/error.h"
#include "tests/support/core_run.h"

namespace permit::core {
namespace {

using namespace std::chrono_literals;
using test::CoreRun;
using Cause = WorkflowTaskFailedCause;

command::ScheduleActivityTask activity(const char* id = "a") {
  command::ScheduleActivityTask c;
  c.activity_id = id;
  c.activity_type.name = "A";
  c.start_to_close_timeout = 5s;
  return c;
}

command::StartChildWorkflowExecution child(const char* id = "c") {
  command::StartChildWorkflowExecution c;
  c.workflow_id = WorkflowId(id);
  c.workflow_type.name = "C";
  return c;
}

CommandRejected refusal(CommandAttributes command) {
  CoreRun run;
  const CommandRejected rejected = run.refusal(std::move(command));
  CHECK(!rejected.terminates_run);
  return rejected;
}

TEST_CASE("each command that closes must be the last") {
  command::FailWorkflowExecution fail;
  fail.failure.emplace();
  const std::vector<CommandAttributes> closing{command::CompleteWorkflowExecution{}, fail,
                                               command::CancelWorkflowExecution{},
                                               command::ContinueAsNewWorkflowExecution{}};
  const command::RecordMarker marker{"m", {}, {}, {}};
  for (const CommandAttributes& close : closing) {
    const std::vector<Command> wrong{{close, {}}, {marker, {}}};
    const std::vector<Command> right{{marker, {}}, {close, {}}};
    CHECK_THROWS_WITH_AS(check_nothing_after_close(wrong),
                         "command 1 closes the run, so it must be the last of the completion",
                         Error);
    CHECK_NOTHROW(check_nothing_after_close(right));
  }
}

TEST_CASE("an activity with a retry policy that cannot be is refused") {
  command::ScheduleActivityTask c = activity();
  c.retry_policy.emplace();
  c.retry_policy->maximum_attempts = -1;
  const CommandRejected rejected = refusal(c);
  CHECK(rejected.cause == Cause::bad_schedule_activity_attributes);
  CHECK(rejected.message == "the retry policy's maximumAttempts is negative");
}

TEST_CASE("an activity without a start-to-close timeout gets schedule-to-close for it") {
  CoreRun run;
  run.take_task();
  command::ScheduleActivityTask c = activity();
  c.start_to_close_timeout = {};
  c.schedule_to_close_timeout = 7s;
  run.complete({c});
  CHECK(run.get<event::ActivityTaskScheduled>().start_to_close_timeout == 7s);
}

TEST_CASE("other namespaces are not offered, and one's own may be named") {
  command::StartChildWorkflowExecution start = child();
  command::SignalExternalWorkflowExecution signal;
  signal.execution = WorkflowExecution{WorkflowId("other"), RunId()};
  signal.signal_name = "s";
  command::RequestCancelExternalWorkflowExecution cancel;
  cancel.workflow_id = WorkflowId("other");

  for (const char* own : {"", "default"}) {
    start.namespace_ = signal.namespace_ = cancel.namespace_ = own;
    CoreRun run;
    run.take_task();
    const Decision decision = run.complete({start, signal, cancel});
    CHECK(decision.messages.size() == 3);
    CHECK(run.get<event::StartChildWorkflowExecutionInitiated>().namespace_ == "default");
  }
  start.namespace_ = signal.namespace_ = cancel.namespace_ = "elsewhere";
  CHECK(refusal(start).cause == Cause::bad_start_child_execution_attributes);
  CHECK(refusal(start).message == "a child in another namespace is not offered");
  CHECK(refusal(signal).cause == Cause::bad_signal_workflow_execution_attributes);
  CHECK(refusal(signal).message == "a signal to another namespace is not offered");
  CHECK(refusal(cancel).cause == Cause::bad_request_cancel_external_workflow_execution_attributes);
  CHECK(refusal(cancel).message == "a cancel in another namespace is not offered");
}

TEST_CASE("a child runs on its parent's queue unless it names one") {
  CoreRun run;
  run.take_task();
  command::StartChildWorkflowExecution other = child("d");
  other.task_queue.name = "other";
  run.complete({other});
  CHECK(run.get<event::StartChildWorkflowExecutionInitiated>().task_queue.name == "other");
  run.signal("again");
  run.take_task();
  run.complete({child("e")});
  CHECK(run.get<event::StartChildWorkflowExecutionInitiated>().task_queue.name == "work");
}

TEST_CASE("a permit as a child ends with its holder") {
  command::StartChildWorkflowExecution c = child("permit:gpu:0");
  c.workflow_type.name = "PermitSlotWorkflow";
  for (const ParentClosePolicy policy :
       {ParentClosePolicy::unspecified, ParentClosePolicy::terminate}) {
    c.parent_close_policy = policy;
    CHECK(refusal(c).cause == Cause::unspecified);
  }
  c.parent_close_policy = ParentClosePolicy::abandon;
  CHECK(refusal(c).cause == Cause::bad_start_child_execution_attributes);
}

SearchAttributes patched(Payload payload) {
  return SearchAttributes{{{"TemporalChangeVersion", std::move(payload)}}};
}

command::ContinueAsNewWorkflowExecution continue_as_new() { return {}; }

const event::WorkflowExecutionStarted& next_start(const Decision& decision) {
  for (const Message& message : decision.messages) {
    if (const auto* next = std::get_if<Apart<ContinueRun>>(&message)) {
      return static_cast<const ContinueRun&>(*next).started;
    }
  }
  FAIL("no run follows");
  throw;
}

TEST_CASE("a run that continues keeps what the command leaves out") {
  CoreRun run;
  run.take_task();
  run.complete({command::UpsertWorkflowSearchAttributes{patched(json_payload("[\"p-1\"]"))},
                command::ModifyWorkflowProperties{Memo{{{"k", json_payload("1")}}}}});
  run.signal("again");
  run.take_task();
  const Decision decision = run.complete({continue_as_new()});
  const event::WorkflowExecutionStarted& next = next_start(decision);
  CHECK(next.workflow_type.name == "T");
  CHECK(next.task_queue.name == "work");
  CHECK(next.workflow_run_timeout == 0s);
  CHECK(next.workflow_task_timeout == 10s);
  CHECK(next.memo.value().fields == run.state.memo.fields);
  CHECK(next.search_attributes.value().indexed_fields.contains("TemporalChangeVersion"));
  CHECK(next.continued_execution_run_id == run.state.run_id);
  CHECK(run.state.status == WorkflowExecutionStatus::continued_as_new);

  // The next run starts with them.
  const CoreRun follower(next);
  CHECK(follower.state.memo.fields == run.state.memo.fields);
  CHECK(follower.state.search_attributes.indexed_fields ==
        run.state.search_attributes.indexed_fields);
}

TEST_CASE("a run that continues takes what the command gives") {
  CoreRun run;
  run.take_task();
  command::ContinueAsNewWorkflowExecution c = continue_as_new();
  c.workflow_type.name = "U";
  c.task_queue.name = "other";
  c.workflow_run_timeout = 60s;
  c.workflow_task_timeout = 3s;
  c.memo = Memo{{{"k", json_payload("2")}}};
  c.search_attributes = patched(json_payload("[]"));
  const Decision decision = run.complete({c});
  const event::WorkflowExecutionStarted& next = next_start(decision);
  CHECK(next.workflow_type.name == "U");
  CHECK(next.task_queue.name == "other");
  CHECK(next.workflow_run_timeout == 60s);
  CHECK(next.workflow_task_timeout == 3s);
  CHECK(next.memo.value().fields == c.memo->fields);
  CHECK(next.search_attributes.value().indexed_fields == c.search_attributes->indexed_fields);
}

TEST_CASE("memo and search attributes merge, and a null deletes") {
  CoreRun run;
  const auto complete = [&](std::vector<CommandAttributes> commands) {
    if (!run.state.has_task()) run.signal("again");
    run.take_task();
    run.complete(std::move(commands));
  };
  complete({command::ModifyWorkflowProperties{
      Memo{{{"a", json_payload("1")}, {"b", json_payload("2")}, {"c", json_payload("3")}}}}});
  const Payload null{{{"encoding", Bytes{"binary/null"}}}, {}};
  const Payload bare{{}, Bytes{"x"}};
  complete({command::ModifyWorkflowProperties{Memo{{{"a", null}, {"b", Payload{}}, {"d", bare}}}}});
  CHECK(run.state.memo.fields == PayloadMap{{"c", json_payload("3")}, {"d", bare}});

  complete({command::UpsertWorkflowSearchAttributes{patched(json_payload("[]"))}});
  CHECK(run.state.search_attributes.indexed_fields.size() == 1);
  complete({command::UpsertWorkflowSearchAttributes{patched(null)}});
  CHECK(run.state.search_attributes.indexed_fields.empty());

  CHECK(refusal(command::UpsertWorkflowSearchAttributes{}).message ==
        "searchAttributes is missing");
}

TEST_CASE("a search attribute that nobody defined is refused wherever it is given") {
  const SearchAttributes undefined{{{"Team", json_payload("\"a\"")}}};
  command::ContinueAsNewWorkflowExecution next = continue_as_new();
  next.search_attributes = undefined;
  command::StartChildWorkflowExecution with_some = child();
  with_some.search_attributes = undefined;
  const std::vector<CommandAttributes> commands = {
      command::UpsertWorkflowSearchAttributes{undefined}, next, with_some};
  for (const CommandAttributes& command : commands) {
    CHECK(refusal(command).message == "search attribute Team is not defined");
  }
}

TEST_CASE("to cancel a timer that has just fired takes back its own event only") {
  CoreRun run;
  run.take_task();
  run.complete(
      {command::StartTimer{"s", 5s, PoolName()}, command::StartTimer{"t", 5s, PoolName()}});
  run.signal("again");
  run.take_task();
  run.now += 5s;
  run.step([](Transition& t) { fire_due(t); });
  REQUIRE(run.state.volatile_state.buffered.size() == 2);
  run.complete({command::CancelTimer{"t"}});
  CHECK(run.get<event::TimerCanceled>().timer_id == "t");
  CHECK(run.get<event::TimerFired>().timer_id == "s");
  CHECK(run.state.timers.empty());
}

}  // namespace
}  // namespace permit::core
