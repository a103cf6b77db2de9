// Moves a standing clock from one due instant to the next, giving workers real time to do their
// part in between, so that a 45-minute lease passes in milliseconds and in the order it would in
// life.
#pragma once

#include <chrono>
#include <optional>

#include "orchestrator/service/service.h"

namespace permit::service {

class VirtualTime {
 public:
  VirtualTime(Service& service, ManualClock& clock) : service_(service), clock_(clock) {}

  // Answers when the clock has reached its goal and all is quiet. One at a time.
  void advance(const AdvanceRequest& request, Done<AdvanceResponse> done);

  // To be called whenever the service has nothing left to do at the current instant.
  void step();
  bool is_advancing() const { return goal_.has_value(); }

 private:
  void finish(Result<AdvanceResponse> result);

  Service& service_;
  ManualClock& clock_;
  std::optional<Time> goal_;
  Done<AdvanceResponse> done_;
  std::chrono::steady_clock::time_point patience_ends_;
};

}  // namespace permit::service
