// The pool of slots that workflow code asks for permits.
//
//   const Semaphore gpus(workflow, "gpu-pool", 4);
//   const auto options = PermitOptions().lease(10min).timeout(1h).fair();
//   const auto train = [job](Workflow inside, Held permit) -> Async<std::string> {...};
//   std::string path = co_await gpus.with_permit(options, train);
//
// Slots are tried in an order drawn anew for each round from the run's own random numbers, so that
// callers spread over them and a replay does the same. When none is free, `any` pauses, is woken
// when one frees, and after five rounds stands in line behind those who are `fair`.
#pragma once

#include <exception>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "permits/errors.h"
#include "permits/options.h"
#include "permits/permit.h"
#include "worker/workflow.h"

namespace permit::permits {

class Semaphore {
 public:
  // The first use registers the pool with what it says. Once an operator has set the pool, that
  // holds, and a caller who believes otherwise is shown as an alert. All throw InvalidPermit.
  Semaphore(worker::Workflow workflow, std::string pool, int capacity);  // slots "0" … "n-1"
  Semaphore(worker::Workflow workflow, std::string pool, std::vector<std::string> slots);
  Semaphore(worker::Workflow workflow, std::string pool);  // as registered

  // Waits for a slot. Throws InvalidPermit before anything is asked for; PermitTimedOut,
  // CapacityMismatch, SelfDeadlock and the others of errors.h. If it is canceled meanwhile, either
  // it throws Canceled and nothing is held, or the permit is in hand.
  worker::Async<Permit> acquire(PermitOptions options = PermitOptions()) const;
  // Without waiting.
  worker::Async<std::optional<Permit>> try_acquire(PermitOptions options = PermitOptions()) const;
  // All of them or none, in one commit: callers that want several cannot block each other.
  worker::Async<std::vector<Permit>> acquire_n(int count,
                                               PermitOptions options = PermitOptions()) const;

  // Runs body(Workflow, Held), a coroutine, under a permit, and releases it when that
  // returns, throws or is canceled. If the permit is lost, cancels what the body began through its
  // handle and throws PermitLost when it has ended.
  template <class Body>
  auto with_permit(PermitOptions options, Body body) const
      -> std::invoke_result_t<Body, worker::Workflow, Held> {
    return run_with_permit(*this, std::move(options), std::move(body));
  }

  const std::string& pool() const { return pool_; }

 private:
  enum class Wait { no, yes };

  template <class Body>
  static auto run_with_permit(Semaphore self, PermitOptions options, Body body)
      -> std::invoke_result_t<Body, worker::Workflow, Held>;
  static worker::Async<Permit> acquire_one(Semaphore self, PermitOptions options);
  static worker::Async<std::optional<Permit>> try_one(Semaphore self, PermitOptions options);
  static worker::Async<std::vector<Permit>> acquire_some(Semaphore self, int count,
                                                         PermitOptions options);
  static worker::Async<std::vector<Permit>> attempt(Semaphore self, int count,
                                                    PermitOptions options, int round,
                                                    Duration left);
  static worker::Async<std::vector<Permit>> ask(Semaphore self, int count, PermitOptions options,
                                                Wait wait, Duration wait_timeout);
  static worker::Async<std::vector<Permit>> probe(Semaphore self, PermitOptions options);

  void check(int count, const PermitOptions& options) const;
  std::vector<std::string> shuffled_slots() const;
  Duration pause_after(int round, const PermitOptions& options) const;
  worker::Random& random() const;

  worker::Workflow workflow_;
  std::string pool_;
  std::vector<std::string> slots_;
};

// A semaphore of one.
class Mutex : public Semaphore {
 public:
  Mutex(worker::Workflow workflow, std::string name)
      : Semaphore(std::move(workflow), std::move(name), 1) {}
};

template <class Body>
auto Semaphore::run_with_permit(Semaphore self, PermitOptions options, Body body)
    -> std::invoke_result_t<Body, worker::Workflow, Held> {
  using Result = typename std::invoke_result_t<Body, worker::Workflow, Held>::value_type;
  Permit permit = co_await self.acquire(std::move(options));
  const worker::Workflow inside = self.workflow_.cancelable();
  permit.on_loss([inside] { inside.cancel(); });
  worker::Async<Result> work = body(inside, permit);
  std::exception_ptr thrown;
  std::optional<worker::detail::value_or_nothing<Result>> result;
  try {
    if constexpr (std::is_void_v<Result>) {
      co_await work;
    } else {
      result = co_await work;
    }
  } catch (const worker::Failed&) {
    // Nothing else: what fails the task must do so here, before a release is on record.
    thrown = std::current_exception();
  }
  const std::optional<Outcome> loss = permit.loss();
  if (loss && !self.workflow_.is_canceled()) throw PermitLost(*loss, permit.id());
  co_await permit.release();
  if (thrown) std::rethrow_exception(thrown);
  if constexpr (!std::is_void_v<Result>) co_return std::move(*result);
}

}  // namespace permit::permits
