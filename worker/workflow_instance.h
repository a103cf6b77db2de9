// One run in memory: history in, commands out, no I/O. activate() applies events in their order,
// each readying what waits for it, and runs the coroutines until all are blocked. What the code
// asks for while the history is replayed must be what the history has.
//
// One thread at a time. Destroying an instance destroys the coroutine frames, wherever they are;
// nothing that their destructors do has an effect.
#pragma once

#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "orchestrator/protocol/command.h"
#include "orchestrator/protocol/event.h"
#include "worker/operation.h"
#include "worker/registry.h"
#include "worker/scheduler.h"
#include "worker/workflow.h"

namespace permit::worker {

using LogSink = std::function<void(LogLevel, const WorkflowInfo&, const std::string&)>;

// The server went on from another state than this instance has: drop it and replay the history.
class InstanceStale : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class WorkflowInstance : private OperationHost {
 public:
  // `function` and `log` outlive it.
  WorkflowInstance(WorkflowExecution execution, const WorkflowFunction& function,
                   const LogSink& log);
  ~WorkflowInstance() override;
  WorkflowInstance(const WorkflowInstance&) = delete;
  WorkflowInstance& operator=(const WorkflowInstance&) = delete;

  // Applies the next events of the history. If they end with a started workflow task, runs it and
  // returns its commands. Throws what fails the task: NondeterminismError, Misuse, InstanceStale,
  // whatever the code threw that is no Failed. The instance is then of no use any more.
  std::vector<Command> activate(const std::vector<Event>& events);

  // From now on: the commands of each task that activate() runs, replayed or not.
  void record_tasks(std::vector<std::vector<Command>>& into) { record_ = &into; }

  // The started event of the task that activate() last ran, until its completion is seen.
  std::int64_t task_started_event_id() const { return live_task_; }
  std::int64_t last_event_id() const { return last_event_id_; }
  bool is_closed() const { return closing_command_.has_value() || closed_; }

  // Runs a query's handler. Throws Misuse for an unknown query, and what the handler throws.
  std::optional<Payloads> query(const std::string& type, const std::optional<Payloads>& arguments);

 private:
  friend class Workflow;
  struct Task {
    std::int64_t started_event_id = 0;
    Time time{};
    bool suggest_continue_as_new = false;
    std::int64_t history_bytes = 0;
  };
  struct Spawned {
    Async<void> coroutine;
    bool is_handler = false;
    std::string name;
  };
  using SignalHandler = std::function<void(const std::optional<Payloads>&)>;
  struct QueryHandler {
    std::function<std::optional<Payloads>(const std::optional<Payloads>&)> answer;
    bool outlives_run = false;  // what it reads is its own, not the workflow function's
  };

  // --- History ---
  void apply(const std::vector<Event>& events, std::size_t index);
  void match(const Event& event);
  void note_markers(const std::vector<Event>& events, std::size_t completed);
  void run_task(const Task& task);
  void note_ends();
  void dispatch(const Event& event);
  void deliver_signal(const event::WorkflowExecutionSignaled& signal);
  Operation* operation_of(const Event& event);
  [[noreturn]] void contradict(const Event* event, const Command* command) const;

  // --- Code ---
  Async<void> run_main();
  void close(std::optional<Payloads> result, const std::exception_ptr& thrown);
  void run_until_blocked();
  void check_usable() const;
  // For what changes something: not in a query either.
  void check_writable() const;

  // --- OperationHost ---
  OperationHost& host() { return *this; }
  IssuedList::iterator issue(CommandAttributes command,
                             std::shared_ptr<Operation> operation) override;
  void take_back(IssuedList::iterator issued) override;
  void forget(const Operation& operation) override;
  void add(std::shared_ptr<Operation> operation) { live_.insert(std::move(operation)); }

  std::vector<Command> commands() const;

  const WorkflowFunction& function_;
  const LogSink& log_;
  WorkflowInfo info_;
  std::optional<Payloads> input_;
  std::string seed_run_id_;

  // The history so far.
  std::int64_t last_event_id_ = 0;
  std::optional<Task> candidate_;     // started, and not known how it ended
  std::int64_t live_task_ = 0;        // run here, completion not seen yet
  std::vector<const Event*> unseen_;  // since the last task; of the events being applied
  IssuedList issued_;                 // whose events have not been seen, in order
  std::map<std::int64_t, std::shared_ptr<Operation>> operations_;  // by their event's number
  std::deque<const event::MarkerRecorded*> side_effects_;          // of the task being replayed
  std::set<std::string> patches_;  // that the history has, or the code made
  std::map<std::string, bool> patch_answers_;

  // The code.
  Scheduler scheduler_;
  std::shared_ptr<CancelScope> root_;
  std::shared_ptr<CancelScope> shield_;
  std::set<std::shared_ptr<Operation>> live_;
  std::map<std::string, SignalHandler> signal_handlers_;
  std::map<std::string, QueryHandler> query_handlers_;
  std::vector<std::pair<std::string, std::optional<Payloads>>> signals_unhandled_;
  std::map<std::string, Random> streams_;
  std::int64_t last_activity_ = 0;
  std::int64_t last_timer_ = 0;
  std::int64_t last_child_ = 0;
  Time now_{};
  std::optional<Command> closing_command_;
  std::exception_ptr task_failure_;
  bool cancel_requested_ = false;
  std::vector<std::vector<Command>>* record_ = nullptr;
  bool is_replaying_ = true;
  bool in_query_ = false;
  bool is_closing_ = false;
  bool closed_ = false;

  std::list<Spawned> spawned_;
  std::optional<Async<void>> main_;
};

}  // namespace permit::worker
