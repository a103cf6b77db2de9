// What a transition yields besides the changed state: the events appended to the run, and messages
// to other runs and to pools. Messages are values; the service applies them in the same transaction
// until none is left. A store that shards could put the same values in an outbox.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "orchestrator/core/run_state.h"
#include "orchestrator/protocol/command.h"
#include "orchestrator/protocol/event.h"

namespace permit::core {

// Fresh identifiers. The service has one over the store's counters; tests have a counting one.
class Ids {
 public:
  Ids() = default;
  Ids(const Ids&) = delete;
  Ids& operator=(const Ids&) = delete;
  virtual ~Ids() = default;
  virtual RunId new_run_id(Time now) = 0;
  virtual std::int64_t nonce() = 0;  // positive, not to be guessed
};

// `now` is fixed for a whole batch.
struct Context {
  Time now{};
  Ids* ids = nullptr;
};

// Who waits for the answer to a message, if anybody: an open run and its initiated event.
struct Sender {
  RunNumber run;
  WorkflowExecution execution;
  std::int64_t initiated_event_id = 0;
};

struct StartChild {
  Sender parent;
  std::int64_t workflow_task_completed_event_id = 0;
  WorkflowExecution root;
  command::StartChildWorkflowExecution attributes;
};
struct SignalRun {
  Sender sender;
  command::SignalExternalWorkflowExecution attributes;
};
struct CancelRun {
  Sender sender;
  command::RequestCancelExternalWorkflowExecution attributes;
};
// A child's close, told to the run that started it.
struct ChildClosed {
  WorkflowExecution parent;
  std::int64_t initiated_event_id = 0;
  WorkflowExecution child;  // the first run of its chain
  EventAttributes close;
};
// A parent's close, told to one child by its first run id.
struct ParentClosed {
  WorkflowExecution parent;
  WorkflowExecution child;
  ParentClosePolicy policy = ParentClosePolicy::terminate;
  std::string how;  // completed, failed, canceled, terminated, timed_out, continued_as_new
};
// A run that stood in a pool's line has closed or withdrawn.
struct LeaveLine {
  RunNumber run;
  std::int64_t initiated_event_id = 0;
  PoolName pool;
};
// A new run takes over the workflow id in the same transaction.
struct ContinueRun {
  RunNumber old_run;
  RunId run_id;
  event::WorkflowExecutionStarted started;
};
// A permit's run has closed; its slot is free.
struct PermitEnded {
  PoolName pool;
  SlotName slot;
  RunNumber run;
};
// A sleeper with a wakeOnPool timer began or stopped waiting, or took its task.
struct SleeperChanged {
  RunNumber run;
  PoolName pool;
};
// A run's workflow task has closed, or the run: a wake that it was given is spent or not needed.
struct TaskClosed {
  RunNumber run;
};
// A heartbeat of an activity that runs under a permit of its own workflow's.
struct RenewPermit {
  RunId permit_run_id;
  RunNumber holder;
};

// A large message, so that a list of messages is small: most of them are.
template <class T>
class Apart {
 public:
  Apart(T message) : message_(std::make_unique<T>(std::move(message))) {}
  operator T&() { return *message_; }
  operator const T&() const { return *message_; }

 private:
  std::unique_ptr<T> message_;
};

using Message = std::variant<Apart<StartChild>, SignalRun, CancelRun, Apart<ChildClosed>,
                             ParentClosed, LeaveLine, Apart<ContinueRun>, PermitEnded,
                             SleeperChanged, TaskClosed, RenewPermit>;

// An activity whose worker gave no sign of life for too long; with a retry no event says so.
struct SilentActivity {
  std::string task_queue;
  std::string type;
};

struct Decision {
  std::vector<Event> events;
  std::vector<Message> messages;
  bool workflow_task_offered = false;            // a task is now to be handed out
  std::vector<std::int64_t> activities_offered;  // activities that are now to be handed out
  std::vector<std::int64_t> activities_changed;  // their attempts; ids of ActivityTaskScheduled
  std::vector<SilentActivity> activities_silent;
};

// A worker's command that may not be carried out. The state it was tried on is spoiled: reload it
// and fail the task with this cause.
struct CommandRejected {
  WorkflowTaskFailedCause cause = WorkflowTaskFailedCause::unspecified;
  std::string message;
  bool terminates_run = false;  // too large to be kept at all
};

}  // namespace permit::core
