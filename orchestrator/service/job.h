// What was asked of the server, until its batch decides it, and what is to be answered, until the
// batch is committed. One allocation each: every request makes one of both. Engine thread.
#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <utility>
#include <variant>

#include "orchestrator/protocol/error.h"
#include "orchestrator/protocol/trace.h"

namespace permit::service {

template <class T>
using Result = std::variant<T, Error>;

// The way back to whoever asked. To be called once, by any one of its copies, which share it; after
// the commit that holds what the answer says.
template <class T>
class Done {
 public:
  Done() = default;
  template <class Callback>
    requires(!std::same_as<Callback, Done> && std::invocable<Callback&, Result<T>>)
  Done(Callback callback)
      : callback_(std::make_shared<std::function<void(Result<T>&&)>>(std::move(callback))) {}

  void operator()(Result<T>&& result) const { (*callback_)(std::move(result)); }
  // The same for all copies.
  const void* identity() const { return callback_.get(); }

 private:
  std::shared_ptr<std::function<void(Result<T>&&)>> callback_;
};

class Reply {
 public:
  virtual ~Reply() = default;
  virtual const void* to() const = 0;  // the Done's identity
  virtual void send() = 0;
  // Instead of send(), if the batch came to nothing.
  virtual void refuse(const Error& error) = 0;
};

template <class T>
class ReplyOf final : public Reply {
 public:
  template <class ValueOrError>
  ReplyOf(Done<T> done, ValueOrError&& result)
      : done_(std::move(done)), result_(std::forward<ValueOrError>(result)) {}
  const void* to() const override { return done_.identity(); }
  void send() override { done_(std::move(result_)); }
  void refuse(const Error& error) override { done_(error); }

 private:
  Done<T> done_;
  Result<T> result_;
};

class Job {
 public:
  virtual ~Job() = default;
  virtual void decide() = 0;
  // The answer if decide() threw.
  virtual std::unique_ptr<Reply> refusal(const Error& error) const = 0;

  bool reads_only = false;                    // may be decided again if its batch fails
  std::shared_ptr<const TraceContext> trace;  // of its request; none: it has none
};

template <class T, class Decide>
class JobOf final : public Job {
 public:
  JobOf(Done<T> done, Decide decide) : done_(std::move(done)), decide_(std::move(decide)) {}
  void decide() override { decide_(); }
  std::unique_ptr<Reply> refusal(const Error& error) const override {
    return std::make_unique<ReplyOf<T>>(done_, error);
  }

 private:
  Done<T> done_;
  Decide decide_;
};

}  // namespace permit::service
