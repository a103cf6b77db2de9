#include "tests/programs/interpreter.h"

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace permit::programs {

using namespace worker;
using namespace std::chrono_literals;

namespace {

constexpr ActivityName<std::int64_t(int, std::int64_t)> work{"work"};

// The variables of one run. Whatever a program learns goes into `sum`, in the order in which it
// learns it, and `sum` goes into its commands.
struct State {
  Node root;
  std::int64_t sum = 0;
  int notes = 0;
  int timers_named = 0;

  void learn(std::int64_t value) { sum = (sum * 31 + value) % 1'000'003; }
  void learn(std::string_view text) {
    for (const char letter : text) learn(letter);
  }
};
using Shared = std::shared_ptr<State>;

Async<std::int64_t> run(Workflow workflow, Shared state, const Node* node);

// --- With others inside ---

Async<std::int64_t> run_sequence(Workflow workflow, Shared state, const Node* node) {
  std::int64_t sum = 0;
  for (const Node& inner : node->inner) {
    Async<std::int64_t> step = run(workflow, state, &inner);
    sum += co_await step;
  }
  co_return sum;
}

std::vector<Future<std::int64_t>> spawn_all(const Workflow& workflow, const Shared& state,
                                            const Node& node) {
  std::vector<Future<std::int64_t>> futures;
  for (const Node& inner : node.inner) {
    futures.push_back(workflow.spawn(run(workflow, state, &inner)));
  }
  return futures;
}

Async<std::int64_t> run_parallel(Workflow workflow, Shared state, const Node* node) {
  Async<std::vector<std::int64_t>> every = all(spawn_all(workflow, state, *node));
  const std::vector<std::int64_t> results = co_await every;
  for (const std::int64_t result : results) state->learn(result);
  co_return state->sum;
}

Async<std::int64_t> run_race(Workflow workflow, Shared state, const Node* node) {
  const Workflow part = workflow.cancelable();
  const std::vector<Future<std::int64_t>> futures = spawn_all(part, state, *node);
  Async<std::size_t> race = any(futures);
  const std::size_t first = co_await race;
  if (node->variant % 2 == 0) part.cancel();
  state->learn(static_cast<std::int64_t>(first));
  const std::int64_t result = co_await futures[first];
  co_return result;
}

Async<std::int64_t> run_cancel_part(Workflow workflow, Shared state, const Node* node) {
  const Workflow part = workflow.cancelable();
  const Future<std::int64_t> inside = part.spawn(run(part, state, &node->inner[0]));
  Async<std::int64_t> until = run(workflow, state, &node->inner[1]);
  co_await until;
  part.cancel();
  const std::int64_t result = co_await inside;
  co_return result;
}

Async<std::int64_t> run_shielded(Workflow workflow, Shared state, const Node* node) {
  return run(workflow.shielded(), std::move(state), &node->inner[0]);
}

// --- Alone ---

// Cancels what has begun: at once, a little later, or not at all.
template <class T>
Async<void> cancel_maybe(Workflow workflow, Future<T> future, const Node* node) {
  if (node->variant % 5 == 0) future.cancel();
  if (node->variant % 5 == 1) {
    co_await workflow.sleep(node->duration / 2);
    future.cancel();
  }
}

Async<std::int64_t> run_activity(Workflow workflow, Shared state, const Node* node) {
  auto options = ActivityOptions().start_to_close(5s).retry_interval(1s, 8s);
  options.retry(1 + node->number % 4);
  if (node->number % 2 == 0) options.on_cancel(OnCancel::wait);
  if (node->number % 3 == 0) options.heartbeat(3s);
  if (node->number % 7 == 0) options.schedule_to_close(10s);
  const Future<std::int64_t> future =
      workflow.execute_activity(work, options, node->number, state->sum);
  Async<void> cancel = cancel_maybe(workflow, future, node);
  co_await cancel;
  const std::int64_t result = co_await future;
  co_return result;
}

Async<std::int64_t> run_timer(Workflow workflow, Shared state, const Node* node) {
  const Future<void> future = workflow.sleep(node->duration);
  Async<void> cancel = cancel_maybe(workflow, future, node);
  co_await cancel;
  co_await future;
  co_return state->sum;
}

Async<std::int64_t> run_wait(Workflow workflow, Shared state, const Node* node) {
  const int wanted = state->notes + 1 + node->number % 2;
  const auto is_noted = [state, wanted] { return state->notes >= wanted; };
  bool in_time = true;
  if (node->variant % 8 == 0) {
    co_await workflow.wait_until(is_noted);
  } else if (node->variant % 8 == 1) {
    const std::string id = "named " + std::to_string(++state->timers_named);
    const Time deadline = workflow.now() + node->duration;
    in_time = co_await workflow.wait_until(is_noted, deadline, id);
  } else {
    in_time = co_await workflow.wait_until(is_noted, node->duration);
  }
  co_return in_time ? 1 : 2;
}

ChildOptions child_options(const Node& node) {
  ChildOptions options;
  if (node.number % 5 == 0) options.id("kid." + std::to_string(node.number % 3));
  if (node.number % 7 == 0) options.run_timeout(15s);
  if (node.number % 3 == 1) options.parent_close_policy(ParentClosePolicy::abandon);
  if (node.number % 3 == 2) options.parent_close_policy(ParentClosePolicy::request_cancel);
  return options;
}

Async<std::int64_t> run_child(Workflow workflow, Shared state, const Node* node) {
  const ChildOptions options = child_options(*node);
  const Input input = node->child;
  const int variant = node->variant % 8;
  if (variant == 0) {
    const std::int64_t result = co_await workflow.execute_child(program, options, input);
    co_return result;
  }
  const Future<Child<std::int64_t>> started = workflow.start_child(program, options, input);
  if (variant == 1) co_return 1;  // it is left to itself
  if (variant == 2) started.cancel();
  const Child<std::int64_t> child = co_await started;
  state->learn(child.id().value);
  if (variant == 3) {
    const Future<void> sent = child.signal("note", 7);
    co_await sent;
  }
  if (variant == 4) {
    co_await workflow.sleep(node->duration / 4);
    child.cancel();
  }
  if (variant == 5) started.cancel();
  if (variant == 6) co_return 2;
  const std::int64_t result = co_await child.result();
  co_return result;
}

WorkflowExecution target_of(const Workflow& workflow, int number) {
  if (number % 6 == 0) return workflow.info().execution;
  if (number % 6 == 1) return {WorkflowId("nobody"), {}};
  if (number % 6 == 2) return {WorkflowId("kid." + std::to_string(number % 3)), {}};
  return {WorkflowId("program." + std::to_string(number % 4)), {}};
}

Async<std::int64_t> run_signal_other(Workflow workflow, Shared state, const Node* node) {
  const std::string name = node->variant % 2 == 0 ? "note" : "deed";
  const int text = static_cast<int>(state->sum);
  const Future<void> sent = workflow.signal_external(target_of(workflow, node->number), name, text);
  co_await sent;
  co_return 1;
}

// Not of what may be a child that the same task starts: the server refuses that.
Async<std::int64_t> run_cancel_other(Workflow workflow, Shared, const Node* node) {
  const int number = node->number % 6 == 2 ? 0 : node->number;
  const Future<void> sent = workflow.cancel_external(target_of(workflow, number), "a node");
  co_await sent;
  co_return 1;
}

Async<std::int64_t> run_side_effect(Workflow workflow, Shared, const Node*) {
  co_return workflow.side_effect([] { return ++outside().side_effects; });
}

Async<std::int64_t> run_look(Workflow workflow, Shared state, const Node* node) {
  const std::string stream = node->number % 2 == 0 ? "" : "other";
  state->learn(static_cast<std::int64_t>(workflow.random(stream).below(1'000)));
  state->learn(workflow.uuid());
  state->learn(workflow.now().time_since_epoch().count() % 1'000'003);
  state->learn(workflow.info().history_events);
  state->learn(workflow.info().history_bytes);
  state->learn(workflow.is_canceled() ? 1 : 0);
  workflow.upsert_memo("seen", state->sum);
  co_return state->sum;
}

// Before the change a timer, after it an activity.
Async<std::int64_t> run_patch(Workflow workflow, Shared state, const Node* node) {
  bool changed = false;
  if (outside().new_code) changed = workflow.patched("patch " + std::to_string(node->number % 3));
  if (!changed) {
    co_await workflow.sleep(1s);
    co_return 1;
  }
  const auto options = ActivityOptions().start_to_close(5s);
  const std::int64_t result = co_await workflow.execute_activity(work, options, 1, state->sum);
  co_return result;
}

Async<std::int64_t> run_memo(Workflow workflow, Shared state, const Node* node) {
  workflow.upsert_memo("sum " + std::to_string(node->number % 3), state->sum);
  co_return 1;
}

Async<std::int64_t> begin(Workflow workflow, Shared state, const Node* node) {
  switch (node->kind) {
    case Kind::sequence:
      return run_sequence(workflow, state, node);
    case Kind::parallel:
      return run_parallel(workflow, state, node);
    case Kind::race:
      return run_race(workflow, state, node);
    case Kind::cancel_part:
      return run_cancel_part(workflow, state, node);
    case Kind::shielded:
      return run_shielded(workflow, state, node);
    case Kind::activity:
      return run_activity(workflow, state, node);
    case Kind::timer:
      return run_timer(workflow, state, node);
    case Kind::wait:
      return run_wait(workflow, state, node);
    case Kind::child:
      return run_child(workflow, state, node);
    case Kind::signal_other:
      return run_signal_other(workflow, state, node);
    case Kind::cancel_other:
      return run_cancel_other(workflow, state, node);
    case Kind::side_effect:
      return run_side_effect(workflow, state, node);
    case Kind::look:
      return run_look(workflow, state, node);
    case Kind::patch:
      return run_patch(workflow, state, node);
    case Kind::memo:
      return run_memo(workflow, state, node);
  }
  throw Misuse("a node of no kind");
}

// Cleans up after a cancellation, now and then, and goes on after a failure if the node says so.
Async<std::int64_t> run(Workflow workflow, Shared state, const Node* node) {
  std::int64_t value = 0;
  std::exception_ptr thrown;
  try {
    Async<std::int64_t> body = begin(workflow, state, node);
    value = co_await body;
  } catch (const Failed& failed) {
    thrown = std::current_exception();
    state->learn(failed.message());
  }
  if (thrown && workflow.is_canceled() && node->number % 4 == 0) {
    const Workflow shielded = workflow.shielded();
    const auto options = ActivityOptions().start_to_close(5s);
    value = co_await shielded.execute_activity(work, options, 1, state->sum);
  }
  if (thrown && (workflow.is_canceled() || !node->tolerant)) std::rethrow_exception(thrown);
  state->learn(value);
  co_return value;
}

Async<void> do_deed(Workflow workflow, Shared state, int number) {
  state->learn(number);
  const auto options = ActivityOptions().start_to_close(5s).retry(2);
  try {
    const std::int64_t result =
        co_await workflow.execute_activity(work, options, number, state->sum);
    state->learn(result);
    ++state->notes;
  } catch (const Failed& failed) {
    state->learn(failed.message());
  }
}

Async<std::int64_t> run_program(Workflow workflow, Input input) {
  const auto state = std::make_shared<State>();
  state->root = draw_program(input);
  workflow.on_signal("note", [state](int number) {
    ++state->notes;
    state->learn(number);
  });
  workflow.on_signal("deed",
                     [workflow, state](int number) { return do_deed(workflow, state, number); });
  workflow.on_query("sum", [state] { return state->sum; });
  std::exception_ptr thrown;
  std::int64_t result = 0;
  try {
    Async<std::int64_t> body = run(workflow, state, &state->root);
    result = co_await body;
  } catch (const Failed&) {
    thrown = std::current_exception();
  }
  const Workflow shielded = workflow.shielded();
  const auto is_quiet = [workflow] { return workflow.handlers_running() == 0; };
  co_await shielded.wait_until(is_quiet);
  if (thrown) std::rethrow_exception(thrown);
  if (input.rounds > 0) {
    workflow.continue_as_new(
        Input{input.seed + static_cast<std::uint64_t>(result), input.size / 2, input.rounds - 1});
  }
  co_return result;
}

// --- The activity ---

std::int64_t do_work(ActivityContext& context, int number, std::int64_t value) {
  const int attempt = context.info().attempt;
  switch (number % 8) {
    case 2:
      if (attempt < 3) throw ApplicationFailed("not yet").type("NotYet");
      break;
    case 3:
      throw ApplicationFailed("never").type("Never");
    case 4:
      throw ApplicationFailed("no use").type("NoUse").non_retryable();
    case 5:
    case 6:
      context.heartbeat(value);
      break;
    case 7:  // and nobody completes it: the attempt times out
      context.heartbeat(value);
      if (attempt < 3) context.complete_later();
      break;
    default:
      break;
  }
  return value + attempt;
}

}  // namespace

Outside& outside() {
  static Outside outside;
  return outside;
}

Registry make_registry() {
  Registry registry;
  registry.workflow(program, run_program).activity(work, do_work);
  return registry;
}

}  // namespace permit::programs
