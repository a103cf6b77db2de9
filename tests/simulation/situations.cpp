// Which of the situations that a run must meet an event brings about.
#include <algorithm>

#include "tests/simulation/ledger.h"

namespace permit::simulation {

using namespace std::chrono_literals;

namespace {

void note_of_permit_failure(const event::StartChildWorkflowExecutionFailed& failed) {
  if (!failed.permit_failure) {
    sometimes("a child is not started, since its id is taken");
    return;
  }
  switch (failed.permit_failure->kind) {
    case PermitFailureKind::taken:
      return sometimes("a request for a permit finds no slot");
    case PermitFailureKind::wait_timed_out:
      return sometimes("a workflow's wait in line runs out of time");
    case PermitFailureKind::canceled:
      return sometimes("a request for a permit is withdrawn or removed");
    case PermitFailureKind::capacity_mismatch:
      return sometimes("a caller believes a pool to be larger or smaller than it is");
    case PermitFailureKind::too_many:
      return sometimes("a request for a permit asks for too much");
    case PermitFailureKind::self_deadlock:
      return sometimes("a run would wait for itself");
    case PermitFailureKind::drained:
      return sometimes("a request for a permit finds the pool drained");
    default:
      return;
  }
}

void note_timeout(const event::ActivityTaskTimedOut& timed_out) {
  if (!timed_out.failure || !timed_out.failure->timeout_failure_info) return;
  const TimeoutType type = timed_out.failure->timeout_failure_info->timeout_type;
  sometimes(type == TimeoutType::heartbeat, "an activity's heartbeats stop");
  sometimes(type == TimeoutType::start_to_close, "an activity takes too long");
  sometimes(type == TimeoutType::schedule_to_start, "an activity finds no worker in time");
}

}  // namespace

void Ledger::note_situation(const RunTrace& run, const Event& event) {
  const bool task_started = run.task_started;
  if (const auto* failed = event.get_if<event::StartChildWorkflowExecutionFailed>()) {
    note_of_permit_failure(*failed);
  } else if (const auto* timed_out = event.get_if<event::ActivityTaskTimedOut>()) {
    note_timeout(*timed_out);
  } else if (const auto* signaled = event.get_if<event::WorkflowExecutionSignaled>()) {
    const bool release = signaled->signal_name == "release";
    sometimes(release && run.lease_fired, "a release after the lease's timer is only recorded");
    sometimes(release && run.is_permit() && !run.lease_fired && event.event_time > run.started,
              "a permit is released in time");
    sometimes(signaled->signal_name == "s" && event.event_time < now_,
              "a signal waits until a worker's task is done");
  } else if (const auto* fired = event.get_if<event::TimerFired>()) {
    sometimes(fired->timer_id == "lease", "a lease's timer fires");
    sometimes(event.event_time < now_, "a timer fires while a worker has the task");
  } else if (event.get_if<event::WorkflowTaskTimedOut>() != nullptr) {
    sometimes(task_started, "a worker's time for a task is over");
    sometimes(!task_started, "a sticky queue is given up");
  } else if (const auto* gone = event.get_if<event::WorkflowTaskFailed>()) {
    sometimes(gone->cause == WorkflowTaskFailedCause::force_close_command,
              "a run is closed over the task that a worker has");
  } else if (const auto* started = event.get_if<event::ChildWorkflowExecutionStarted>()) {
    const bool permit = started->workflow_execution->workflow_id.value.starts_with("permit:");
    sometimes(permit && event.event_time < now_, "a grant comes while a worker has the task");
  } else if (event.get_if<event::SignalExternalWorkflowExecutionFailed>() != nullptr) {
    sometimes("a workflow's release comes too late");
  } else if (event.get_if<event::WorkflowExecutionContinuedAsNew>() != nullptr) {
    sometimes("a run continues as new");
  }
}

void Ledger::note_close(const RunTrace& run) {
  const bool holds = std::any_of(run.children.begin(), run.children.end(), [](const auto& child) {
    return child.second.permit && !child.second.open.empty();
  });
  const bool waits = std::any_of(run.children.begin(), run.children.end(), [](const auto& child) {
    return child.second.permit && child.second.waits;
  });
  sometimes(holds, "a run closes that holds a permit");
  sometimes(waits, "a run closes that stands in a line");
  sometimes(!run.timers.empty(), "a run closes with timers that have not fired");
  sometimes(!run.activities.empty(), "a run closes with activities under way");
  sometimes(run.depth > 1, "a grandchild closes");
  const auto* terminated = run.events.back().get_if<event::WorkflowExecutionTerminated>();
  if (terminated != nullptr) {
    sometimes(terminated->parent_close == "timed_out", "a child closes with a parent out of time");
    sometimes(terminated->parent_close == "continued_as_new",
              "a child closes with a parent that continues as new");
    sometimes(run.depth > 1 && !terminated->parent_close.empty(),
              "a grandchild is closed with its parent");
    sometimes(terminated->reason.starts_with("TerminateIfRunning"), "a run is replaced");
  }
  sometimes(run.how == "canceled", "a run ends as canceled");
  sometimes(run.how == "timed_out" && !run.is_permit(), "a run is out of time");
  if (!run.is_permit()) return;
  sometimes(run.released && run.how != "completed",
            "a permit that was released is closed by something else");
  sometimes(!run.request.has_value(), "a permit that was started by its id closes");
  sometimes(run.request && run.closed >= run.grant->deadline && run.how == "completed",
            "a permit's lease runs out");
  sometimes(run.how == "timed_out", "a permit is ended by its backstop");
  sometimes(run.closed < run.started + 1s, "a permit closes at once");
}

}  // namespace permit::simulation
