// Future<T>: the result of something that has begun, an activity, a timer, a child, a spawned
// coroutine. Awaiting it may come at once, later, from several coroutines, or never. Copies share
// the result. Belongs to the run whose handle gave it.
#pragma once

#include <coroutine>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "worker/async.h"

namespace permit::worker {

namespace detail {

struct Nothing {};
template <class T>
using value_or_nothing = std::conditional_t<std::is_void_v<T>, Nothing, T>;

}  // namespace detail

template <class T>
class Future {
 public:
  using Value = detail::value_or_nothing<T>;

  explicit Future(Scheduler& scheduler) : state_(std::make_shared<State>(scheduler)) {}

  bool is_ready() const { return state_->result.index() != 0; }
  // Asks for the end of what is still under way; how it ends says the await. A no-op if it is over.
  void cancel() const {
    if (!is_ready() && state_->cancel) state_->cancel();
  }

  // --- For those who make it come true ---
  void resolve(Value value) const {
    if (is_ready()) return;
    state_->result.template emplace<1>(std::move(value));
    wake();
  }
  void fail(std::exception_ptr exception) const {
    if (is_ready()) return;
    state_->result.template emplace<2>(std::move(exception));
    wake();
  }
  template <class E>
  void fail_with(E exception) const {
    fail(std::make_exception_ptr(std::move(exception)));
  }
  void on_cancel(std::function<void()> cancel) const { state_->cancel = std::move(cancel); }

  class Awaiter;
  Awaiter await_in(Scheduler& scheduler) const {
    if (&scheduler != &state_->scheduler) {
      throw Misuse("a Future is awaited in another run than the one that began it");
    }
    return Awaiter(state_);
  }

 private:
  struct State {
    explicit State(Scheduler& of) : scheduler(of) {}
    Scheduler& scheduler;
    std::variant<std::monostate, Value, std::exception_ptr> result;
    std::vector<std::coroutine_handle<>> waiting;
    std::function<void()> cancel;
  };

  void wake() const {
    state_->cancel = {};
    for (const std::coroutine_handle<> waiting : std::exchange(state_->waiting, {})) {
      state_->scheduler.make_ready(waiting);
    }
  }

  std::shared_ptr<State> state_;
};

template <class T>
class Future<T>::Awaiter {
 public:
  explicit Awaiter(std::shared_ptr<State> state) : state_(std::move(state)) {}
  bool await_ready() const noexcept { return state_->result.index() != 0; }
  void await_suspend(std::coroutine_handle<> parent) const { state_->waiting.push_back(parent); }
  T await_resume() const {
    if (const auto* exception = std::get_if<2>(&state_->result)) {
      std::rethrow_exception(*exception);
    }
    if constexpr (!std::is_void_v<T>) return std::get<1>(state_->result);
  }

 private:
  std::shared_ptr<State> state_;
};

// All of them, in their order; throws the first failure in that order. They are under way already.
template <class T>
Async<std::vector<T>> all(std::vector<Future<T>> futures) {
  std::vector<T> results;
  results.reserve(futures.size());
  for (const Future<T>& future : futures) {
    T result = co_await future;
    results.push_back(std::move(result));
  }
  co_return results;
}
inline Async<void> all(std::vector<Future<void>> futures) {
  for (const Future<void>& future : futures) co_await future;
}

// The index of the first that is ready, however it ended.
template <class T>
Async<std::size_t> any(std::vector<Future<T>> futures) {
  if (futures.empty()) throw Misuse("any() of nothing would wait for ever");
  std::size_t first = futures.size();
  Condition one_is_ready([&futures, &first] {
    for (first = 0; first < futures.size(); ++first) {
      if (futures[first].is_ready()) return true;
    }
    return false;
  });
  co_await one_is_ready;
  co_return first;
}

}  // namespace permit::worker
