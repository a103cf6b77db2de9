// What runs on the SDK's code: workflows that do their work in sections under permits, by the real
// Semaphore, and the permits' own workflow. And what must be true of them.
#pragma once

#include <map>
#include <set>
#include <string>

#include "tests/simulation/world.h"
#include "worker/task_runner.h"

namespace permit::simulation {

// The input of a run of type Section: it says all that the run will do.
std::optional<Payloads> draw_section(World& world);

// A seed begins: what its runs take from outside is the same each time it is run.
void begin_sections();

// Runs tasks of both kinds; one for each worker process.
class Runner {
 public:
  Runner(World& world, std::string identity);

  // What the code answers. A task that fails is a violation, unless the run went on without us.
  worker::WorkflowTaskAnswer run(const PollWorkflowTaskQueueResponse& task);
  void accepted(const RunId& run, const Bytes& token) { runner_->accepted(run, token); }
  void evict(const RunId& run) { runner_->evict(run); }
  // The process died: all that it had in memory is gone.
  void die();
  const std::string& sticky_queue() const { return sticky_queue_; }

 private:
  void begin();
  std::vector<Event> history(const WorkflowExecution& execution) const;

  World& world_;
  const std::string identity_;
  std::string sticky_queue_;
  std::unique_ptr<worker::TaskRunner> runner_;
  std::vector<std::string> failures_;
  std::int64_t started_event_id_ = 0;  // of the task at hand
};

// What every task that counted has asked for, by run and by the task's WorkflowTaskStarted.
using Commands = std::map<RunId, std::map<std::int64_t, std::string>>;
std::string text_of(const std::vector<Command>& commands);

// At the end: every run again, whole, and of some each prefix of its history.
void check_sections(World& world, const Commands& commands);

}  // namespace permit::simulation
