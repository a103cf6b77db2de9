#include "worker/command_matching.h"

#include <utility>

namespace permit::worker {

namespace {

// Which event a command leaves, and whether this one is of it.
struct Matches {
  const Event& event;

  template <class E>
  const E* get() const {
    return event.get_if<E>();
  }
  static bool same(const std::optional<WorkflowExecution>& target, const WorkflowId& id,
                   const RunId& run) {
    return target && target->workflow_id == id && target->run_id == run;
  }

  bool operator()(const command::ScheduleActivityTask& c) const {
    const auto* e = get<event::ActivityTaskScheduled>();
    return e != nullptr && e->activity_id == c.activity_id &&
           e->activity_type.name == c.activity_type.name;
  }
  bool operator()(const command::RequestCancelActivityTask& c) const {
    const auto* e = get<event::ActivityTaskCancelRequested>();
    return e != nullptr && e->scheduled_event_id == c.scheduled_event_id;
  }
  bool operator()(const command::StartTimer& c) const {
    const auto* e = get<event::TimerStarted>();
    return e != nullptr && e->timer_id == c.timer_id;
  }
  bool operator()(const command::CancelTimer& c) const {
    const auto* e = get<event::TimerCanceled>();
    return e != nullptr && e->timer_id == c.timer_id;
  }
  bool operator()(const command::CompleteWorkflowExecution&) const {
    return get<event::WorkflowExecutionCompleted>() != nullptr;
  }
  bool operator()(const command::FailWorkflowExecution&) const {
    return get<event::WorkflowExecutionFailed>() != nullptr;
  }
  bool operator()(const command::CancelWorkflowExecution&) const {
    return get<event::WorkflowExecutionCanceled>() != nullptr;
  }
  bool operator()(const command::ContinueAsNewWorkflowExecution& c) const {
    const auto* e = get<event::WorkflowExecutionContinuedAsNew>();
    return e != nullptr && e->workflow_type.name == c.workflow_type.name;
  }
  bool operator()(const command::RequestCancelExternalWorkflowExecution& c) const {
    const auto* e = get<event::RequestCancelExternalWorkflowExecutionInitiated>();
    return e != nullptr && same(e->workflow_execution, c.workflow_id, c.run_id);
  }
  bool operator()(const command::SignalExternalWorkflowExecution& c) const {
    const auto* e = get<event::SignalExternalWorkflowExecutionInitiated>();
    return e != nullptr && e->signal_name == c.signal_name && c.execution &&
           same(e->workflow_execution, c.execution->workflow_id, c.execution->run_id);
  }
  bool operator()(const command::RecordMarker& c) const {
    const auto* e = get<event::MarkerRecorded>();
    return e != nullptr && e->marker_name == c.marker_name;
  }
  bool operator()(const command::StartChildWorkflowExecution& c) const {
    const auto* e = get<event::StartChildWorkflowExecutionInitiated>();
    if (e == nullptr || e->workflow_type.name != c.workflow_type.name) return false;
    if (c.permit) return e->permit && e->permit->pool == c.permit->pool;
    return e->workflow_id == c.workflow_id;
  }
  bool operator()(const command::UpsertWorkflowSearchAttributes&) const {
    return get<event::UpsertWorkflowSearchAttributes>() != nullptr;
  }
  bool operator()(const command::ModifyWorkflowProperties&) const {
    return get<event::WorkflowPropertiesModified>() != nullptr;
  }
};

template <class T>
std::string names_of(const T& t) {
  if constexpr (requires { t.activity_type; }) {
    return " " + t.activity_id + " of type " + t.activity_type.name;
  } else if constexpr (requires { t.timer_id; }) {
    return " " + t.timer_id;
  } else if constexpr (requires {
                         t.permit;
                         t.workflow_id;
                       }) {
    if constexpr (requires {
                    t.workflow_type;
                    t.task_queue;
                    t.workflow_id;
                  }) {
      const std::string id = t.permit ? "of pool " + t.permit->pool.value : t.workflow_id.value;
      return " " + id + " of type " + t.workflow_type.name;
    } else {
      return "";
    }
  } else if constexpr (requires { t.marker_name; }) {
    return " " + t.marker_name;
  } else if constexpr (requires {
                         t.signal_name;
                         t.child_workflow_only;
                       }) {
    return " " + t.signal_name;
  } else if constexpr (requires { t.scheduled_event_id; }) {
    return " of event " + std::to_string(t.scheduled_event_id);
  } else {
    return "";
  }
}

}  // namespace

bool is_of_command(const Event& event) {
  // The server ends a permit that is released by itself.
  const auto* completed = event.get_if<event::WorkflowExecutionCompleted>();
  if (completed != nullptr) return completed->workflow_task_completed_event_id != 0;
  return event.get_if<event::ActivityTaskScheduled>() != nullptr ||
         event.get_if<event::ActivityTaskCancelRequested>() != nullptr ||
         event.get_if<event::TimerStarted>() != nullptr ||
         event.get_if<event::TimerCanceled>() != nullptr ||
         event.get_if<event::MarkerRecorded>() != nullptr ||
         event.get_if<event::StartChildWorkflowExecutionInitiated>() != nullptr ||
         event.get_if<event::SignalExternalWorkflowExecutionInitiated>() != nullptr ||
         event.get_if<event::RequestCancelExternalWorkflowExecutionInitiated>() != nullptr ||
         event.get_if<event::UpsertWorkflowSearchAttributes>() != nullptr ||
         event.get_if<event::WorkflowPropertiesModified>() != nullptr ||
         event.get_if<event::WorkflowExecutionFailed>() != nullptr ||
         event.get_if<event::WorkflowExecutionCanceled>() != nullptr ||
         event.get_if<event::WorkflowExecutionContinuedAsNew>() != nullptr;
}

bool matches(const Command& command, const Event& event) {
  return std::visit(Matches{event}, command.attributes);
}

std::string describe(const Command& command) {
  return std::visit([&](const auto& c) { return std::string(command.name()) + names_of(c); },
                    command.attributes);
}

std::string describe(const Event& event) {
  return std::visit([&](const auto& e) { return std::string(event.name()) + names_of(e); },
                    event.attributes);
}

}  // namespace permit::worker
