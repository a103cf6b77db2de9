#include "worker/async.h"

#include <coroutine>

#include "worker/future.h"

using namespace permit::worker;

namespace {

// What await_transform refuses to compile.
template <class T>
constexpr bool may_be_awaited = detail::is_awaitable_here<T>;

struct FromElsewhere {
  bool await_ready() const { return true; }
  void await_suspend(std::coroutine_handle<>) const {}
  void await_resume() const {}
};

static_assert(may_be_awaited<Async<void>> && may_be_awaited<Async<int>>);
static_assert(may_be_awaited<Future<void>> && may_be_awaited<Future<int>>);
static_assert(may_be_awaited<Condition>);
static_assert(!may_be_awaited<std::suspend_always>);
static_assert(!may_be_awaited<std::suspend_never>);
static_assert(!may_be_awaited<FromElsewhere>);

}  // namespace
