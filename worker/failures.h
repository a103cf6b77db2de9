// What workflow and activity code throws and catches.
//
// A Failed (any of its kinds) that leaves a workflow fails the *run*; so does Canceled, as canceled
// if that was asked for. Any other exception is taken for a bug in the code: it fails the *task*,
// which is tried again, so a fixed worker takes up where this one stopped.
#pragma once

#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "orchestrator/protocol/common.h"
#include "orchestrator/protocol/failure.h"

namespace permit::worker {

class Failed : public std::exception {
 public:
  explicit Failed(Failure failure) : failure_(std::move(failure)) {}
  const char* what() const noexcept override { return failure_.message.c_str(); }
  const std::string& message() const { return failure_.message; }
  // As it crosses the wire, with its causes.
  const Failure& failure() const { return failure_; }

 protected:
  Failure failure_;
};

// What code throws to fail, and what it finds as the cause of an ActivityFailed or ChildFailed.
class ApplicationFailed : public Failed {
 public:
  explicit ApplicationFailed(std::string message);
  explicit ApplicationFailed(Failure failure) : Failed(std::move(failure)) {}

  // Programs branch on it, and retry policies name it.
  ApplicationFailed& type(std::string type);
  ApplicationFailed& non_retryable();
  ApplicationFailed& details(Payloads details);
  ApplicationFailed& cause(const Failed& cause);
  ApplicationFailed& next_retry_delay(Duration delay);

  const std::string& type() const { return failure_.application_failure_info->type; }
  bool is_non_retryable() const { return failure_.application_failure_info->non_retryable; }
  const std::optional<Payloads>& details() const {
    return failure_.application_failure_info->details;
  }
};

// Out of an await whose scope, or whose run, was canceled.
class Canceled : public Failed {
 public:
  explicit Canceled(std::string message = "canceled");
  explicit Canceled(Failure failure) : Failed(std::move(failure)) {}
};

// An activity, once its retries are over. Its cause is what the activity threw, or a timeout.
class ActivityFailed : public Failed {
 public:
  using Failed::Failed;
  const std::string& activity_type() const;
  // The application failure underneath, if that is what it is.
  std::optional<ApplicationFailed> application() const;
  bool is_timeout() const;
};

class ChildFailed : public Failed {
 public:
  using Failed::Failed;
  std::optional<ApplicationFailed> application() const;
  bool is_timeout() const;
  bool is_terminated() const;
};

// A child that did not start: its id is in use, or its permit was refused.
class ChildNotStarted : public Failed {
 public:
  ChildNotStarted(WorkflowId id, StartChildWorkflowExecutionFailedCause cause,
                  std::optional<PermitFailure> permit_failure);
  const WorkflowId& id() const { return id_; }
  bool is_already_started() const {
    return cause_ == StartChildWorkflowExecutionFailedCause::workflow_already_exists;
  }
  const std::optional<PermitFailure>& permit_failure() const { return permit_failure_; }

 private:
  WorkflowId id_;
  StartChildWorkflowExecutionFailedCause cause_;
  std::optional<PermitFailure> permit_failure_;
};

// A signal or cancel request for a run that is not there, or is not this run's child.
class ExternalFailed : public Failed {
 public:
  explicit ExternalFailed(std::string message);
};

// --- Bugs: they fail the task ---

// The code did something else than its history says it did.
class NondeterminismError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The SDK was used in a way that cannot work; the message names it.
class Misuse : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

// A payload is not what its reader expects.
class ConversionFailed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// What an exception out of an activity, or out of a workflow's task, is on the wire.
Failure failure_of(const std::exception_ptr& exception);

}  // namespace permit::worker
