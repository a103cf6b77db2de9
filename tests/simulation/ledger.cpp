#include "tests/simulation/ledger.h"

#include "orchestrator/core/invariants.h"
#include "orchestrator/protocol/json.h"
#include "orchestrator/store/packed_events.h"

namespace permit::simulation {

using namespace std::chrono_literals;

RunTrace* Ledger::find(RunNumber number) {
  const auto found = runs_.find(number.value);
  return found == runs_.end() ? nullptr : &found->second;
}

const RunTrace* Ledger::find(const RunId& run_id) const {
  const auto found = by_run_id_.find(run_id);
  return found == by_run_id_.end() ? nullptr : &runs_.at(found->second);
}

const RunTrace* Ledger::find_open(const WorkflowId& id) const {
  const auto found = open_by_id_.find(id);
  return found == open_by_id_.end() ? nullptr : &runs_.at(found->second);
}

void Ledger::renewed(const RunId& run_id, Time now, Duration lease) {
  Time& deadline = deadline_max_[run_id];
  deadline = std::max(deadline, now + lease);
}

Time Ledger::deadline_max(const RunTrace& permit) const {
  Time deadline = permit.grant->deadline;
  const auto renewed = deadline_max_.find(permit.run_id);
  if (renewed != deadline_max_.end()) deadline = std::max(deadline, renewed->second);
  if (permit.request && permit.request->max_hold.count() > 0) {
    deadline = std::min(deadline, permit.started + permit.request->max_hold);
  }
  return deadline;
}

std::size_t Ledger::awake(const PoolName& pool, Time now) const {
  std::size_t count = 0;
  for (const auto& [key, wake] : woken_) {
    if (wake.first == pool && wake.second + 1s > now) ++count;
  }
  return count;
}

// --- Reading ---

std::vector<Ledger::Row> Ledger::rows_after(store::Store& store, std::int64_t commit_seq) {
  if (!rows_after_) {
    rows_after_ = std::make_unique<store::Statement>(
        store.database(),
        "SELECT run, first_event_id, commit_seq, events FROM history "
        "WHERE commit_seq > ? ORDER BY commit_seq, run, first_event_id");
  }
  std::vector<Row> rows;
  for (auto row = rows_after_->bind(commit_seq); row.step();) {
    const auto text = store::unpack_events(row.blob(3));
    auto batches = text ? store::split_batches(row.i64(1), *text) : std::nullopt;
    require(batches.has_value(), "events that cannot be unpacked");
    for (store::HistoryBatch& batch : *batches) {
      rows.push_back({row.i64(0), batch.first_event_id, row.i64(2), std::move(batch.events)});
    }
  }
  return rows;
}

void Ledger::take(store::Store& store, const Row& row) {
  RunTrace& run = runs_[row.run];
  if (run.events.empty()) {
    const auto known = store.run(RunNumber{row.run});
    require(known.has_value(), "history of run " + std::to_string(row.run) + " without a run");
    run.number = known->number;
    run.workflow_id = known->workflow_id;
    run.run_id = known->run_id;
    by_run_id_[run.run_id] = row.run;
    open_.insert(row.run);
    require(open_by_id_.emplace(run.workflow_id, row.run).second,
            [&] { return "two open runs have the id " + run.workflow_id.value; });
  }
  for (const char letter : row.events) {
    hash_ = (hash_ ^ static_cast<unsigned char>(letter)) * 1'099'511'628'211U;
  }
  run.texts[row.first_event_id] = std::hash<std::string>()(row.events);
  const auto next = static_cast<std::int64_t>(run.events.size()) + 1;
  require(row.first_event_id == next, [&] {
    return "history of " + run.workflow_id.value +
           " has a gap: " + std::to_string(row.first_event_id) + " after " +
           std::to_string(next - 1);
  });
  for (Event& event : read_json<std::vector<Event>>("[" + row.events + "]")) {
    apply(run, event, row.commit_seq);
    run.events.push_back(std::move(event));
  }
}

void Ledger::read(store::Store& store, Time now, bool punctual) {
  now_ = now;
  new_grants_.clear();
  new_closes_.clear();
  permits_changed_ = false;
  if (store.counters().commit_seq != seq_) {
    for (const Row& row : rows_after(store, seq_)) take(store, row);
    seq_ = store.counters().commit_seq;
  }
  std::sort(new_grants_.begin(), new_grants_.end(),
            [](const RunTrace* a, const RunTrace* b) { return a->grant->fence < b->grant->fence; });
  for (const RunTrace* run : new_grants_) {
    find(run->number)->granted = ++totals_.grants;
    const std::int64_t fence = run->grant->fence.value;
    require(fences_.insert(fence).second, "fence " + std::to_string(fence) + " is used twice");
    std::int64_t& highest = fence_of_slot_[run->workflow_id.value];
    require(fence > highest, "fence " + std::to_string(fence) + " of " + run->workflow_id.value +
                                 " is not above the one before");
    highest = fence;
  }
  for (const RunTrace* run : new_closes_) {
    check_close(store, *run);
    note_close(*run);
  }
  if (punctual) check_deadlines(now);
}

void Ledger::reread(store::Store& store, Time now) {
  std::map<std::pair<std::int64_t, std::int64_t>, std::size_t> there;
  for (const Row& row : rows_after(store, 0)) {
    there[{row.run, row.first_event_id}] = std::hash<std::string>()(row.events);
  }
  for (const auto& [number, run] : runs_) {
    const bool gone = !run.open && retention_.count() > 0 && run.closed + retention_ <= now;
    for (const auto& [first_event_id, hash] : run.texts) {
      if (gone && !there.contains({number, first_event_id})) break;
      const auto found = there.find({number, first_event_id});
      require(found != there.end() && found->second == hash,
              "a commit is gone after the restart: " + run.workflow_id.value + " event " +
                  std::to_string(first_event_id));
    }
  }
  read(store, now, false);
}

// --- Folding, our way ---

void Ledger::apply(RunTrace& run, const Event& event, std::int64_t seq) {
  const auto where = [&] {
    return run.workflow_id.value + " event " + std::to_string(event.event_id);
  };
  const bool first = run.events.empty();
  require(event.event_id == static_cast<std::int64_t>(run.events.size()) + 1,
          [&] { return "event ids of " + where() + " have a gap"; });
  require(run.open || first, [&] { return where() + " follows the close"; });
  require(event.event_time <= now_, [&] { return where() + " lies in the future"; });
  note_situation(run, event);
  if (const auto* started = event.get_if<event::WorkflowExecutionStarted>()) {
    require(first, [&] { return where() + " is a second start"; });
    start(run, *started, event, seq);
  }
  trace_client(run, event);
  trace_worker(run, event);
  trace_child(run, event);
  if (core::is_close_event(event)) close(run, event, seq);
}

void Ledger::start(RunTrace& run, const event::WorkflowExecutionStarted& e, const Event& event,
                   std::int64_t seq) {
  run.type = e.workflow_type.name;
  run.parent = e.parent_workflow_execution;
  run.first_run_id = e.first_execution_run_id;
  run.initiated_event_id = e.parent_initiated_event_id;
  run.policy = e.parent_close_policy;
  run.grant = e.permit;
  run.request = e.permit_request;
  run.request_id = e.request_id;
  run.started = event.event_time;
  run.started_seq = seq;
  promises_.saw(Trace::started, e.request_id, run.run_id);
  if (run.parent) {
    by_parent_.emplace(run.parent->run_id, run.number.value);
    if (const RunTrace* parent = find(run.parent->run_id)) run.depth = parent->depth + 1;
  }
  if (!run.is_permit()) return;
  permits_changed_ = true;
  new_grants_.push_back(&run);
  require(e.permit->deadline > event.event_time, "a permit is granted past its deadline");
}

void Ledger::trace_client(RunTrace& run, const Event& event) {
  if (const auto* signaled = event.get_if<event::WorkflowExecutionSignaled>()) {
    promises_.saw(Trace::signaled, signaled->identity, run.run_id);
    if (signaled->input) {  // one that a workflow sent is marked in its input
      std::string mark = signaled->input->payloads.at(0).data.value;
      if (mark.size() > 2) mark = mark.substr(1, mark.size() - 2);
      promises_.saw(Trace::signaled, mark, run.run_id);
    }
    if (signaled->signal_name == "release" && !run.lease_fired) run.released = true;
    if (signaled->signal_name == "finish") run.told_to_finish = true;
    if (signaled->signal_name == "renew" && run.request) {
      renewed(run.run_id, event.event_time, run.request->lease);
    }
  } else if (const auto* cancel = event.get_if<event::WorkflowExecutionCancelRequested>()) {
    promises_.saw(Trace::cancel_requested, cancel->identity, run.run_id);
    require(!run.cancel_requested, run.workflow_id.value + " is asked twice to cancel");
    run.cancel_requested = true;
    run.canceled_by_parent = run.parent && cancel->external_workflow_execution == run.parent;
  } else if (const auto* terminated = event.get_if<event::WorkflowExecutionTerminated>()) {
    promises_.saw(Trace::terminated, terminated->identity, run.run_id);
    const bool replaced = terminated->reason.starts_with("TerminateIfRunning") && !run.is_permit();
    require(!terminated->parent_close.empty() || replaced ||
                promises_.knows(terminated->identity) || terminated->identity == "test",
            [&] { return run.workflow_id.value + " was terminated and nobody had asked for it"; });
  }
}

void Ledger::trace_worker(RunTrace& run, const Event& event) {
  if (event.get_if<event::WorkflowTaskScheduled>()) {
    run.task_scheduled = event.event_id;
    run.task_failed = false;
  } else if (event.get_if<event::WorkflowTaskStarted>()) {
    run.task_started = true;
  } else if (const auto* completed = event.get_if<event::WorkflowTaskCompleted>()) {
    promises_.saw(Trace::task_completed, completed->identity, run.run_id);
    run.task_started = false;
    run.task_failed = false;
    std::erase_if(woken_, [&](const auto& wake) { return wake.first.first == run.number.value; });
  } else if (event.get_if<event::WorkflowTaskFailed>() ||
             event.get_if<event::WorkflowTaskTimedOut>()) {
    run.task_started = false;
    run.task_failed = true;
  } else if (const auto* timer = event.get_if<event::TimerStarted>()) {
    const TimerTrace trace{event.event_id, event.event_time + timer->start_to_fire_timeout,
                           timer->wake_on_pool};
    require(run.timers.emplace(timer->timer_id, trace).second, "a timer id is used twice");
  } else if (const auto* canceled = event.get_if<event::TimerCanceled>()) {
    require(run.timers.erase(canceled->timer_id) == 1, "a timer is canceled that is none");
  } else if (const auto* fired = event.get_if<event::TimerFired>()) {
    fire(run, *fired, event.event_time);
  } else if (const auto* scheduled = event.get_if<event::ActivityTaskScheduled>()) {
    run.activities[event.event_id] = {scheduled->activity_id};
  } else if (const auto* asked = event.get_if<event::ActivityTaskCancelRequested>()) {
    run.activities.at(asked->scheduled_event_id).cancel_requested = true;
  } else if (const auto* retried = event.get_if<event::ActivityTaskStarted>()) {
    if (retried->attempt > 1) ++totals_.activities_retried;
    run.activities.at(retried->scheduled_event_id).attempt = retried->attempt;
  }
  std::visit(
      [&]<class T>(const T& e) {
        if constexpr (std::is_same_v<T, event::ActivityTaskCompleted> ||
                      std::is_same_v<T, event::ActivityTaskFailed> ||
                      std::is_same_v<T, event::ActivityTaskCanceled>) {
          promises_.saw(Trace::activity_end, e.identity, run.run_id);
          const auto ended = run.activities.find(e.scheduled_event_id);
          if (ended != run.activities.end()) activity_ends_[e.identity] = ended->second.attempt;
        }
        if constexpr (std::is_same_v<T, event::ActivityTaskCompleted> ||
                      std::is_same_v<T, event::ActivityTaskFailed> ||
                      std::is_same_v<T, event::ActivityTaskTimedOut> ||
                      std::is_same_v<T, event::ActivityTaskCanceled>) {
          require(run.activities.erase(e.scheduled_event_id) == 1, "an activity ends twice");
        }
      },
      event.attributes);
}

// Never early: only a sleeper may be woken before its time.
void Ledger::fire(RunTrace& run, const event::TimerFired& fired, Time at) {
  const auto timer = run.timers.find(fired.timer_id);
  require(timer != run.timers.end(), "a timer fires twice, or after it was canceled");
  const bool lease = run.request.has_value() && fired.timer_id == "lease";
  const Time due = lease ? run.grant->deadline : timer->second.due;
  const bool early = at < due;
  require(!early || !timer->second.wake_on_pool.empty(),
          "timer " + fired.timer_id + " of " + run.workflow_id.value + " fires early");
  if (early) ++totals_.wakes;
  // One that is due may have been woken all the same, if a slot came free before its turn.
  if (!timer->second.wake_on_pool.empty()) {
    woken_[{run.number.value, fired.timer_id}] = {timer->second.wake_on_pool, at};
  }
  if (fired.timer_id == "lease") run.lease_fired = true;
  run.timers.erase(timer);
}

void Ledger::trace_child(RunTrace& run, const Event& event) {
  if (const auto* e = event.get_if<event::StartChildWorkflowExecutionInitiated>()) {
    ChildTrace child{e->parent_close_policy, e->workflow_id, e->permit, 3, true, {}};
    if (e->priority && e->priority->priority_key != 0) child.priority = e->priority->priority_key;
    run.children.emplace(event.event_id, std::move(child));
    permits_changed_ = permits_changed_ || e->permit.has_value();
  } else if (const auto* started = event.get_if<event::ChildWorkflowExecutionStarted>()) {
    ChildTrace& child = run.children.at(started->initiated_event_id);
    child.waits = false;
    child.open.push_back(*started->workflow_execution);
    if (child.permit) run.permits_past.push_back(*started->workflow_execution);
  } else if (const auto* failed = event.get_if<event::StartChildWorkflowExecutionFailed>()) {
    const auto child = run.children.find(failed->initiated_event_id);
    require(child != run.children.end() && child->second.waits,
            "a child's start is recorded as failed although it started");
    run.children.erase(child);
    permits_changed_ = true;
  } else if (const auto* sent = event.get_if<event::SignalExternalWorkflowExecutionInitiated>()) {
    // It counts at once, also while the permit's own history waits for its worker's task.
    const RunTrace* permit =
        sent->signal_name == "renew" ? find(sent->workflow_execution->run_id) : nullptr;
    if (permit != nullptr && permit->request) {
      renewed(permit->run_id, event.event_time, permit->request->lease);
    }
  } else if (event.get_if<event::SignalExternalWorkflowExecutionFailed>()) {
    ++totals_.late_releases_ignored;
  }
  std::visit(
      [&]<class T>(const T& e) {
        if constexpr (std::is_same_v<T, event::ChildWorkflowExecutionCompleted> ||
                      std::is_same_v<T, event::ChildWorkflowExecutionFailed> ||
                      std::is_same_v<T, event::ChildWorkflowExecutionCanceled> ||
                      std::is_same_v<T, event::ChildWorkflowExecutionTimedOut> ||
                      std::is_same_v<T, event::ChildWorkflowExecutionTerminated>) {
          const auto child = run.children.find(e.initiated_event_id);
          require(child != run.children.end(),
                  "a child closes that " + run.workflow_id.value + " did not start");
          const RunTrace* closed = find(e.workflow_execution->run_id);
          require(closed == nullptr || (closed->parent == run.execution() &&
                                        closed->initiated_event_id == e.initiated_event_id),
                  "the close of another run's child is told to " + run.workflow_id.value);
          const auto known = std::erase(child->second.open, *e.workflow_execution);
          require(known == 1, "a child closes twice, or is another's: in " + run.workflow_id.value +
                                  ", " + e.workflow_execution->workflow_id.value);
          if (child->second.open.empty()) run.children.erase(child);
        }
      },
      event.attributes);
}

void Ledger::close(RunTrace& run, const Event& event, std::int64_t seq) {
  run.open = false;
  run.closed = event.event_time;
  run.closed_seq = seq;
  open_.erase(run.number.value);
  open_by_id_.erase(run.workflow_id);
  std::erase_if(woken_, [&](const auto& wake) { return wake.first.first == run.number.value; });
  permits_changed_ = true;
  new_closes_.push_back(&run);
  if (event.get_if<event::WorkflowExecutionCompleted>()) run.how = "completed";
  if (event.get_if<event::WorkflowExecutionFailed>()) run.how = "failed";
  if (event.get_if<event::WorkflowExecutionCanceled>()) run.how = "canceled";
  if (event.get_if<event::WorkflowExecutionTerminated>()) run.how = "terminated";
  if (event.get_if<event::WorkflowExecutionTimedOut>()) run.how = "timed_out";
  if (event.get_if<event::WorkflowExecutionContinuedAsNew>()) run.how = "continued_as_new";
}

}  // namespace permit::simulation
