// Runs the coroutines of one workflow run in an order that depends on nothing but the history:
// first ready, first resumed. Not thread-safe; a run is driven by one thread.
#pragma once

#include <coroutine>
#include <deque>
#include <functional>
#include <list>

namespace permit::worker {

class Scheduler {
 public:
  Scheduler() = default;
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  // Queues `coroutine` for run_until_blocked(). Every wake-up goes through here and nobody calls
  // resume() directly, so a wake-up never runs inside the code that caused it.
  void make_ready(std::coroutine_handle<> coroutine);

  // Parks `coroutine` until `condition` holds. Conditions are tried in the order in which they
  // were added, once nothing is ready.
  void park_until(std::function<bool()> condition, std::coroutine_handle<> coroutine);

  // Resumes coroutines until each waits for an event or is done. Wakes one parked coroutine at a
  // time: the line after a wait can rely on its condition still being true.
  void run_until_blocked();

  // Nothing is resumed and no condition is tried any more: what they refer to may be gone.
  void stop() { stopped_ = true; }

 private:
  struct Parked {
    std::function<bool()> condition;
    std::coroutine_handle<> coroutine;
  };

  bool wake_one();

  std::deque<std::coroutine_handle<>> ready_;
  std::list<Parked> parked_;
  bool running_ = false;
  bool stopped_ = false;
};

}  // namespace permit::worker
