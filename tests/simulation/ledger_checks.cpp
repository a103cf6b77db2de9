// What must be true of the histories: at each close, after each commit, and in a sweep.
#include <algorithm>

#include "orchestrator/core/invariants.h"
#include "orchestrator/protocol/json.h"
#include "tests/simulation/ledger.h"

namespace permit::simulation {

namespace {

struct End {
  Outcome outcome = Outcome::unspecified;
  std::string cause;
  bool operator==(const End&) const = default;
};

// The outcome row of the design, from the history alone.
End end_of(const RunTrace& permit, Totals& totals) {
  if (permit.released) {
    ++totals.released;
    return {Outcome::released, ""};
  }
  const Event& close = permit.events.back();
  if (const auto* completed = close.get_if<event::WorkflowExecutionCompleted>()) {
    const std::string result =
        completed->result ? completed->result->payloads.at(0).data.value : "";
    if (result == "\"lease_expired\"") {
      ++totals.expired_by_timer;
      return {Outcome::lease_expired, "timer"};
    }
    if (result == "\"released\"") return {Outcome::released, ""};
  }
  if (close.get_if<event::WorkflowExecutionTimedOut>()) {
    ++totals.expired_by_backstop;
    return {Outcome::lease_expired, "backstop"};
  }
  const auto* terminated = close.get_if<event::WorkflowExecutionTerminated>();
  if (terminated != nullptr && !terminated->parent_close.empty()) {
    ++totals.holder_closed;
    return {Outcome::holder_closed, terminated->parent_close};
  }
  ++totals.force_released;
  if (terminated != nullptr) return {Outcome::force_released, "operator"};
  if (permit.how == "canceled") {
    const Outcome outcome =
        permit.canceled_by_parent ? Outcome::holder_closed : Outcome::force_released;
    return {outcome, "canceled"};
  }
  return {Outcome::force_released, "failed"};
}

// It may have come after the lease was over, which is then what ends the permit.
bool has_asked_for_release(const RunTrace& holder, const RunTrace& permit) {
  return std::any_of(holder.events.begin(), holder.events.end(), [&](const Event& event) {
    const auto* asked = event.get_if<event::SignalExternalWorkflowExecutionInitiated>();
    return asked != nullptr && asked->signal_name == "release" &&
           asked->workflow_execution == permit.execution();
  });
}

}  // namespace

void Ledger::check_close(store::Store& store, const RunTrace& run) {
  if (run.is_permit()) check_outcome(store, run);
  check_parent_close(run);
  const auto* terminated = run.events.back().get_if<event::WorkflowExecutionTerminated>();
  if (terminated == nullptr || terminated->parent_close.empty()) return;
  ++totals_.children_closed_with_parent;
  const RunTrace* parent = run.parent ? find(run.parent->run_id) : nullptr;
  require(parent != nullptr && !parent->open && parent->closed_seq == run.closed_seq &&
              parent->how == terminated->parent_close && run.policy == ParentClosePolicy::terminate,
          run.workflow_id.value + " was closed with a parent that is not its own");
  // A section gives its permit back on every way out that its code knows of.
  const bool by_code = run.how == "terminated" && terminated->parent_close != "terminated" &&
                       terminated->parent_close != "timed_out";
  const bool by_section = parent->type == "Section" && run.is_permit() && by_code;
  require(!by_section || run.released || has_asked_for_release(*parent, run), [&] {
    return parent->workflow_id.value + " has ended (" + terminated->parent_close +
           ") without giving back " + run.workflow_id.value;
  });
}

void Ledger::check_outcome(store::Store& store, const RunTrace& run) {
  const End expected = end_of(run, totals_);
  const auto row = store.run(run.number);
  require(row.has_value(), "a closed permit has no row");
  require(End{row->outcome, row->cause} == expected,
          "permit " + run.workflow_id.value + " fence " + std::to_string(run.grant->fence.value) +
              " ended as outcome " + std::to_string(static_cast<int>(row->outcome)) + " cause '" +
              row->cause + "', and its history says outcome " +
              std::to_string(static_cast<int>(expected.outcome)) + " cause '" + expected.cause +
              "'");
}

void Ledger::check_parent_close(const RunTrace& run) {
  const auto [begin, end] = by_parent_.equal_range(run.run_id);
  for (auto it = begin; it != end; ++it) {
    const RunTrace& child = runs_.at(it->second);
    require(!child.open || child.policy != ParentClosePolicy::terminate,
            "parent " + run.workflow_id.value + " has closed (" + run.how + ") and its child " +
                child.workflow_id.value + " is open");
  }
}

namespace {

// When a run's timeouts end it.
Time end_by_timeouts(const RunTrace& run) {
  const auto& started = *run.events.front().get_if<event::WorkflowExecutionStarted>();
  Time end = never;
  if (started.workflow_run_timeout > Duration(0)) end = run.started + started.workflow_run_timeout;
  if (is_set(started.workflow_execution_expiration_time)) {
    end = std::min(end, started.workflow_execution_expiration_time);
  }
  return end;
}

}  // namespace

// Every permit is closed by its deadline and grace, and every other run by its timeouts, whatever
// their workers do.
void Ledger::check_deadlines(Time now) const {
  for (const std::int64_t number : open_) {
    const RunTrace& run = runs_.at(number);
    if (!run.request) {
      require(now < end_by_timeouts(run),
              [&] { return "run " + run.workflow_id.value + " is open past its timeouts"; });
      continue;
    }
    const Duration grace = std::max<Duration>(std::chrono::seconds(5), run.request->lease / 10);
    require(now < deadline_max(run) + grace, [&] {
      return "permit " + run.workflow_id.value + " fence " +
             std::to_string(run.grant->fence.value) + " is open past its deadline and grace";
    });
  }
}

// A child's start and its close have been told to the parent, or wait for it.
void Ledger::check_child(const RunTrace& child, const core::Volatile& parent_volatile) {
  const RunTrace& parent = *find(child.parent->run_id);
  const WorkflowExecution first{child.workflow_id, child.first_run_id};
  const auto told = [&](const std::vector<Event>& events) {
    return std::any_of(events.rbegin(), events.rend(), [&](const Event& event) {
      const auto* started = event.get_if<event::ChildWorkflowExecutionStarted>();
      return started != nullptr && started->workflow_execution == first;
    });
  };
  require(told(parent.events) || told(parent_volatile.buffered),
          "parent " + parent.workflow_id.value + " was not told that " + child.workflow_id.value +
              " started");
}

// One of the first that closed, as it were: they go first.
void Ledger::note_retention(store::Store& store) const {
  if (retention_.count() == 0) return;
  const auto old = std::find_if(runs_.begin(), runs_.end(), [&](const auto& run) {
    return !run.second.open && run.second.closed + retention_ <= now_;
  });
  sometimes(old != runs_.end() && !store.run(RunNumber{old->first}),
            "a closed run is deleted by retention");
}

void Ledger::sweep(store::Store& store, Time now) {
  promises_.begin_buffered();
  std::map<std::int64_t, core::Volatile> volatiles;
  for (const std::int64_t number : open_) {
    const RunTrace& run = runs_.at(number);
    const auto row = store.run(run.number);
    require(row && row->status == WorkflowExecutionStatus::running, "an open run's row is closed");
    auto& state = volatiles[number] = read_json<core::Volatile>(row->volatile_json);
    std::set<std::string> fired;
    for (const Event& event : state.buffered) {
      if (const auto* signaled = event.get_if<event::WorkflowExecutionSignaled>()) {
        promises_.saw_buffered(Trace::signaled, signaled->identity);
      } else if (const auto* completed = event.get_if<event::ActivityTaskCompleted>()) {
        promises_.saw_buffered(Trace::activity_end, completed->identity);
      } else if (const auto* failed = event.get_if<event::ActivityTaskFailed>()) {
        promises_.saw_buffered(Trace::activity_end, failed->identity);
      } else if (const auto* canceled = event.get_if<event::ActivityTaskCanceled>()) {
        promises_.saw_buffered(Trace::activity_end, canceled->identity);
      } else if (const auto* timer = event.get_if<event::TimerFired>()) {
        require(fired.insert(timer->timer_id).second, "a timer fires twice while a task runs");
      }
    }
    for (const auto& [id, timer] : run.timers) {
      const Time due =
          run.request && id == "lease" ? std::max(timer.due, state.permit_deadline) : timer.due;
      require(due > now || fired.contains(id), [&] {
        return "timer " + id + " of " + run.workflow_id.value + " is due and has not fired";
      });
    }
  }
  for (auto& [number, run] : runs_) {
    if (run.events_checked < run.events.size()) core::check_history(run.events);
    run.events_checked = run.events.size();
    const RunTrace* parent = run.parent ? find(run.parent->run_id) : nullptr;
    const bool first_of_chain = run.run_id == run.first_run_id;
    if (parent != nullptr && parent->open && first_of_chain) {
      check_child(run, volatiles.at(parent->number.value));
    }
  }
  note_retention(store);
  for (const RunId& run_id : promises_.acknowledged_runs()) {
    require(find(run_id) != nullptr, "an acknowledged start is not there: " + run_id.value);
  }
  promises_.check();
}

}  // namespace permit::simulation
