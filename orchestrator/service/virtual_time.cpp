#include "orchestrator/service/virtual_time.h"

#include <cmath>

namespace permit::service {

namespace {

constexpr auto patience = std::chrono::seconds(5);

}  // namespace

void VirtualTime::advance(const AdvanceRequest& request, Done<AdvanceResponse> done) {
  constexpr double year = 366.0 * 24 * 3600;
  if (!(request.seconds >= 0) || request.seconds > 10 * year) {
    throw invalid_argument("ADVANCE_INVALID", "seconds must be between 0 and ten years");
  }
  if (goal_) {
    throw Error(ErrorCode::aborted, "ADVANCE_BLOCKED", "another advance is under way");
  }
  goal_ = clock_.now() + Duration(std::llround(request.seconds * 1e6));
  done_ = std::move(done);
  patience_ends_ = std::chrono::steady_clock::now() + patience;
}

void VirtualTime::step() {
  if (!goal_) return;
  if (const auto busy = service_.busy_workflow_task()) {
    if (std::chrono::steady_clock::now() < patience_ends_) return;
    finish(Error(ErrorCode::aborted, "ADVANCE_BLOCKED",
                 "time stands still at a workflow task that nobody completes: workflow " +
                     busy->workflow_id.value + ", run " + busy->run_id.value));
    return;
  }
  if (clock_.now() >= *goal_) {
    finish(AdvanceResponse{clock_.now()});
    return;
  }
  clock_.set(std::min(*goal_, std::max(service_.next_due(), clock_.now())));
  patience_ends_ = std::chrono::steady_clock::now() + patience;
}

void VirtualTime::finish(Result<AdvanceResponse> result) {
  const Done<AdvanceResponse> done = std::move(done_);
  goal_.reset();
  done(std::move(result));
}

}  // namespace permit::service
