#include "permits/errors.h"

#include <boost/describe.hpp>
#include <utility>

namespace permit::permits {

PermitError::PermitError(const char* type, std::string message)
    : ApplicationFailed(std::move(message)) {
  this->type(type);
  non_retryable();
}

InvalidPermit::InvalidPermit(std::string message)
    : PermitError("InvalidPermit", std::move(message)) {}
PermitTimedOut::PermitTimedOut(std::string message)
    : PermitError("PermitTimedOut", std::move(message)) {}
CapacityMismatch::CapacityMismatch(std::string message)
    : PermitError("CapacityMismatch", std::move(message)) {}
TooManySlots::TooManySlots(std::string message) : PermitError("TooManySlots", std::move(message)) {}
SelfDeadlock::SelfDeadlock(std::string message) : PermitError("SelfDeadlock", std::move(message)) {}
RemovedFromLine::RemovedFromLine(std::string message)
    : PermitError("RemovedFromLine", std::move(message)) {}
HistoryNearLimit::HistoryNearLimit(std::string message)
    : PermitError("HistoryNearLimit", std::move(message)) {}

PermitLost::PermitLost(Outcome outcome, const std::string& permit)
    : PermitError("PermitLost", permit + " was lost while its holder was at work: " +
                                    boost::describe::enum_to_string(outcome, "ended")),
      outcome_(outcome) {}

void throw_refusal(const worker::ChildNotStarted& refused) {
  if (!refused.permit_failure()) throw refused;
  const PermitFailure& failure = *refused.permit_failure();
  switch (failure.kind) {
    case PermitFailureKind::wait_timed_out:
      throw PermitTimedOut(failure.message);
    case PermitFailureKind::capacity_mismatch:
      throw CapacityMismatch(failure.message);
    case PermitFailureKind::too_many:
      throw TooManySlots(failure.message);
    case PermitFailureKind::self_deadlock:
      throw SelfDeadlock(failure.message);
    case PermitFailureKind::canceled:
      throw RemovedFromLine(failure.message);
    case PermitFailureKind::taken:
    case PermitFailureKind::drained:
    case PermitFailureKind::unspecified:
      break;
  }
  throw refused;
}

}  // namespace permit::permits
