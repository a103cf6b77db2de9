// A held slot, as workflow code has it in hand. Leaving scope releases it: after a return, an
// exception, a reassignment. It does not when the run leaves memory: then it is held on.
//
//   const Permit permit = co_await gpus.acquire(options);
//   const ActivityOptions under = permit.cover(ActivityOptions().start_to_close(2h));
//   co_await workflow.execute_activity(train, under, permit.slot(), permit.fence());
//   // released here
//
// Prefer Semaphore::with_permit: it also stops the work if the permit is lost under it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "permits/errors.h"
#include "permits/options.h"
#include "worker/workflow.h"

namespace permit::permits {

// What can be done with a hold. Copies are the same hold; none of them gives it back by going.
class Held {
 public:
  // "permit:<pool>:<slot>"
  const std::string& id() const;
  const std::string& slot() const;
  const RunId& run_id() const;
  // Grows with every grant of the pool's server: what guarded things compare (fence_guard.h).
  std::int64_t fence() const;
  // As granted, or as renew() has moved it. Heartbeats may have moved it further.
  Time deadline() const;
  // Neither released nor lost, as far as the history says.
  bool is_held() const;

  // The options of an activity that works under this permit. Its heartbeats renew the permit. It
  // ends before the permit must, and is not tried again unless the options say so: who works no
  // longer frees the slot. A cancellation waits until it has stopped: who still works does not.
  worker::ActivityOptions cover(worker::ActivityOptions options) const;

  // Moves the deadline to a lease from now, within max_hold. Nothing: it is too late.
  worker::Async<std::optional<Time>> renew() const;

  // Gives the slot back and says how the hold ended: a release that comes too late changes nothing.
  // Nothing: that is not known within 5 s, since the permit's worker is away.
  worker::Async<std::optional<Outcome>> release() const;

  // Calls `lost` when the permit ends without having been released here.
  void on_loss(std::function<void()> lost) const;
  // How it was lost, if it was.
  std::optional<Outcome> loss() const;

 protected:
  struct Hold;
  explicit Held(std::shared_ptr<Hold> hold) : hold_(std::move(hold)) {}
  std::shared_ptr<Hold> hold_;

 private:
  static worker::Async<std::optional<Time>> renew_hold(std::shared_ptr<Hold> hold);
  static worker::Async<std::optional<Outcome>> release_hold(std::shared_ptr<Hold> hold);
  static worker::Async<void> watch(std::shared_ptr<Hold> hold, std::function<void()> lost);
  static worker::Async<Outcome> end_of(worker::Future<std::string> closed);
};

// The one that gives it back.
class Permit : public Held {
 public:
  // Of a start that has succeeded; for Semaphore.
  Permit(const worker::Workflow& workflow, worker::Child<std::string> child, PermitOptions options);
  ~Permit() { let_go(); }
  Permit(Permit&& other) noexcept : Held(std::exchange(other.hold_, nullptr)) {}
  Permit& operator=(Permit&& other) noexcept {
    if (this != &other) {
      let_go();
      hold_ = std::exchange(other.hold_, nullptr);
    }
    return *this;
  }
  Permit(const Permit&) = delete;
  Permit& operator=(const Permit&) = delete;

 private:
  void let_go() noexcept;
};

}  // namespace permit::permits
