// All histories, read commit by commit from the store, and what must be true of them. It believes
// events only: outcomes, deadlines, timers and children are worked out again from them.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "orchestrator/core/run_state.h"
#include "orchestrator/store/store.h"
#include "tests/simulation/promises.h"
#include "tests/simulation/sometimes.h"

namespace permit::simulation {

struct TimerTrace {
  std::int64_t started_event_id = 0;
  Time due{};
  PoolName wake_on_pool;
};

struct ChildTrace {
  ParentClosePolicy policy = ParentClosePolicy::terminate;
  WorkflowId workflow_id;
  std::optional<PermitRequest> permit;
  int priority = 3;
  bool waits = true;  // neither started nor failed
  std::vector<WorkflowExecution> open;
};

struct ActivityTrace {
  std::string id;
  bool cancel_requested = false;
  std::int32_t attempt = 0;  // of the start in history; 0: none
};

struct RunTrace {
  RunNumber number;
  WorkflowId workflow_id;
  RunId run_id;
  std::string type;
  std::optional<WorkflowExecution> parent;
  RunId first_run_id;
  std::int64_t initiated_event_id = 0;
  ParentClosePolicy policy = ParentClosePolicy::unspecified;
  std::optional<PermitGrant> grant;
  std::optional<PermitRequest> request;
  std::string request_id;
  Time started{};
  std::int64_t started_seq = 0;
  std::int64_t granted = 0;  // its place among all grants

  std::vector<Event> events;
  std::map<std::int64_t, std::size_t> texts;  // of stored rows: first event id → hash
  std::map<std::string, TimerTrace> timers;
  std::map<std::int64_t, ChildTrace> children;
  std::map<std::int64_t, ActivityTrace> activities;
  std::vector<WorkflowExecution> permits_past;  // that it once held
  std::int64_t task_scheduled = 0;              // the last one in history
  bool task_started = false;
  bool task_failed = false;  // that its next attempt has started is not in history
  bool released = false;     // a release before the lease timer
  bool lease_fired = false;
  bool cancel_requested = false;
  bool canceled_by_parent = false;
  bool told_to_finish = false;
  int depth = 0;
  std::size_t events_checked = 0;  // by the last sweep

  bool open = true;
  Time closed{};
  std::int64_t closed_seq = 0;
  std::string how;  // it closed, as the ledger says it

  bool is_permit() const { return grant.has_value(); }
  WorkflowExecution execution() const { return {workflow_id, run_id}; }
};

class Ledger {
 public:
  // `retention`: of closed runs; zero: for ever.
  Ledger(Promises& promises, Totals& totals, Duration retention)
      : promises_(promises), totals_(totals), retention_(retention) {}

  // After a commit, at that time. Reads what is new and checks it. `punctual`: nothing keeps the
  // server from doing what is due.
  void read(store::Store& store, Time now, bool punctual);
  // After a restart: what was read before is still there, to the letter.
  void reread(store::Store& store, Time now);
  // The store is about to be closed.
  void let_go() { rows_after_.reset(); }
  // Everything about every run.
  void sweep(store::Store& store, Time now);

  RunTrace* find(RunNumber number);
  const RunTrace* find(const RunId& run_id) const;
  const RunTrace* find_open(const WorkflowId& id) const;
  const std::map<std::int64_t, RunTrace>& runs() const { return runs_; }
  const std::set<std::int64_t>& open() const { return open_; }
  // By fence: granted by the commits of the last read().
  const std::vector<const RunTrace*>& new_grants() const { return new_grants_; }
  bool permits_changed() const { return permits_changed_; }
  // How many wake timers fired within a second that the last task of their run has not seen yet.
  std::size_t awake(const PoolName& pool, Time now) const;
  // The permit may have a later deadline from here on.
  void renewed(const RunId& run_id, Time now, Duration lease);
  // The latest deadline that it may have.
  Time deadline_max(const RunTrace& permit) const;
  // Which attempt of its activity the request with this mark has ended, as history says; 0: none.
  const std::map<std::string, std::int32_t>& activity_ends() const { return activity_ends_; }
  // Of all that was read, in order: two runs of a seed must agree.
  std::uint64_t hash() const { return hash_; }

 private:
  struct Row {
    std::int64_t run = 0;
    std::int64_t first_event_id = 0;
    std::int64_t commit_seq = 0;
    std::string events;
  };

  std::vector<Row> rows_after(store::Store& store, std::int64_t commit_seq);
  void take(store::Store& store, const Row& row);
  void apply(RunTrace& run, const Event& event, std::int64_t seq);
  void start(RunTrace& run, const event::WorkflowExecutionStarted& e, const Event& event,
             std::int64_t seq);
  void answer(RunTrace& run, const Event& event);
  void trace_client(RunTrace& run, const Event& event);
  void trace_worker(RunTrace& run, const Event& event);
  void trace_child(RunTrace& run, const Event& event);
  void close(RunTrace& run, const Event& event, std::int64_t seq);
  void fire(RunTrace& run, const event::TimerFired& fired, Time at);
  void check_close(store::Store& store, const RunTrace& run);
  void check_outcome(store::Store& store, const RunTrace& run);
  void check_parent_close(const RunTrace& run);
  void check_child(const RunTrace& child, const core::Volatile& parent_volatile);
  void check_deadlines(Time now) const;
  void note_situation(const RunTrace& run, const Event& event);
  void note_close(const RunTrace& run);
  void note_retention(store::Store& store) const;

  Promises& promises_;
  Totals& totals_;
  const Duration retention_;
  std::unique_ptr<store::Statement> rows_after_;
  Time now_{};
  std::int64_t seq_ = 0;
  std::uint64_t hash_ = 14'695'981'039'346'656'037U;
  std::map<std::int64_t, RunTrace> runs_;
  std::map<RunId, std::int64_t> by_run_id_;
  std::set<std::int64_t> open_;
  std::map<WorkflowId, std::int64_t> open_by_id_;
  std::map<std::string, std::int32_t> activity_ends_;  // by mark
  std::multimap<RunId, std::int64_t> by_parent_;
  std::map<std::string, std::int64_t> fence_of_slot_;  // the highest granted
  std::set<std::int64_t> fences_;
  std::map<RunId, Time> deadline_max_;  // of permits that were renewed
  std::map<std::pair<std::int64_t, std::string>, std::pair<PoolName, Time>> woken_;
  std::vector<const RunTrace*> new_grants_;
  std::vector<const RunTrace*> new_closes_;
  bool permits_changed_ = false;
};

}  // namespace permit::simulation
