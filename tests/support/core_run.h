// One run without a server: the pure rules, called directly. Keeps the run's state and history, and
// makes a workflow task whenever the worker has something to see, as the service does.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "orchestrator/core/clock_transitions.h"
#include "orchestrator/core/worker_transitions.h"

namespace permit::test {

class CountingIds : public core::Ids {
 public:
  explicit CountingIds(std::int64_t& last) : last_(last) {}
  RunId new_run_id(Time) override { return RunId("run-" + std::to_string(++last_)); }
  std::int64_t nonce() override { return ++last_; }

 private:
  std::int64_t& last_;
};

// A value: a copy is another run at the same point.
struct CoreRun {
  core::Limits limits;
  core::RunState state;
  std::vector<Event> history;
  Time now{std::chrono::hours(1)};

  explicit CoreRun(event::WorkflowExecutionStarted started = plain_start());

  static event::WorkflowExecutionStarted plain_start();
  // What the server starts for a granted `permit` object: slot 0 of pool gpu, for 60 s.
  static event::WorkflowExecutionStarted permit_start();

  // Carries out one transition; its events join the history.
  template <class Step>
  core::Decision step(Step change) {
    CountingIds ids(last_id_);
    const core::Context context{now, &ids};
    core::Transition run(state, context);
    change(run);
    run.schedule_workflow_task_if_wanted();
    core::Decision decision = run.take();
    history.insert(history.end(), decision.events.begin(), decision.events.end());
    return decision;
  }

  // A worker takes the task that is offered, and completes the one it has.
  void take_task();
  core::Decision complete(std::vector<CommandAttributes> commands);
  // Both, then what the completion was refused with: its cause and message, or nothing. The state
  // is then as before the completion.
  core::CommandRejected refusal(CommandAttributes command);

  void signal(const std::string& name);
  // The id of the last event of type T; 0 if there is none.
  template <class T>
  std::int64_t last() const {
    std::int64_t id = 0;
    for (const Event& event : history) {
      if (event.get_if<T>() != nullptr) id = event.event_id;
    }
    return id;
  }
  template <class T>
  const T& get() const {
    return *history.at(static_cast<std::size_t>(last<T>() - 1)).get_if<T>();
  }

 private:
  std::int64_t last_id_ = 0;
};

}  // namespace permit::test
