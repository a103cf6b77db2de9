// Async<T>: what a workflow's coroutines return. Lazy: nothing runs before it is awaited; then the
// child starts inside the await, and one that ends at once costs no suspension and no stack. One
// that ends later readies its parent through the scheduler.
//
// A coroutine may await an Async or a Future of its own workflow, nothing else. Destroying an Async
// destroys its frame, wherever it is suspended.
//
// The rule for authors: name it, then await it. Between `co_await` and its `;` stand no brace, no
// `?:` and no lambda that captures by value: g++ 12 frees what they make twice (scripts/lint
// looks).
#pragma once

#include <coroutine>
#include <exception>
#include <optional>
#include <utility>

#include "worker/failures.h"
#include "worker/scheduler.h"

namespace permit::worker {

template <class T>
class Async;
template <class T>
class Future;
class Condition;

namespace detail {

template <class A>
inline constexpr bool is_awaitable_here = false;
template <class T>
inline constexpr bool is_awaitable_here<Async<T>> = true;
template <class T>
inline constexpr bool is_awaitable_here<Future<T>> = true;
template <>
inline constexpr bool is_awaitable_here<Condition> = true;

class AsyncPromiseBase {
 public:
  std::suspend_always initial_suspend() const noexcept { return {}; }

  struct FinalAwaiter {
    bool await_ready() const noexcept { return false; }
    template <class Promise>
    void await_suspend(std::coroutine_handle<Promise> self) const noexcept {
      self.promise().end();
    }
    void await_resume() const noexcept {}
  };
  FinalAwaiter final_suspend() const noexcept { return {}; }

  void unhandled_exception() noexcept { exception_ = std::current_exception(); }

  template <class A>
  auto await_transform(A&& awaitable) {
    static_assert(is_awaitable_here<std::remove_cvref_t<A>>,
                  "a workflow awaits only an Async or a Future that its own Workflow handle gave; "
                  "anything else would not replay. Put I/O and waiting into an activity");
    return awaitable.await_in(*scheduler_);
  }

  Scheduler* scheduler() const { return scheduler_; }

 protected:
  template <class T>
  friend class permit::worker::Async;

  void end() noexcept {
    ended_ = true;
    if (!starting_ && continuation_) scheduler_->make_ready(continuation_);
  }
  void rethrow() const {
    if (exception_) std::rethrow_exception(exception_);
  }

  Scheduler* scheduler_ = nullptr;
  std::coroutine_handle<> continuation_;
  std::exception_ptr exception_;
  bool starting_ = false;  // inside the await that started it
  bool ended_ = false;
};

template <class T>
class AsyncPromise : public AsyncPromiseBase {
 public:
  Async<T> get_return_object();
  template <class U>
  void return_value(U&& value) {
    value_.emplace(std::forward<U>(value));
  }
  T take() {
    rethrow();
    return std::move(*value_);
  }

 private:
  std::optional<T> value_;
};

template <>
class AsyncPromise<void> : public AsyncPromiseBase {
 public:
  Async<void> get_return_object();
  void return_void() const noexcept {}
  void take() const { rethrow(); }
};

}  // namespace detail

template <class T>
class [[nodiscard]] Async {
 public:
  using promise_type = detail::AsyncPromise<T>;
  using value_type = T;

  Async(Async&& other) noexcept : frame_(std::exchange(other.frame_, {})) {}
  Async& operator=(Async&& other) noexcept {
    std::swap(frame_, other.frame_);
    return *this;
  }
  Async(const Async&) = delete;
  Async& operator=(const Async&) = delete;
  ~Async() {
    if (frame_) frame_.destroy();
  }

  // Runs it up to its first wait with nobody waiting for it: the root of a run, a signal handler.
  void start(Scheduler& scheduler) { run_frame(frame_, scheduler, {}); }
  bool is_done() const { return frame_.promise().ended_; }

  class Awaiter {
   public:
    Awaiter(std::coroutine_handle<promise_type> frame, Scheduler& scheduler)
        : frame_(frame), scheduler_(scheduler) {}
    bool await_ready() const noexcept { return false; }
    // False: the child has ended already and the parent goes on.
    bool await_suspend(std::coroutine_handle<> parent) const {
      return !run_frame(frame_, scheduler_, parent);
    }
    T await_resume() const { return frame_.promise().take(); }

   private:
    std::coroutine_handle<promise_type> frame_;
    Scheduler& scheduler_;
  };
  Awaiter await_in(Scheduler& scheduler) const {
    if (!frame_ || frame_.promise().scheduler_ != nullptr) {
      throw Misuse("an Async is awaited twice; keep its result, or start it with spawn()");
    }
    return Awaiter(frame_, scheduler);
  }

 private:
  friend promise_type;
  explicit Async(std::coroutine_handle<promise_type> frame) : frame_(frame) {}

  static bool run_frame(std::coroutine_handle<promise_type> frame, Scheduler& scheduler,
                        std::coroutine_handle<> parent) {
    promise_type& promise = frame.promise();
    promise.scheduler_ = &scheduler;
    promise.continuation_ = parent;
    promise.starting_ = true;
    frame.resume();
    promise.starting_ = false;
    return promise.ended_;
  }

  std::coroutine_handle<promise_type> frame_;
};

template <class T>
Async<T> detail::AsyncPromise<T>::get_return_object() {
  return Async<T>(std::coroutine_handle<AsyncPromise>::from_promise(*this));
}
inline Async<void> detail::AsyncPromise<void>::get_return_object() {
  return Async<void>(std::coroutine_handle<AsyncPromise>::from_promise(*this));
}

// Suspends until a predicate over the workflow's own variables holds; see Workflow::wait_until.
class Condition {
 public:
  explicit Condition(std::function<bool()> holds) : holds_(std::move(holds)) {}

  class Awaiter {
   public:
    Awaiter(std::function<bool()> holds, Scheduler& scheduler)
        : holds_(std::move(holds)), scheduler_(scheduler) {}
    bool await_ready() const { return holds_(); }
    void await_suspend(std::coroutine_handle<> parent) {
      scheduler_.park_until(std::move(holds_), parent);
    }
    void await_resume() const noexcept {}

   private:
    std::function<bool()> holds_;
    Scheduler& scheduler_;
  };
  Awaiter await_in(Scheduler& scheduler) const { return Awaiter(holds_, scheduler); }

 private:
  std::function<bool()> holds_;
};

}  // namespace permit::worker
