#include "worker/failures.h"

#include <boost/core/demangle.hpp>
#include <typeinfo>

namespace permit::worker {

namespace {

constexpr const char* source = "PermitCpp";

Failure made_here(std::string message) {
  Failure failure;
  failure.message = std::move(message);
  failure.source = source;
  return failure;
}

// The innermost that says more than "an activity failed".
const Failure& root_cause(const Failure& failure) {
  const Failure* at = &failure;
  while (at->cause && (at->activity_failure_info || at->child_workflow_execution_failure_info)) {
    at = &*at->cause;
  }
  return *at;
}

std::optional<ApplicationFailed> application_in(const Failure& failure) {
  const Failure& cause = root_cause(failure);
  if (!cause.application_failure_info) return std::nullopt;
  return ApplicationFailed(cause);
}

std::string describe(const WorkflowId& id, StartChildWorkflowExecutionFailedCause cause,
                     const std::optional<PermitFailure>& permit_failure) {
  if (permit_failure) return permit_failure->message;
  if (cause == StartChildWorkflowExecutionFailedCause::workflow_already_exists) {
    return "the child \"" + id.value +
           "\" was not started: a run with this id is open, or its id "
           "reuse policy forbids another";
  }
  return "the child \"" + id.value + "\" was not started";
}

}  // namespace

ApplicationFailed::ApplicationFailed(std::string message) : Failed(made_here(std::move(message))) {
  failure_.application_failure_info.emplace();
}

ApplicationFailed& ApplicationFailed::type(std::string type) {
  failure_.application_failure_info->type = std::move(type);
  return *this;
}

ApplicationFailed& ApplicationFailed::non_retryable() {
  failure_.application_failure_info->non_retryable = true;
  return *this;
}

ApplicationFailed& ApplicationFailed::details(Payloads details) {
  failure_.application_failure_info->details = std::move(details);
  return *this;
}

ApplicationFailed& ApplicationFailed::cause(const Failed& cause) {
  failure_.cause = Box<Failure>(cause.failure());
  return *this;
}

ApplicationFailed& ApplicationFailed::next_retry_delay(Duration delay) {
  failure_.application_failure_info->next_retry_delay = delay;
  return *this;
}

Canceled::Canceled(std::string message) : Failed(made_here(std::move(message))) {
  failure_.canceled_failure_info.emplace();
}

const std::string& ActivityFailed::activity_type() const {
  static const std::string unknown;
  const auto& info = failure_.activity_failure_info;
  return info && info->activity_type ? info->activity_type->name : unknown;
}

std::optional<ApplicationFailed> ActivityFailed::application() const {
  return application_in(failure_);
}

bool ActivityFailed::is_timeout() const {
  return root_cause(failure_).timeout_failure_info.has_value();
}

std::optional<ApplicationFailed> ChildFailed::application() const {
  return application_in(failure_);
}

bool ChildFailed::is_timeout() const {
  return root_cause(failure_).timeout_failure_info.has_value();
}

bool ChildFailed::is_terminated() const {
  return root_cause(failure_).terminated_failure_info.has_value();
}

ChildNotStarted::ChildNotStarted(WorkflowId id, StartChildWorkflowExecutionFailedCause cause,
                                 std::optional<PermitFailure> permit_failure)
    : Failed(made_here(describe(id, cause, permit_failure))),
      id_(std::move(id)),
      cause_(cause),
      permit_failure_(std::move(permit_failure)) {
  failure_.application_failure_info.emplace();
  failure_.application_failure_info->type = "ChildNotStarted";
}

ExternalFailed::ExternalFailed(std::string message) : Failed(made_here(std::move(message))) {
  failure_.application_failure_info.emplace();
  failure_.application_failure_info->type = "ExternalFailed";
}

Failure failure_of(const std::exception_ptr& exception) {
  try {
    std::rethrow_exception(exception);
  } catch (const Failed& failed) {
    return failed.failure();
  } catch (const std::exception& other) {
    Failure failure = made_here(other.what());
    failure.application_failure_info.emplace();
    failure.application_failure_info->type = boost::core::demangle(typeid(other).name());
    return failure;
  } catch (...) {
    Failure failure = made_here("something was thrown that is not a std::exception");
    failure.application_failure_info.emplace();
    return failure;
  }
}

}  // namespace permit::worker
