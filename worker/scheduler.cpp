#include "worker/scheduler.h"

#include <utility>

#include "orchestrator/protocol/ensure.h"

namespace permit::worker {

void Scheduler::make_ready(std::coroutine_handle<> coroutine) { ready_.push_back(coroutine); }

void Scheduler::park_until(std::function<bool()> condition, std::coroutine_handle<> coroutine) {
  parked_.push_back({std::move(condition), coroutine});
}

void Scheduler::run_until_blocked() {
  ENSURE(!running_);
  running_ = true;
  struct Stop {
    bool& running;
    ~Stop() { running = false; }
  } stop{running_};
  do {
    while (!stopped_ && !ready_.empty()) {
      const std::coroutine_handle<> next = ready_.front();
      ready_.pop_front();
      next.resume();
    }
  } while (!stopped_ && wake_one());
}

bool Scheduler::wake_one() {
  for (auto parked = parked_.begin(); parked != parked_.end(); ++parked) {
    if (!parked->condition()) continue;
    ready_.push_back(parked->coroutine);
    parked_.erase(parked);
    return true;
  }
  return false;
}

}  // namespace permit::worker
