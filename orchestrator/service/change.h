// One request's effect, decided whole: the runs it touches, the messages between them, the tasks it
// hands out. Decides in memory; write() puts its rows into the open batch. A Change that is
// destroyed unwritten forgets what it touched, so the next request sees the database's truth again.
// Lives on the engine thread, within one request.
#pragma once

#include <functional>
#include <map>
#include <set>

#include "orchestrator/core/limits.h"
#include "orchestrator/core/transition.h"
#include "orchestrator/service/matching.h"
#include "orchestrator/service/run_cache.h"
#include "orchestrator/service/task_token.h"

namespace permit::service {

class Pools;

// What a Change works on; owned by the Engine.
struct Parts {
  store::Store& store;
  RunCache& cache;
  Matching& matching;
  Pools& pools;
  core::Ids& ids;
  const core::Limits& limits;
  const TokenSeal tokens;
  std::string scratch{};  // for text that is copied on at once
};

// A run about to be made.
struct NewRun {
  std::string namespace_;
  WorkflowId workflow_id;
  RunId run_id;  // empty: a fresh one
  event::WorkflowExecutionStarted started;
};

class Change {
 public:
  Change(Parts& parts, Time now);
  ~Change();
  Change(const Change&) = delete;
  Change& operator=(const Change&) = delete;

  Parts& parts() { return parts_; }
  Time now() const { return context_.now; }
  const core::Context& context() const { return context_; }
  const core::Limits& limits() const { return parts_.limits; }
  // For who is no admin: what is sent to a permit that somebody has the token of does not arrive.
  void spare_tokens(bool spares = true) { spares_tokens_ = spares; }

  // --- Looking up; sees this change's own effects ---
  core::RunState* find(RunNumber number) { return parts_.cache.find(number); }
  core::RunState& run(RunNumber number);
  core::RunState* open_run(const std::string& namespace_, const WorkflowId& id);
  core::RunState* latest_run(const std::string& namespace_, const WorkflowId& id);
  core::RunState* run_by_id(const RunId& run_id);

  // --- Deciding ---
  core::RunState& start_run(NewRun run);
  // Applies a transition to a run; its events and messages become part of this change.
  template <class Act>
  void step(core::RunState& state, const Act& act) {
    touched(state.number);  // first, so that a throw makes us forget the run
    const bool was_open = state.is_open();
    core::Transition transition(state, context_);
    act(transition);
    record(state, transition.take());
    if (was_open && !state.is_open()) send(core::TaskClosed{state.number});
  }
  // A signal, and for `renew` on a permit what it stands for: returns the new deadline.
  std::optional<Time> signal(core::RunState& target, event::WorkflowExecutionSignaled signaled);
  // The run's volatile part changes without an event (a heartbeat, a renewal).
  void touch(const core::RunState& state) { touched(state.number); }
  void send(core::Message message) { messages_.push_back(std::move(message)); }
  // The request's worker wants the run's next workflow task at once, in its answer.
  void claim_workflow_task(RunNumber run, std::string identity);
  bool claimed(RunNumber run) const { return claims_granted_.contains(run); }
  // A poll takes an offer from its queue. Returns whether the offer still stood and is now this
  // worker's.
  bool take(const Matching::QueueKey& queue, const Offer& offer, const std::string& identity);
  // The next place in any line; the next number of a grant.
  std::int64_t next_arrival();
  Fence next_fence();
  // Also written with the change (pools, waiters, holds).
  void also_write(std::function<void(store::Store&)> write) {
    if (extra_.empty()) extra_.reserve(4);
    extra_.push_back(std::move(write));
  }
  // That the holder of this permit gave it back, if it had ended otherwise before.
  void note_late_release(const core::RunState& permit);

  // Applies messages until none is left, makes the workflow tasks that are wanted, and hands new
  // tasks to those who wait for them.
  void settle();
  void deliver_messages();
  // Puts all rows into the batch. Afterwards the change is part of what memory knows.
  void write();

  // --- What came of it; after write() ---
  struct Match {
    Poller poller;
    Offer offer;
  };
  const std::vector<Match>& matches() const { return matches_; }
  // Runs that got new events, and whether they closed.
  const std::vector<RunNumber>& touched_runs() const { return order_; }
  bool has_new_events(RunNumber run) const;
  bool has_started(RunNumber run) const { return touched_.at(run).is_new; }
  bool has_closed(RunNumber run) const;
  const std::vector<RunNumber>& late_releases() const { return late_releases_; }
  // Tasks that workers got, and how long those had waited.
  struct TaskStart {
    RunNumber run;
    std::int64_t scheduled_event_id = 0;  // of an activity; 0: the run's workflow task
    Duration waited{};
    bool polled = false;  // not as the answer to a completion
  };
  const std::vector<TaskStart>& task_starts() const { return task_starts_; }
  const std::vector<core::SilentActivity>& silent_activities() const { return silent_; }
  bool was_due(RunNumber run) const { return touched_.at(run).was_due; }

 private:
  struct Touched {
    bool is_new = false;
    bool was_open = false;
    bool had_activities = false;  // before this change, so there are rows of them
    bool was_due = false;         // time would have done something to it
    std::vector<Event> events;
    bool task_offered = false;
    std::vector<std::int64_t> activities_offered;
    std::set<std::int64_t> activities_changed;  // rows to write, unless closed by now
  };

  Touched& touched(RunNumber number);
  void record(core::RunState& state, core::Decision decision);
  void apply(core::Message message);
  void finish(core::RunState& state);
  void hand_out(core::RunState& state);
  void hand_out_workflow_task(core::RunState& state);
  void hand_out_activity(core::RunState& state, std::int64_t scheduled_event_id);
  void begin_workflow_task(core::RunState& state, const std::string& identity);
  void begin_activity(core::RunState& state, std::int64_t scheduled_event_id,
                      const std::string& identity);
  void write_history(core::RunState& state, const Touched& touched);
  void write_activities(const core::RunState& state, const Touched& touched);

  // One overload a message.
  void deliver(core::StartChild& message);
  void deliver(core::SignalRun& message);
  void deliver(core::CancelRun& message);
  void deliver(core::ChildClosed& message);
  void deliver(core::ParentClosed& message);
  void deliver(core::LeaveLine& message);
  void deliver(core::ContinueRun& message);
  void deliver(core::PermitEnded& message);
  void deliver(core::SleeperChanged& message);
  void deliver(core::TaskClosed& message);
  void deliver(core::RenewPermit& message);
  void tell(const core::Sender& sender, EventAttributes attributes);
  core::RunState* external_target(const core::Sender& sender, const WorkflowExecution& target);

  Parts& parts_;
  core::Context context_;
  bool written_ = false;
  bool spares_tokens_ = false;
  std::map<RunNumber, Touched> touched_;
  std::vector<RunNumber> order_;
  std::map<std::pair<std::string, WorkflowId>, RunNumber> started_;  // by this change, latest
  std::vector<core::Message> messages_;
  std::map<RunNumber, std::string> claims_;
  std::set<RunNumber> claims_granted_;
  std::vector<Match> matches_;
  std::vector<std::pair<Matching::QueueKey, Poller>> pollers_taken_;
  std::vector<std::pair<Matching::QueueKey, Offer>> offers_made_;
  std::vector<std::function<void(store::Store&)>> extra_;
  std::vector<RunNumber> late_releases_;
  std::vector<TaskStart> task_starts_;
  std::vector<core::SilentActivity> silent_;
};

}  // namespace permit::service
