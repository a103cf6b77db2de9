// What a worker can run: name → function, filled by explicit calls from main.
//
//   Registry registry;
//   registry.workflow(train, train_workflow).activity(train_epoch, run_epoch);
//
// A workflow is a coroutine `Async<R> f(Workflow, Args...)`; an activity is any function
// `R f(ActivityContext&, Args...)`. Arguments by value.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "worker/activity.h"
#include "worker/async.h"
#include "worker/convert.h"
#include "worker/names.h"
#include "worker/workflow.h"

namespace permit::worker {

using WorkflowFunction =
    std::function<Async<std::optional<Payloads>>(Workflow, std::optional<Payloads>)>;
using ActivityFunction =
    std::function<std::optional<Payloads>(ActivityContext&, const std::optional<Payloads>&)>;

class Registry {
 public:
  template <class R, class... Args>
  Registry& workflow(WorkflowName<R(Args...)> name, Async<R> (*function)(Workflow, Args...)) {
    add(workflows_, name.name, [function](Workflow workflow, std::optional<Payloads> input) {
      return run_workflow<R, Args...>(function, std::move(workflow), std::move(input));
    });
    return *this;
  }
  template <class R, class... Args, class Function>
  Registry& activity(ActivityName<R(Args...)> name, Function function) {
    add(activities_, name.name,
        [function = std::move(function)](ActivityContext& context,
                                         const std::optional<Payloads>& input) {
          return run_activity<R, Args...>(function, context, input);
        });
    return *this;
  }

  // Null if there is none.
  const WorkflowFunction* find_workflow(std::string_view name) const;
  const ActivityFunction* find_activity(std::string_view name) const;
  bool has_workflows() const { return !workflows_.empty(); }
  bool has_activities() const { return !activities_.empty(); }
  // "a, b, c", for messages.
  std::string workflow_names() const;
  std::string activity_names() const;

 private:
  template <class Map, class F>
  static void add(Map& map, std::string_view name, F function) {
    if (!map.emplace(std::string(name), std::move(function)).second) {
      throw Misuse("\"" + std::string(name) + "\" is registered twice");
    }
  }

  template <class R, class... Args>
  static Async<std::optional<Payloads>> run_workflow(Async<R> (*function)(Workflow, Args...),
                                                     Workflow workflow,
                                                     std::optional<Payloads> input) {
    std::tuple<Args...> arguments = arguments_from<Args...>(input);
    Async<R> body =
        std::apply([&](Args&... args) { return function(std::move(workflow), std::move(args)...); },
                   arguments);
    if constexpr (std::is_void_v<R>) {
      co_await body;
      co_return std::nullopt;
    } else {
      R result = co_await body;
      co_return to_payloads(result);
    }
  }

  template <class R, class... Args, class Function>
  static std::optional<Payloads> run_activity(const Function& function, ActivityContext& context,
                                              const std::optional<Payloads>& input) {
    std::tuple<Args...> arguments = arguments_from<Args...>(input);
    const auto call = [&](Args&... args) -> R { return function(context, std::move(args)...); };
    if constexpr (std::is_void_v<R>) {
      std::apply(call, arguments);
      return std::nullopt;
    } else {
      return to_payloads(std::apply(call, arguments));
    }
  }

  std::map<std::string, WorkflowFunction, std::less<>> workflows_;
  std::map<std::string, ActivityFunction, std::less<>> activities_;
};

}  // namespace permit::worker
