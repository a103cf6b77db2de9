// What asking for a permit, and holding one, can come to. All are ApplicationFailed: one that
// leaves a workflow fails its run, with the class's name as the failure's type.
#pragma once

#include <string>

#include "orchestrator/protocol/common.h"
#include "worker/failures.h"

namespace permit::permits {

class PermitError : public worker::ApplicationFailed {
 protected:
  PermitError(const char* type, std::string message);
};

// Bad arguments. Thrown before anything is asked for.
class InvalidPermit : public PermitError {
 public:
  explicit InvalidPermit(std::string message);
};

// No slot came free within the timeout.
class PermitTimedOut : public PermitError {
 public:
  explicit PermitTimedOut(std::string message);
};

// The pool is registered with other slots than the caller says, and no operator has settled it.
class CapacityMismatch : public PermitError {
 public:
  explicit CapacityMismatch(std::string message);
};

// More slots than the pool has.
class TooManySlots : public PermitError {
 public:
  explicit TooManySlots(std::string message);
};

// The run holds what it asks for, and could only wait for itself.
class SelfDeadlock : public PermitError {
 public:
  explicit SelfDeadlock(std::string message);
};

// An operator took the request out of the line.
class RemovedFromLine : public PermitError {
 public:
  explicit RemovedFromLine(std::string message);
};

// The permit ended while its holder was at work: its lease ran out, or an operator took it.
class PermitLost : public PermitError {
 public:
  PermitLost(Outcome outcome, const std::string& permit);
  Outcome outcome() const { return outcome_; }

 private:
  Outcome outcome_;
};

// Waiting without the server's help has made the history long: continue the run as new, and ask
// again.
class HistoryNearLimit : public PermitError {
 public:
  explicit HistoryNearLimit(std::string message);
};

// Throws what a refused start is to its caller. TAKEN and DRAINED are for the caller to deal with.
[[noreturn]] void throw_refusal(const worker::ChildNotStarted& refused);

}  // namespace permit::permits
