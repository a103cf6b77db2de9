// A failure that crosses the wire, Temporal's shape. The server makes a few itself (timeouts,
// terminations); the rest it carries.
#pragma once

#include <boost/describe.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "orchestrator/protocol/enums.h"
#include "orchestrator/protocol/ids.h"
#include "orchestrator/protocol/payload.h"

namespace permit {

// An optional value on the heap with value semantics; lets a struct hold one of its own kind.
template <class T>
class Box {
 public:
  Box() = default;
  explicit Box(T value) : held_(std::make_unique<T>(std::move(value))) {}
  Box(const Box& other) : held_(other.held_ ? std::make_unique<T>(*other.held_) : nullptr) {}
  Box(Box&&) noexcept = default;
  Box& operator=(const Box& other) {
    held_ = other.held_ ? std::make_unique<T>(*other.held_) : nullptr;
    return *this;
  }
  Box& operator=(Box&&) noexcept = default;
  ~Box() = default;

  explicit operator bool() const { return held_ != nullptr; }
  T& operator*() { return *held_; }
  const T& operator*() const { return *held_; }
  T* operator->() { return held_.get(); }
  const T* operator->() const { return held_.get(); }
  T& emplace() {
    held_ = std::make_unique<T>();
    return *held_;
  }

 private:
  std::unique_ptr<T> held_;
};

struct WorkflowExecution {
  WorkflowId workflow_id;
  RunId run_id;
  bool operator==(const WorkflowExecution&) const = default;
};
BOOST_DESCRIBE_STRUCT(WorkflowExecution, (), (workflow_id, run_id))

struct WorkflowType {
  std::string name;
};
BOOST_DESCRIBE_STRUCT(WorkflowType, (), (name))

struct ActivityType {
  std::string name;
};
BOOST_DESCRIBE_STRUCT(ActivityType, (), (name))

struct ApplicationFailureInfo {
  std::string type;
  bool non_retryable = false;
  std::optional<Payloads> details;
  Duration next_retry_delay{};
};
BOOST_DESCRIBE_STRUCT(ApplicationFailureInfo, (), (type, non_retryable, details, next_retry_delay))

struct TimeoutFailureInfo {
  TimeoutType timeout_type = TimeoutType::unspecified;
  std::optional<Payloads> last_heartbeat_details;
};
BOOST_DESCRIBE_STRUCT(TimeoutFailureInfo, (), (timeout_type, last_heartbeat_details))

struct CanceledFailureInfo {
  std::optional<Payloads> details;
  std::string identity;
};
BOOST_DESCRIBE_STRUCT(CanceledFailureInfo, (), (details, identity))

struct TerminatedFailureInfo {
  std::string identity;
};
BOOST_DESCRIBE_STRUCT(TerminatedFailureInfo, (), (identity))

struct ServerFailureInfo {
  bool non_retryable = false;
};
BOOST_DESCRIBE_STRUCT(ServerFailureInfo, (), (non_retryable))

struct ActivityFailureInfo {
  std::int64_t scheduled_event_id = 0;
  std::int64_t started_event_id = 0;
  std::string identity;
  std::optional<ActivityType> activity_type;
  std::string activity_id;
  RetryState retry_state = RetryState::unspecified;
};
BOOST_DESCRIBE_STRUCT(ActivityFailureInfo, (),
                      (scheduled_event_id, started_event_id, identity, activity_type, activity_id,
                       retry_state))

struct ChildWorkflowExecutionFailureInfo {
  std::string namespace_;
  std::optional<WorkflowExecution> workflow_execution;
  std::optional<WorkflowType> workflow_type;
  std::int64_t initiated_event_id = 0;
  std::int64_t started_event_id = 0;
  RetryState retry_state = RetryState::unspecified;
};
BOOST_DESCRIBE_STRUCT(ChildWorkflowExecutionFailureInfo, (),
                      (namespace_, workflow_execution, workflow_type, initiated_event_id,
                       started_event_id, retry_state))

struct Failure {
  std::string message;
  std::string source;
  std::string stack_trace;
  std::optional<Payload> encoded_attributes;
  Box<Failure> cause;
  std::optional<ApplicationFailureInfo> application_failure_info;
  std::optional<TimeoutFailureInfo> timeout_failure_info;
  std::optional<CanceledFailureInfo> canceled_failure_info;
  std::optional<TerminatedFailureInfo> terminated_failure_info;
  std::optional<ServerFailureInfo> server_failure_info;
  std::optional<ActivityFailureInfo> activity_failure_info;
  std::optional<ChildWorkflowExecutionFailureInfo> child_workflow_execution_failure_info;
};
BOOST_DESCRIBE_STRUCT(Failure, (),
                      (message, source, stack_trace, encoded_attributes, cause,
                       application_failure_info, timeout_failure_info, canceled_failure_info,
                       terminated_failure_info, server_failure_info, activity_failure_info,
                       child_workflow_execution_failure_info))

}  // namespace permit
