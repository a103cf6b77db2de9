#include "orchestrator/core/run_state.h"

#include <algorithm>
#include <boost/describe.hpp>
#include <boost/mp11.hpp>
#include <type_traits>

#include "orchestrator/protocol/ensure.h"

namespace permit::core {

namespace {

using namespace event;

Time after(Time start, Duration timeout) { return timeout.count() > 0 ? start + timeout : never; }

// One overload an event; the variant's visitor. Events that change nothing are listed at the end,
// so that a new event type does not compile until somebody has decided.
class Fold {
 public:
  Fold(RunState& state, const Event& event) : state_(state), event_(event) {}

  void operator()(const WorkflowExecutionStarted& e) {
    ENSURE(event_.event_id == 1);
    note_started(e);
    state_.start_time = event_.event_time;
    if (e.memo) state_.memo = *e.memo;
    if (e.search_attributes) state_.search_attributes = *e.search_attributes;
    if (e.permit) state_.volatile_state.permit_deadline = e.permit->deadline;
    state_.wants_workflow_task = true;
  }

  void operator()(const WorkflowExecutionCompleted& e) {
    static const Payloads released = json_payloads("\"released\"");
    static const Payloads lease_expired = json_payloads("\"lease_expired\"");
    HoldEnd end{Outcome::force_released, "failed"};
    if (e.result && *e.result == released) end = {Outcome::released, ""};
    if (e.result && *e.result == lease_expired) end = {Outcome::lease_expired, "timer"};
    close(WorkflowExecutionStatus::completed, end);
  }
  void operator()(const WorkflowExecutionFailed&) {
    close(WorkflowExecutionStatus::failed, {Outcome::force_released, "failed"});
  }
  void operator()(const WorkflowExecutionTimedOut&) {
    close(WorkflowExecutionStatus::timed_out, {Outcome::lease_expired, "backstop"});
  }
  void operator()(const WorkflowExecutionContinuedAsNew&) {
    close(WorkflowExecutionStatus::continued_as_new, {Outcome::force_released, "failed"});
  }
  void operator()(const WorkflowExecutionCanceled&) {
    const Outcome outcome =
        state_.canceled_by_parent ? Outcome::holder_closed : Outcome::force_released;
    close(WorkflowExecutionStatus::canceled, {outcome, "canceled"});
  }
  void operator()(const WorkflowExecutionTerminated& e) {
    HoldEnd end{Outcome::force_released, "operator"};
    if (!e.parent_close.empty()) end = {Outcome::holder_closed, e.parent_close};
    close(WorkflowExecutionStatus::terminated, end);
  }

  void operator()(const WorkflowTaskScheduled& e) {
    WorkflowTaskState task;
    task.scheduled_event_id = event_.event_id;
    task.timeout = e.start_to_close_timeout;
    task.scheduled_time = event_.event_time;
    task.original_scheduled_time = event_.event_time;
    task.on_sticky_queue = e.task_queue.kind == TaskQueueKind::sticky;
    state_.workflow_task() = task;
    state_.wants_workflow_task = false;
  }
  void operator()(const WorkflowTaskStarted& e) {
    ENSURE(state_.workflow_task().scheduled_event_id == e.scheduled_event_id);
    state_.workflow_task().started_event_id = event_.event_id;
    state_.workflow_task().started_time = event_.event_time;
  }
  void operator()(const WorkflowTaskCompleted& e) {
    ENSURE(state_.workflow_task().scheduled_event_id == e.scheduled_event_id);
    state_.last_completed_started_id = e.started_event_id;
    state_.workflow_task() = {};
  }
  void operator()(const WorkflowTaskTimedOut&) { state_.workflow_task() = {}; }
  void operator()(const WorkflowTaskFailed&) { state_.workflow_task() = {}; }

  void operator()(const ActivityTaskScheduled& e) {
    ActivityState activity;
    activity.scheduled = e;
    activity.scheduled_time = event_.event_time;
    activity.attempt.scheduled_time = event_.event_time;
    state_.activities.emplace(event_.event_id, std::move(activity));
  }
  void operator()(const ActivityTaskStarted&) {}  // written with the close, which follows
  void operator()(const ActivityTaskCompleted& e) { close_activity(e.scheduled_event_id); }
  void operator()(const ActivityTaskFailed& e) { close_activity(e.scheduled_event_id); }
  void operator()(const ActivityTaskTimedOut& e) { close_activity(e.scheduled_event_id); }
  void operator()(const ActivityTaskCanceled& e) { close_activity(e.scheduled_event_id); }
  void operator()(const ActivityTaskCancelRequested& e) {
    const auto activity = state_.activities.find(e.scheduled_event_id);
    ENSURE(activity != state_.activities.end());
    activity->second.cancel_requested_event_id = event_.event_id;
  }

  void operator()(const TimerStarted& e) {
    const Time fire_time = event_.event_time + e.start_to_fire_timeout;
    state_.timers[e.timer_id] = TimerState{event_.event_id, fire_time, e.wake_on_pool};
  }
  void operator()(const TimerFired& e) {
    if (e.timer_id == "lease") state_.lease_timer_fired = true;
    ENSURE(state_.timers.erase(e.timer_id) == 1);
    state_.wants_workflow_task = true;
  }
  void operator()(const TimerCanceled& e) { ENSURE(state_.timers.erase(e.timer_id) == 1); }

  void operator()(const WorkflowExecutionSignaled& e) {
    ++state_.signals_received;
    if (!e.request_id.empty()) state_.request_ids.insert(e.request_id);
    if (e.signal_name == "release" && !state_.lease_timer_fired) state_.release_recorded = true;
    state_.wants_workflow_task = true;
  }
  void operator()(const WorkflowExecutionCancelRequested& e) {
    state_.cancel_requested = true;
    state_.canceled_by_parent =
        state_.started.parent_workflow_execution.has_value() &&
        e.external_workflow_execution == state_.started.parent_workflow_execution;
    if (!e.request_id.empty()) state_.request_ids.insert(e.request_id);
    state_.wants_workflow_task = true;
  }

  void operator()(const StartChildWorkflowExecutionInitiated& e) {
    ChildState child;
    child.workflow_id = e.workflow_id;
    child.workflow_type = e.workflow_type;
    child.namespace_ = e.namespace_;
    child.policy = e.parent_close_policy;
    child.workflow_task_completed_event_id = e.workflow_task_completed_event_id;
    if (e.permit) {
      child.waits_for = e.permit->pool;
      child.request = e.permit;
      child.request->slots.clear();
    }
    state_.children.emplace(event_.event_id, std::move(child));
  }
  void operator()(const StartChildWorkflowExecutionFailed& e) {
    const auto child = state_.children.find(e.initiated_event_id);
    ENSURE(child != state_.children.end());
    if (child->second.request) note_refusal(std::move(*child->second.request), e);
    state_.children.erase(child);
    state_.wants_workflow_task = true;
  }
  void operator()(const ChildWorkflowExecutionStarted& e) {
    const auto child = state_.children.find(e.initiated_event_id);
    ENSURE(child != state_.children.end());
    child->second.waits_for = {};
    if (child->second.request) state_.backing_off.erase(child->second.request->pool);
    child->second.request.reset();
    child->second.runs.push_back({e.workflow_execution.value(), event_.event_id});
    state_.wants_workflow_task = true;
  }
  void operator()(const ChildWorkflowExecutionCompleted& e) { close_child(e); }
  void operator()(const ChildWorkflowExecutionFailed& e) { close_child(e); }
  void operator()(const ChildWorkflowExecutionCanceled& e) { close_child(e); }
  void operator()(const ChildWorkflowExecutionTimedOut& e) { close_child(e); }
  void operator()(const ChildWorkflowExecutionTerminated& e) { close_child(e); }

  void operator()(const UpsertWorkflowSearchAttributes& e) {
    if (e.search_attributes)
      upsert(state_.search_attributes.indexed_fields, e.search_attributes->indexed_fields);
  }
  void operator()(const WorkflowPropertiesModified& e) {
    if (e.upserted_memo) upsert(state_.memo.fields, e.upserted_memo->fields);
  }

  // The answers to what a run asked of others: nothing to keep but that the worker must see them.
  void operator()(const RequestCancelExternalWorkflowExecutionFailed&) { want_task(); }
  void operator()(const ExternalWorkflowExecutionCancelRequested&) { want_task(); }
  void operator()(const SignalExternalWorkflowExecutionFailed&) { want_task(); }
  void operator()(const ExternalWorkflowExecutionSignaled&) { want_task(); }
  // And the asking, which is answered in the same transaction.
  void operator()(const RequestCancelExternalWorkflowExecutionInitiated&) {}
  void operator()(const SignalExternalWorkflowExecutionInitiated&) {}
  void operator()(const MarkerRecorded&) {}

 private:
  void want_task() { state_.wants_workflow_task = true; }

  // But for input and last result, which may be large.
  void note_started(const WorkflowExecutionStarted& e) {
    using Members =
        boost::describe::describe_members<WorkflowExecutionStarted, boost::describe::mod_public>;
    boost::mp11::mp_for_each<Members>([&](auto member) {
      using Value = std::remove_cvref_t<decltype(e.*member.pointer)>;
      if constexpr (!std::is_same_v<Value, std::optional<Payloads>>) {
        state_.started.*member.pointer = e.*member.pointer;
      }
    });
  }

  // The rule of the ledger: a release that was recorded in time is `released`, whatever then closed
  // the run.
  void close(WorkflowExecutionStatus status, HoldEnd end) {
    state_.status = status;
    state_.close_time = event_.event_time;
    state_.timers.clear();
    state_.activities.clear();
    state_.children.clear();
    state_.backing_off.clear();
    state_.workflow_task() = {};
    state_.volatile_state.buffered.clear();
    state_.wants_workflow_task = false;
    if (!state_.is_permit()) return;
    if (state_.release_recorded) end = {Outcome::released, ""};
    state_.hold_end = std::move(end);
  }

  void note_refusal(PermitRequest request, const StartChildWorkflowExecutionFailed& e) {
    const auto kind = e.permit_failure ? e.permit_failure->kind : PermitFailureKind::unspecified;
    if (kind != PermitFailureKind::taken && kind != PermitFailureKind::drained) {
      state_.backing_off.erase(request.pool);
      return;
    }
    Backoff& backoff = state_.backing_off[request.pool];
    ++backoff.probes;
    backoff.request = std::move(request);
  }

  void close_activity(std::int64_t scheduled_event_id) {
    ENSURE(state_.activities.erase(scheduled_event_id) == 1);
    want_task();
  }

  template <class Close>
  void close_child(const Close& e) {
    const auto child = state_.children.find(e.initiated_event_id);
    ENSURE(child != state_.children.end());
    const auto erased = std::erase_if(child->second.runs, [&](const ChildState::Run& run) {
      return run.execution == e.workflow_execution.value();
    });
    ENSURE(erased == 1);
    if (child->second.runs.empty()) state_.children.erase(child);
    want_task();
  }

  // Merges; a null payload deletes its key.
  static void upsert(PayloadMap& into, const PayloadMap& from) {
    for (const auto& [key, payload] : from) {
      const bool null =
          !payload.metadata.empty() && payload.metadata.front().second.value == "binary/null";
      if (null || payload == Payload{}) {
        into.erase(key);
      } else {
        into[key] = payload;
      }
    }
  }

  RunState& state_;
  const Event& event_;
};

}  // namespace

ActivityState* RunState::find_activity(const std::string& activity_id) {
  for (auto& [id, activity] : activities) {
    if (activity.scheduled.activity_id == activity_id) return &activity;
  }
  return nullptr;
}

void apply(RunState& state, const Event& event) {
  ENSURE(event.event_id == state.next_event_id);
  ENSURE(state.is_open());
  ++state.next_event_id;
  std::visit(Fold(state, event), event.attributes);
}

void note_buffered(RunState& state, const Event& event) {
  const auto close_activity = [&](std::int64_t scheduled_event_id) {
    const auto activity = state.activities.find(scheduled_event_id);
    ENSURE(activity != state.activities.end() && !activity->second.closed);
    activity->second.closed = true;
  };
  if (const auto* fired = event.get_if<TimerFired>()) {
    const auto timer = state.timers.find(fired->timer_id);
    ENSURE(timer != state.timers.end() && !timer->second.fired);
    timer->second.fired = true;
  } else if (const auto* completed = event.get_if<ActivityTaskCompleted>()) {
    close_activity(completed->scheduled_event_id);
  } else if (const auto* failed = event.get_if<ActivityTaskFailed>()) {
    close_activity(failed->scheduled_event_id);
  } else if (const auto* timed_out = event.get_if<ActivityTaskTimedOut>()) {
    close_activity(timed_out->scheduled_event_id);
  } else if (const auto* canceled = event.get_if<ActivityTaskCanceled>()) {
    close_activity(canceled->scheduled_event_id);
  } else if (const auto* signaled = event.get_if<WorkflowExecutionSignaled>()) {
    if (!signaled->request_id.empty()) state.request_ids.insert(signaled->request_id);
  } else if (const auto* cancel = event.get_if<WorkflowExecutionCancelRequested>()) {
    state.cancel_requested = true;
    if (!cancel->request_id.empty()) state.request_ids.insert(cancel->request_id);
  }
}

Duration grace_of(Duration lease) {
  return std::max<Duration>(std::chrono::seconds(5), lease / 10);
}

Time expiration(const RunState& state) {
  if (state.is_managed_permit()) {
    return state.volatile_state.permit_deadline + grace_of(state.started.permit_request->lease);
  }
  Time end = after(state.start_time, state.started.workflow_run_timeout);
  if (is_set(state.started.workflow_execution_expiration_time)) {
    end = std::min(end, state.started.workflow_execution_expiration_time);
  }
  return end;
}

Time activity_due(const ActivityState& activity) {
  const auto& options = activity.scheduled;
  const ActivityAttempt& attempt = activity.attempt;
  const Time schedule_to_close = after(activity.scheduled_time, options.schedule_to_close_timeout);
  if (!is_set(attempt.started_time)) {
    return std::min(schedule_to_close,
                    after(attempt.scheduled_time, options.schedule_to_start_timeout));
  }
  const Time start_to_close = after(attempt.started_time, options.start_to_close_timeout);
  const Time last_sign = std::max(attempt.started_time, attempt.last_heartbeat_time);
  return std::min({schedule_to_close, start_to_close, after(last_sign, options.heartbeat_timeout)});
}

Time workflow_task_due(const RunState& state) {
  const WorkflowTaskState& task = state.workflow_task();
  if (!state.has_task()) return never;
  if (state.task_started()) return after(task.started_time, task.timeout);
  if (!task.on_sticky_queue) return never;
  return after(task.scheduled_time, state.volatile_state.sticky.schedule_to_start);
}

Time timer_due(const RunState& state, const std::string& timer_id, const TimerState& timer) {
  if (state.is_managed_permit() && timer_id == "lease") return state.volatile_state.permit_deadline;
  return timer.fire_time;
}

Time next_due(const RunState& state) {
  if (!state.is_open()) return never;
  Time due = std::min(expiration(state), workflow_task_due(state));
  for (const auto& [id, timer] : state.timers) {
    if (!timer.fired) due = std::min(due, timer_due(state, id, timer));
  }
  for (const auto& [id, activity] : state.activities) {
    if (activity.closed) continue;
    due = std::min(due, activity_due(activity));
    if (activity.attempt.waits_for_retry) due = std::min(due, activity.attempt.scheduled_time);
  }
  return due;
}

const std::string& task_queue_of(const RunState& state) {
  return state.workflow_task().on_sticky_queue ? state.volatile_state.sticky.name
                                               : state.started.task_queue.name;
}

std::size_t footprint(const RunState& state) {
  std::size_t bytes = sizeof(RunState) + 256;
  bytes += state.timers.size() * 160;
  bytes += state.children.size() * 700;
  bytes += state.backing_off.size() * 400;
  for (const auto& [id, activity] : state.activities) {
    bytes += sizeof(ActivityState) + 256;
    if (!activity.scheduled.input) continue;
    for (const Payload& payload : activity.scheduled.input->payloads)
      bytes += payload.data.value.size();
  }
  bytes += state.volatile_state.buffered.size() * sizeof(Event);
  for (const std::string& id : state.request_ids) bytes += id.size() + 64;
  for (const auto& [key, payload] : state.memo.fields)
    bytes += key.size() + payload.data.value.size() + 128;
  return bytes;
}

bool is_close_event(const Event& event) {
  return event.get_if<WorkflowExecutionCompleted>() || event.get_if<WorkflowExecutionFailed>() ||
         event.get_if<WorkflowExecutionTimedOut>() ||
         event.get_if<WorkflowExecutionContinuedAsNew>() ||
         event.get_if<WorkflowExecutionCanceled>() || event.get_if<WorkflowExecutionTerminated>();
}

}  // namespace permit::core
