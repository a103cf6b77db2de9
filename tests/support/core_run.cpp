#include "tests/support/core_run.h"

#include "orchestrator/core/client_transitions.h"

namespace permit::test {

using namespace std::chrono_literals;

event::WorkflowExecutionStarted CoreRun::plain_start() {
  event::WorkflowExecutionStarted started;
  started.workflow_id = WorkflowId("w");
  started.workflow_type.name = "T";
  started.task_queue.name = "work";
  started.original_execution_run_id = RunId("run-0");
  started.first_execution_run_id = RunId("run-0");
  return started;
}

event::WorkflowExecutionStarted CoreRun::permit_start() {
  event::WorkflowExecutionStarted started = plain_start();
  started.workflow_id = WorkflowId("permit:gpu:0");
  started.permit_request.emplace();
  started.permit_request->pool = PoolName("gpu");
  started.permit_request->lease = 60s;
  started.permit.emplace();
  started.permit->pool = PoolName("gpu");
  started.permit->slot = SlotName("0");
  started.permit->deadline = Time(1h) + 60s;
  return started;
}

CoreRun::CoreRun(event::WorkflowExecutionStarted started) {
  state.number = RunNumber{1};
  state.namespace_ = "default";
  state.workflow_id = started.workflow_id;
  state.run_id = started.original_execution_run_id;
  CountingIds ids(last_id_);
  const core::Context context{now, &ids};
  history = core::start(state, std::move(started), context, limits).events;
  step([](core::Transition&) {});
}

void CoreRun::take_task() {
  step([&](core::Transition& run) { core::start_workflow_task(run, {"worker", 1}, limits); });
}

core::Decision CoreRun::complete(std::vector<CommandAttributes> commands) {
  RespondWorkflowTaskCompletedRequest request;
  for (CommandAttributes& command : commands) {
    request.commands.push_back({std::move(command), std::nullopt});
  }
  return step([&](core::Transition& run) { core::complete_workflow_task(run, request, limits); });
}

core::CommandRejected CoreRun::refusal(CommandAttributes command) {
  const core::RunState before = state;
  try {
    if (!state.task_started()) take_task();
    complete({std::move(command)});
  } catch (const core::CommandRejected& rejected) {
    state = before;
    return rejected;
  }
  return {};
}

void CoreRun::signal(const std::string& name) {
  event::WorkflowExecutionSignaled signaled;
  signaled.signal_name = name;
  step([&](core::Transition& run) { core::signal(run, signaled, limits); });
}

}  // namespace permit::test
