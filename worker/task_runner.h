// Turns tasks into answers, with no I/O of its own but for a history it lacks. Keeps the runs it
// has in memory, up to a number, least recently used first out.
//
// Belongs to the one thread that runs workflow code.
#pragma once

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "orchestrator/protocol/request.h"
#include "worker/registry.h"
#include "worker/workflow_instance.h"

namespace permit::worker {

// What to send back. Nothing: the task is left to time out, as one that keeps failing is, so that
// it is not tried again without a pause.
using WorkflowTaskAnswer =
    std::variant<std::monostate, RespondWorkflowTaskCompletedRequest,
                 RespondWorkflowTaskFailedRequest, RespondQueryTaskCompletedRequest>;

class TaskRunner {
 public:
  struct Options {
    std::string namespace_name = "default";
    std::string identity;
    std::string sticky_queue;  // empty: no run is kept between its tasks
    std::size_t runs_cached_max = 1'000;
    Duration sticky_timeout = std::chrono::seconds(5);
    LogSink log;
    // Asks the server for all of a run's history.
    std::function<std::vector<Event>(const WorkflowExecution&)> fetch_history;
  };

  // `registry` outlives it.
  TaskRunner(const Registry& registry, Options options);

  WorkflowTaskAnswer run(const PollWorkflowTaskQueueResponse& task);
  // The server took the answer to that task. Until then the run may be one that came of a task
  // whose time was over, and what it believes, such as the time, is not what history says: nothing
  // goes on with it.
  void accepted(const RunId& run, const Bytes& task_token);
  // The server did not take an answer: what this run has become here does not count.
  void evict(const RunId& run);
  void evict_all();

  std::size_t runs_cached() const { return cached_.size(); }
  // Tasks that went on with a run that was here, and those that had to begin it anew; not the
  // first ones of a run.
  std::int64_t cache_hits() const { return cache_hits_; }
  std::int64_t cache_misses() const { return cache_misses_; }

 private:
  struct Cached {
    std::unique_ptr<WorkflowInstance> instance;
    std::list<RunId>::iterator use;
    Bytes unanswered{};  // the token of its last task; empty: the server has taken the answer
  };

  WorkflowTaskAnswer run_task(const PollWorkflowTaskQueueResponse& task);
  WorkflowTaskAnswer answer_query(const PollWorkflowTaskQueueResponse& task);
  WorkflowTaskAnswer failed(const PollWorkflowTaskQueueResponse& task,
                            WorkflowTaskFailedCause cause, const std::exception_ptr& why);
  std::unique_ptr<WorkflowInstance> make(const PollWorkflowTaskQueueResponse& task) const;
  Cached* find(const RunId& run);
  void keep(const RunId& run, std::unique_ptr<WorkflowInstance> instance);

  const Registry& registry_;
  const Options options_;
  std::map<RunId, Cached> cached_;
  std::list<RunId> uses_;  // most recent first
  std::int64_t cache_hits_ = 0;
  std::int64_t cache_misses_ = 0;
};

using ActivityTaskAnswer =
    std::variant<std::monostate, RespondActivityTaskCompletedRequest,
                 RespondActivityTaskFailedRequest, RespondActivityTaskCanceledRequest>;

ActivityInfo activity_info_of(const PollActivityTaskQueueResponse& task);

// Runs an activity to its end, on the calling thread.
ActivityTaskAnswer run_activity(const Registry& registry, const PollActivityTaskQueueResponse& task,
                                ActivityContext& context);

}  // namespace permit::worker
