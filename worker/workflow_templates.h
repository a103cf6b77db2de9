// The templates of workflow.h, which includes this.
#pragma once

namespace permit::worker {

template <class R>
Done Workflow::settle(Future<R> future) {
  return [future = std::move(future)](const RawResult& result) {
    if (const auto* exception = std::get_if<std::exception_ptr>(&result)) {
      future.fail(*exception);
      return;
    }
    try {
      if constexpr (std::is_void_v<R>) {
        future.resolve({});
      } else {
        future.resolve(from_payloads<R>(std::get<0>(result)));
      }
    } catch (const ConversionFailed&) {
      future.fail(std::current_exception());
    }
  };
}

template <class R, class... Args>
Future<R> Workflow::execute_activity(ActivityName<R(Args...)> name, const ActivityOptions& options,
                                     const std::type_identity_t<Args>&... args) const {
  command::ScheduleActivityTask command = options.command();
  command.activity_type.name = name.name;
  command.input = to_payloads(args...);
  Future<R> future(scheduler());
  future.on_cancel(begin_activity(std::move(command), options.on_cancel(), settle(future)));
  return future;
}

template <class R, class... Args>
Future<Child<R>> Workflow::start_child(WorkflowName<R(Args...)> name, const ChildOptions& options,
                                       const std::type_identity_t<Args>&... args) const {
  command::StartChildWorkflowExecution command = options.command();
  command.workflow_type.name = name.name;
  command.input = to_payloads(args...);
  Future<Child<R>> future(scheduler());
  // The operation calls one of these once and then lets go of both.
  const auto operation = std::make_shared<std::weak_ptr<ChildOperation>>();
  const Workflow self = *this;
  const auto begun = begin_child(
      std::move(command),
      [future, operation, self](const std::vector<ChildRun>& runs) {
        future.resolve(Child<R>(self, operation->lock(), runs.front()));
      },
      [future](std::exception_ptr exception) { future.fail(std::move(exception)); });
  *operation = begun;
  future.on_cancel([weak = std::weak_ptr<ChildOperation>(begun)] {
    if (const auto child = weak.lock()) child->cancel();
  });
  return future;
}

template <class R, class... Args>
Async<R> Workflow::execute_child(WorkflowName<R(Args...)> name, ChildOptions options,
                                 std::type_identity_t<Args>... args) const {
  return run_child<R, Args...>(*this, name, std::move(options), std::move(args)...);
}

template <class R, class... Args>
Async<R> Workflow::run_child(Workflow self, WorkflowName<R(Args...)> name, ChildOptions options,
                             Args... args) {
  const Future<Child<R>> started = self.start_child(name, options, args...);
  Child<R> child = co_await started;
  const Future<R> result = child.result();
  if constexpr (std::is_void_v<R>) {
    co_await result;
  } else {
    R value = co_await result;
    co_return value;
  }
}

namespace detail {

template <class T>
Async<void> run_into(Async<T> coroutine, Future<T> future) {
  try {
    if constexpr (std::is_void_v<T>) {
      co_await coroutine;
      future.resolve({});
    } else {
      T value = co_await coroutine;
      future.resolve(std::move(value));
    }
  } catch (...) {
    future.fail(std::current_exception());
  }
}

// Calls a handler with the arguments that its signature says.
template <class Handler, class R, class... Args>
R call_with(const Handler& handler, const std::optional<Payloads>& input,
            R (Handler::*)(Args...) const) {
  std::tuple<std::decay_t<Args>...> arguments = arguments_from<std::decay_t<Args>...>(input);
  return std::apply([&](auto&... args) -> R { return handler(std::move(args)...); }, arguments);
}

template <class State, class Handler, class R, class First, class... Args>
R call_with_state(const State& state, const Handler& handler, const std::optional<Payloads>& input,
                  R (Handler::*)(First, Args...) const) {
  std::tuple<std::decay_t<Args>...> arguments = arguments_from<std::decay_t<Args>...>(input);
  const auto call = [&](auto&... args) -> R { return handler(state, std::move(args)...); };
  return std::apply(call, arguments);
}

}  // namespace detail

template <class T>
Future<T> Workflow::spawn(Async<T> coroutine) const {
  Future<T> future(scheduler());
  begin_spawned(detail::run_into(std::move(coroutine), future), false, {});
  return future;
}

template <class... Args>
Future<void> Workflow::signal_external(WorkflowExecution target, std::string signal,
                                       const Args&... args) const {
  return begin_signal(std::move(target), std::move(signal), to_payloads(args...), false);
}

template <class Handler>
void Workflow::on_signal(const std::string& name, Handler handler) const {
  // Kept outside the coroutines that it makes: a lambda's captures are not in their frames.
  const auto kept = std::make_shared<const Handler>(std::move(handler));
  const Workflow self = *this;
  add_signal_handler(name, [self, kept, name](const std::optional<Payloads>& input) {
    using Result = decltype(detail::call_with(*kept, input, &Handler::operator()));
    if constexpr (std::is_void_v<Result>) {
      detail::call_with(*kept, input, &Handler::operator());
    } else {
      static_assert(std::is_same_v<Result, Async<void>>,
                    "a signal handler returns nothing, or Async<void>");
      self.begin_spawned(detail::call_with(*kept, input, &Handler::operator()), true, name);
    }
  });
}

template <class Handler>
void Workflow::on_query(std::string name, Handler handler) const {
  const auto answer = [handler = std::move(handler)](const std::optional<Payloads>& input) {
    return to_payloads(detail::call_with(handler, input, &Handler::operator()));
  };
  add_query_handler(std::move(name), answer, false);
}

template <class State, class Handler>
void Workflow::on_query(std::string name, std::shared_ptr<State> state, Handler handler) const {
  const auto answer = [state = std::move(state),
                       handler = std::move(handler)](const std::optional<Payloads>& input) {
    return to_payloads(detail::call_with_state(*state, handler, input, &Handler::operator()));
  };
  add_query_handler(std::move(name), answer, true);
}

template <class Function>
auto Workflow::side_effect(Function function) const -> decltype(function()) {
  using T = decltype(function());
  return from_payloads<T>(marked([&function] { return to_payloads(function()); }));
}

template <class... Args>
void Workflow::continue_as_new(const Args&... args) const {
  throw ContinueAsNew{to_payloads(args...)};
}

template <class T>
void Workflow::upsert_memo(const std::string& key, const T& value) const {
  upsert(key, to_payload(value));
}

template <class T>
void Workflow::upsert_search_attributes(const std::string& key, const T& value) const {
  upsert_search_attribute(key, to_payload(value));
}

template <class R>
Future<std::optional<Time>> Child<R>::renew() const {
  return workflow_.begin_renewal(run_.execution);
}

template <class R>
Future<R> Child<R>::result() const {
  Future<R> future(workflow_.scheduler());
  operation_->when_closed(run_.execution.run_id, Workflow::settle(future));
  return future;
}

template <class R>
template <class... Args>
Future<void> Child<R>::signal(std::string name, const Args&... args) const {
  return workflow_.begin_signal(run_.execution, std::move(name), to_payloads(args...), true);
}

}  // namespace permit::worker
