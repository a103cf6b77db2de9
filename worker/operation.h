// What a run has begun and that events will end: an activity, a timer, a child, a signal or a
// cancel request to another run. One small state machine each: its command waits for the end of the
// task, then its event gives it a number, then an event with that number ends it.
#pragma once

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "orchestrator/protocol/command.h"
#include "orchestrator/protocol/event.h"
#include "worker/cancel_scope.h"
#include "worker/options.h"

namespace permit::worker {

class Operation;

// A command of this task, or of an earlier one whose event has not been seen yet.
struct Issued {
  Command command;
  std::shared_ptr<Operation> operation;  // that its event belongs to, if any
};
using IssuedList = std::list<Issued>;

// What operations need of their run.
class OperationHost {
 public:
  virtual ~OperationHost() = default;
  virtual IssuedList::iterator issue(CommandAttributes command,
                                     std::shared_ptr<Operation> operation) = 0;
  virtual void take_back(IssuedList::iterator issued) = 0;
  // Nobody waits for more of it.
  virtual void forget(const Operation& operation) = 0;
};

// A result as it crosses the wire, or why there is none.
using RawResult = std::variant<std::optional<Payloads>, std::exception_ptr>;
using Done = std::function<void(const RawResult&)>;

class Operation : public std::enable_shared_from_this<Operation> {
 public:
  Operation(OperationHost& host, std::shared_ptr<CancelScope> scope)
      : host_(host), scope_(std::move(scope)) {}
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;
  virtual ~Operation() = default;

  // Sends its command, and is canceled with its scope from now on.
  void begin(CommandAttributes command);

  // Its command's event is in the history.
  virtual void recorded(const Event& event) { event_id_ = event.event_id; }
  // An event that names that number.
  virtual void apply(const Event& event) = 0;
  // The history that is about to be applied holds its end: asking for one would come too late.
  void will_end() { will_end_ = true; }
  virtual void cancel() = 0;
  // The run leaves memory: nobody is told anything any more.
  virtual void drop() = 0;

  std::int64_t event_id() const { return event_id_; }

 protected:
  bool is_unsent() const { return event_id_ == 0; }
  // Takes the command back; it never was.
  void take_back();
  void end();
  void leave_scope() { scope_->forget(scope_action_); }

  OperationHost& host_;
  std::int64_t event_id_ = 0;
  bool will_end_ = false;
  bool cancel_requested_ = false;

 private:
  const std::shared_ptr<CancelScope> scope_;
  std::int64_t scope_action_ = 0;
  IssuedList::iterator issued_;
};

// One with one result, told once.
class SingleOperation : public Operation {
 public:
  SingleOperation(OperationHost& host, std::shared_ptr<CancelScope> scope, Done done)
      : Operation(host, std::move(scope)), done_(std::move(done)) {}
  void drop() override { done_ = {}; }

 protected:
  void finish(const RawResult& result);

 private:
  Done done_;
};

class ActivityOperation : public SingleOperation {
 public:
  ActivityOperation(OperationHost& host, std::shared_ptr<CancelScope> scope, OnCancel on_cancel,
                    Done done)
      : SingleOperation(host, std::move(scope), std::move(done)), on_cancel_(on_cancel) {}
  void apply(const Event& event) override;
  void cancel() override;

 private:
  const OnCancel on_cancel_;
};

class TimerOperation : public SingleOperation {
 public:
  TimerOperation(OperationHost& host, std::shared_ptr<CancelScope> scope, std::string timer_id,
                 Done done)
      : SingleOperation(host, std::move(scope), std::move(done)), timer_id_(std::move(timer_id)) {}
  void apply(const Event& event) override;
  void cancel() override;

 private:
  const std::string timer_id_;
};

// A signal to, or a cancel request for, another run: done when it has been delivered.
class ExternalOperation : public SingleOperation {
 public:
  using SingleOperation::SingleOperation;
  void apply(const Event& event) override;
  void cancel() override;
};

// One run that a start has led to. A start under a permit for n slots has n.
struct ChildRun {
  WorkflowExecution execution;
  Fence fence;
  Time deadline{};
};

class ChildOperation : public Operation {
 public:
  using Started = std::function<void(const std::vector<ChildRun>&)>;
  using NotStarted = std::function<void(std::exception_ptr)>;

  ChildOperation(OperationHost& host, std::shared_ptr<CancelScope> scope, WorkflowId id,
                 std::size_t runs_wanted, Started started, NotStarted not_started)
      : Operation(host, std::move(scope)),
        id_(std::move(id)),
        runs_wanted_(runs_wanted),
        started_(std::move(started)),
        not_started_(std::move(not_started)) {}

  void recorded(const Event& event) override;
  void apply(const Event& event) override;
  void cancel() override;
  void drop() override;

  // It is not begun at all.
  void refuse(std::exception_ptr exception) { fail(std::move(exception)); }
  // What has started stays when the scope is canceled.
  void outlive_scope() { leave_scope(); }
  // Asks one of its runs to cancel.
  void cancel_run(const RunId& run);
  // `done` is called once that run has closed, or at once.
  void when_closed(const RunId& run, Done done);

 private:
  struct Run {
    ChildRun child;
    std::optional<RawResult> result;
    std::vector<Done> waiting;
  };

  Run* find(const RunId& run);
  void close(const WorkflowExecution& execution, const RawResult& result);
  void fail(std::exception_ptr exception);

  WorkflowId id_;  // of a permit that waits: only once it is recorded
  const std::size_t runs_wanted_;
  Started started_;
  NotStarted not_started_;
  std::vector<Run> runs_;
};

}  // namespace permit::worker
