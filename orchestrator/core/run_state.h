// What the server knows of one run: the fold of its events, plus the little that Temporal too keeps
// out of history (`Volatile`), written in the same transaction. Pure: no clock, no store.
//
// Coupled fields, in LogCabin's manner, since that is where mistakes hide:
// - next_event_id moves only in apply(), by one an event; history_bytes is kept by the store's
//   writer, who knows the text.
// - workflow_task.scheduled_event_id != 0 means a task is outstanding; .started_event_id != 0 means
//   a worker has it, and then every event from outside goes to `buffered` instead of history.
// - attempt > 1 is a transient task: its Scheduled and Started are not in history and their ids are
//   only promised (next_event_id and the one after).
// - a closed run has no timers, activities, children, buffered events or task.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "orchestrator/protocol/event.h"

namespace permit::core {

struct WorkflowTaskState {
  std::int64_t scheduled_event_id = 0;
  std::int64_t started_event_id = 0;
  std::int32_t attempt = 1;
  Duration timeout{};              // start to close
  Time scheduled_time{};           // of this attempt
  Time original_scheduled_time{};  // of the first of those that heartbeats made of it
  Time started_time{};
  std::int64_t nonce = 0;        // of the hand-out; part of the task token
  std::string identity;          // of the worker that has it
  bool on_sticky_queue = false;  // offered to the sticky queue, not the normal one
};
BOOST_DESCRIBE_STRUCT(WorkflowTaskState, (),
                      (scheduled_event_id, started_event_id, attempt, timeout, scheduled_time,
                       original_scheduled_time, started_time, nonce, identity, on_sticky_queue))

// The attempt of an activity that is waiting, running or between retries. A store row of its own,
// so that a heartbeat rewrites only this.
struct ActivityAttempt {
  std::int32_t attempt = 1;
  Time scheduled_time{};         // when this attempt may start
  bool waits_for_retry = false;  // until that time; not on the queue
  Time started_time{};           // set while a worker has it
  std::int64_t nonce = 0;
  std::string identity;
  Time last_heartbeat_time{};
  std::optional<Payloads> heartbeat_details;
  std::optional<Failure> last_failure;
  Time last_complete_time{};
};
BOOST_DESCRIBE_STRUCT(ActivityAttempt, (),
                      (attempt, scheduled_time, waits_for_retry, started_time, nonce, identity,
                       last_heartbeat_time, heartbeat_details, last_failure, last_complete_time))

struct ActivityState {
  event::ActivityTaskScheduled scheduled;  // the event, input included
  Time scheduled_time{};
  std::int64_t cancel_requested_event_id = 0;
  bool closed = false;  // its close is buffered
  ActivityAttempt attempt;
};

struct TimerState {
  std::int64_t started_event_id = 0;
  Time fire_time{};
  PoolName wake_on_pool;
  bool fired = false;  // its TimerFired is buffered
};

// A child of which at least one run is not known to have closed. A permit request for n slots has
// n runs under one initiated event.
struct ChildState {
  struct Run {
    WorkflowExecution execution;  // its first run; continuing as new does not change it
    std::int64_t started_event_id = 0;
  };

  WorkflowId workflow_id;
  WorkflowType workflow_type;
  std::string namespace_;
  ParentClosePolicy policy = ParentClosePolicy::terminate;
  std::int64_t workflow_task_completed_event_id = 0;
  PoolName waits_for;                    // stands in this pool's line; no run yet
  std::optional<PermitRequest> request;  // until it is answered; its `slots` dropped
  std::vector<Run> runs;
};

// Rounds in which a permit was refused since no slot was free.
struct Backoff {
  std::int32_t probes = 0;
  PermitRequest request;  // the last one's, its `slots` dropped
};

struct StickyQueue {
  std::string name;
  Duration schedule_to_start{};
};
BOOST_DESCRIBE_STRUCT(StickyQueue, (), (name, schedule_to_start))

// What a transaction stores of a run beside its events.
struct Volatile {
  WorkflowTaskState workflow_task;
  std::vector<Event> buffered;  // by arrival, ids not yet given
  StickyQueue sticky;
  Time permit_deadline{};  // moved by renewals; zero: not a permit
  Time permit_renewed{};   // the last time; zero: never
};
BOOST_DESCRIBE_STRUCT(Volatile, (),
                      (workflow_task, buffered, sticky, permit_deadline, permit_renewed))

// How a run ended, in the words of the ledger. Only permits have one.
struct HoldEnd {
  Outcome outcome = Outcome::unspecified;
  std::string cause;  // timer, backstop, operator, canceled, failed, or how the parent ended
};

struct RunState {
  RunNumber number;
  std::string namespace_;
  WorkflowId workflow_id;
  RunId run_id;

  WorkflowExecutionStatus status = WorkflowExecutionStatus::running;
  event::WorkflowExecutionStarted started;  // its input dropped: history has it
  Time start_time{};
  Time close_time{};
  std::int64_t next_event_id = 1;
  std::int64_t history_bytes = 0;

  std::int64_t last_completed_started_id = 0;  // WorkflowTaskStarted of the last completed task
  std::map<std::string, TimerState> timers;
  std::map<std::int64_t, ActivityState> activities;  // by ActivityTaskScheduled id
  std::map<std::int64_t, ChildState> children;       // by initiated event id
  std::map<PoolName, Backoff> backing_off;           // since the last answer of another kind
  std::set<std::string> request_ids;                 // of signals and cancels taken
  std::int64_t signals_received = 0;
  bool cancel_requested = false;
  bool canceled_by_parent = false;
  Memo memo;
  SearchAttributes search_attributes;

  bool lease_timer_fired = false;
  bool release_recorded = false;  // a `release` signal came before the lease timer fired
  std::optional<HoldEnd> hold_end;

  Volatile volatile_state;

  // Set by apply() when the worker has something new to see; cleared by scheduling a task.
  bool wants_workflow_task = false;
  // Beside it: the task goes on one that a worker keeps alive, which was scheduled then.
  Time heartbeat_since{};

  WorkflowTaskState& workflow_task() { return volatile_state.workflow_task; }
  const WorkflowTaskState& workflow_task() const { return volatile_state.workflow_task; }
  bool is_open() const { return status == WorkflowExecutionStatus::running; }
  bool has_task() const { return workflow_task().scheduled_event_id != 0; }
  bool task_started() const { return workflow_task().started_event_id != 0; }
  bool is_permit() const { return started.permit.has_value(); }
  // Granted through the `permit` object, so the server knows lease and grace; a stock SDK's plain
  // start of a permit id has only its execution timeout.
  bool is_managed_permit() const { return started.permit_request.has_value(); }
  WorkflowExecution execution() const { return {workflow_id, run_id}; }
  RunId first_run_id() const { return started.first_execution_run_id; }

  ActivityState* find_activity(const std::string& activity_id);
};

// The fold's step. The event must carry next_event_id.
void apply(RunState& state, const Event& event);
// Notes what a buffered event has settled already: a fired timer does not fire again, a closed
// activity does not time out, a request id is taken.
void note_buffered(RunState& state, const Event& event);

// A permit's grace: how long after the deadline the server itself ends the run.
Duration grace_of(Duration lease);

// When the server closes the run by itself: run or execution timeout, or a permit's backstop.
Time expiration(const RunState& state);
// When an activity's attempt runs into its next timeout, or may be retried.
Time activity_due(const ActivityState& activity);
Time workflow_task_due(const RunState& state);
// The fire time of a timer; a managed permit's `lease` timer follows the current deadline.
Time timer_due(const RunState& state, const std::string& timer_id, const TimerState& timer);
// The earliest of all of these; `never` if nothing is pending.
Time next_due(const RunState& state);

// The queue on which the outstanding workflow task is offered.
const std::string& task_queue_of(const RunState& state);

// About how many bytes of memory the state takes; for the cache's bound.
std::size_t footprint(const RunState& state);

bool is_close_event(const Event& event);

}  // namespace permit::core
