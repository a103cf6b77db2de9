// What may be said beside the arguments of an activity or a child. Classes with setters rather than
// aggregates: they are built inside co_await statements (see async.h).
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "orchestrator/protocol/command.h"
#include "worker/convert.h"

namespace permit::worker {

// What a cancellation waits for.
enum class OnCancel {
  request,  // ask, and fail the await with Canceled at once
  wait,     // ask, and await how it ends
};

class ActivityOptions {
 public:
  // From start to end of one attempt. One of this and schedule_to_close is required.
  ActivityOptions& start_to_close(Duration limit) {
    command_.start_to_close_timeout = limit;
    return *this;
  }
  // From now to the end, all attempts together.
  ActivityOptions& schedule_to_close(Duration limit) {
    command_.schedule_to_close_timeout = limit;
    return *this;
  }
  // From now until a worker takes it. Never retried.
  ActivityOptions& schedule_to_start(Duration limit) {
    command_.schedule_to_start_timeout = limit;
    return *this;
  }
  // Between two heartbeats; without one in time, the attempt has failed.
  ActivityOptions& heartbeat(Duration limit) {
    command_.heartbeat_timeout = limit;
    return *this;
  }
  // At most so many attempts; 0 is without end, the default.
  ActivityOptions& retry(int attempts_max) {
    policy().maximum_attempts = attempts_max;
    return *this;
  }
  ActivityOptions& retry(RetryPolicy retry_policy) {
    command_.retry_policy = std::move(retry_policy);
    return *this;
  }
  ActivityOptions& retry_interval(Duration first, Duration max) {
    policy().initial_interval = first;
    policy().maximum_interval = max;
    return *this;
  }
  ActivityOptions& non_retryable(std::string error_type) {
    policy().non_retryable_error_types.push_back(std::move(error_type));
    return *this;
  }
  // Default: the workflow's own.
  ActivityOptions& task_queue(std::string name) {
    command_.task_queue.name = std::move(name);
    return *this;
  }
  ActivityOptions& priority(int key) {
    command_.priority.emplace().priority_key = key;
    return *this;
  }
  ActivityOptions& on_cancel(OnCancel on_cancel) {
    on_cancel_ = on_cancel;
    return *this;
  }
  // Its heartbeats renew this permit.
  ActivityOptions& under_permit(RunId permit_run) {
    command_.permit_run_id = std::move(permit_run);
    return *this;
  }

  const command::ScheduleActivityTask& command() const { return command_; }
  OnCancel on_cancel() const { return on_cancel_; }

 private:
  RetryPolicy& policy() {
    if (!command_.retry_policy) command_.retry_policy.emplace();
    return *command_.retry_policy;
  }

  command::ScheduleActivityTask command_;
  OnCancel on_cancel_ = OnCancel::request;
};

class ChildOptions {
 public:
  // Default: this run's id and a number.
  ChildOptions& id(std::string workflow_id) {
    command_.workflow_id = WorkflowId(std::move(workflow_id));
    return *this;
  }
  ChildOptions& task_queue(std::string name) {
    command_.task_queue.name = std::move(name);
    return *this;
  }
  // All runs of the child together, if it continues as new.
  ChildOptions& execution_timeout(Duration limit) {
    command_.workflow_execution_timeout = limit;
    return *this;
  }
  ChildOptions& run_timeout(Duration limit) {
    command_.workflow_run_timeout = limit;
    return *this;
  }
  ChildOptions& task_timeout(Duration limit) {
    command_.workflow_task_timeout = limit;
    return *this;
  }
  // What becomes of it when this run closes; default terminate.
  ChildOptions& parent_close_policy(ParentClosePolicy policy) {
    command_.parent_close_policy = policy;
    return *this;
  }
  ChildOptions& id_reuse(WorkflowIdReusePolicy policy) {
    command_.workflow_id_reuse_policy = policy;
    return *this;
  }
  ChildOptions& priority(int key) {
    command_.priority.emplace().priority_key = key;
    return *this;
  }
  template <class T>
  ChildOptions& memo(std::string key, const T& value) {
    if (!command_.memo) command_.memo.emplace();
    command_.memo->fields[std::move(key)] = to_payload(value);
    return *this;
  }

  const command::StartChildWorkflowExecution& command() const { return command_; }

 private:
  command::StartChildWorkflowExecution command_;
};

}  // namespace permit::worker
