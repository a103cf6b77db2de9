// The pen with which transitions write: gives events their ids, folds them into the state as they
// are written, buffers what comes from outside while a worker has the task, and collects messages.
#pragma once

#include <utility>

#include "orchestrator/core/decision.h"

namespace permit::core {

class Transition {
 public:
  Transition(RunState& state, const Context& context) : state_(state), context_(context) {
    decision_.events.reserve(5);  // an event is large to move, and the grant of a permit has five
  }

  RunState& state() { return state_; }
  const Context& context() const { return context_; }
  Time now() const { return context_.now; }

  // Appends an event of the run's own (a command's, a task's, its close). Returns its id.
  std::int64_t append(EventAttributes attributes, std::optional<UserMetadata> metadata = {});

  // The first event, by far the largest: made where it stays.
  std::int64_t append(event::WorkflowExecutionStarted&& started);

  // The same for what happened earlier: a task's start that is only now written down.
  std::int64_t append_at(Time time, EventAttributes attributes);

  // An event from outside: appended, or buffered while a worker has the task.
  void receive(EventAttributes attributes) { receive_at(now(), std::move(attributes)); }
  void receive_at(Time time, EventAttributes attributes);

  void send(Message message) { decision_.messages.push_back(std::move(message)); }

  void changed_activity(std::int64_t id) { decision_.activities_changed.push_back(id); }
  void offer_activity(std::int64_t id) {
    changed_activity(id);
    decision_.activities_offered.push_back(id);
  }

  void note_silent(const event::ActivityTaskScheduled& activity) {
    decision_.activities_silent.push_back({activity.task_queue.name, activity.activity_type.name});
  }

  // Writes the buffered events behind what is there: in order of arrival, closes of activities and
  // children behind the others.
  void flush_buffered();

  // Ends the outstanding workflow task as failed, so that the run can be closed over it.
  void drop_workflow_task();

  // The run's close: `attributes` is the close event. Tells the parent and the children.
  void close(EventAttributes attributes);

  // Makes a workflow task if the worker has something to see and none is outstanding.
  void schedule_workflow_task_if_wanted();
  void schedule_workflow_task();
  // The next attempt after a failed or timed out one: offered, but not in history unless completed.
  void schedule_transient_task(std::int32_t attempt);

  Decision take() { return std::move(decision_); }

 private:
  void tell_children(const std::map<std::int64_t, ChildState>& children);
  void tell_parent(const Event& close);
  void end_permit();

  RunState& state_;
  const Context& context_;
  Decision decision_;
};

}  // namespace permit::core
