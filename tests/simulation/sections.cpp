#include "tests/simulation/sections.h"

#include <nlohmann/json.hpp>

#include "orchestrator/protocol/json.h"
#include "permits/semaphore.h"
#include "permits/slot_workflow.h"
#include "tests/support/prefixes.h"
#include "worker/replayer.h"

namespace permit::simulation {

using namespace std::chrono_literals;
using permits::Held;
using permits::Permit;
using permits::PermitOptions;
using permits::Semaphore;
using worker::Async;
using worker::Future;
using worker::Workflow;

namespace {

struct SectionInput {
  std::uint64_t seed = 0;
  std::vector<std::string> pools;
  std::vector<int> capacities;  // as it believes; 0: as registered
  std::int64_t lease_min_us = 0;
  std::int64_t lease_max_us = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(SectionInput, seed, pools, capacities, lease_min_us,
                                   lease_max_us)

constexpr worker::WorkflowName<std::string(SectionInput)> section{"Section"};
constexpr worker::ActivityName<void(int)> work{"work"};

// The world outside of all runs: what is taken from it differs each time.
int& outside() {
  static int number = 0;
  return number;
}

// One run's variables. Its choices come from its input, so that a replay makes the same.
struct State {
  explicit State(SectionInput given) : input(std::move(given)), chance(input.seed) {}
  SectionInput input;
  Chance chance;
  int notes = 0;
  int done = 0;

  PermitOptions options() {
    PermitOptions options;
    const Duration lease =
        chance.duration(Duration(input.lease_min_us), Duration(input.lease_max_us));
    options.lease(lease);
    if (chance.percent(50)) options.fair();
    if (chance.percent(40)) options.timeout(chance.duration(0us, lease * 2));
    if (chance.percent(20)) options.max_hold(lease * 2);
    if (chance.percent(20)) options.priority(chance.between(1, 5));
    if (chance.percent(15)) options.any().plain();
    return options;
  }
  Semaphore semaphore(const Workflow& workflow) {
    const std::size_t which = chance.below(input.pools.size());
    if (input.capacities[which] == 0) return Semaphore(workflow, input.pools[which]);
    return Semaphore(workflow, input.pools[which], input.capacities[which]);
  }
  Duration pause() { return chance.duration(0us, Duration(input.lease_max_us) / 2); }
};
using Shared = std::shared_ptr<State>;

// --- Under a permit ---

Async<void> work_inside(Workflow inside, Held permit, Shared state) {
  const int what = state->chance.between(0, 5);
  if (what == 0) co_return;
  if (what == 1) throw worker::ApplicationFailed("in the section");
  if (what == 2) {
    auto options = worker::ActivityOptions().start_to_close(10s).heartbeat(5s).task_queue("work");
    options.retry(state->chance.between(1, 3));
    const auto covered = permit.cover(options);
    const Future<void> working = inside.execute_activity(work, covered, state->done);
    co_await working;
  } else {
    co_await inside.sleep(state->pause());
  }
  if (what == 3) {
    Async<std::optional<Time>> renewing = permit.renew();
    co_await renewing;
  }
  ++state->done;
}

Async<void> run_section(Workflow workflow, Shared state) {
  const Semaphore semaphore = state->semaphore(workflow);
  const PermitOptions options = state->options();
  // with_permit keeps the closure.
  // NOLINTNEXTLINE(cppcoreguidelines-avoid-capturing-lambda-coroutines)
  const auto body = [state](Workflow inside, Held permit) {
    return work_inside(std::move(inside), std::move(permit), state);
  };
  Async<void> running = semaphore.with_permit(options, body);
  co_await running;
}

// --- Otherwise ---

Async<void> hold_by_hand(Workflow workflow, Shared state) {
  const Semaphore semaphore = state->semaphore(workflow);
  const PermitOptions options = state->options();
  Permit permit = co_await semaphore.acquire(options);
  co_await workflow.sleep(state->pause());
  if (!state->chance.percent(60)) co_return;  // it goes with its scope
  Async<std::optional<Outcome>> releasing = permit.release();
  co_await releasing;
}

Async<void> hold_several(Workflow workflow, Shared state) {
  const Semaphore semaphore = state->semaphore(workflow);
  PermitOptions options = state->options();
  if (options.is_plain()) co_return;
  const std::vector<Permit> permits = co_await semaphore.acquire_n(2, options);
  co_await workflow.sleep(state->pause());
}

Async<void> try_once(Workflow workflow, Shared state) {
  const Semaphore semaphore = state->semaphore(workflow);
  const PermitOptions options = state->options();
  const std::optional<Permit> permit = co_await semaphore.try_acquire(options);
  if (!permit) co_return;
  co_await workflow.sleep(state->pause());
}

Async<void> cancel_soon(Workflow part, Workflow workflow, Duration pause) {
  co_await workflow.sleep(pause);
  part.cancel();
}

// Whatever comes of it, nothing may be held at its end.
Async<void> give_up(Workflow workflow, Shared state) {
  const Workflow part = workflow.cancelable();
  const Duration pause = state->chance.percent(50) ? Duration(0) : state->pause() / 4;
  const Future<void> canceling = workflow.spawn(cancel_soon(part, workflow, pause));
  std::exception_ptr thrown;
  try {
    Async<void> running = run_section(part, state);
    co_await running;
  } catch (const worker::Failed&) {
    thrown = std::current_exception();
  }
  co_await canceling;
  co_await workflow.sleep(state->pause());
}

Async<void> look(Workflow workflow, Shared state) {
  const int drawn = workflow.side_effect([] { return ++outside(); });
  workflow.upsert_memo("drawn", drawn);
  workflow.upsert_memo("now", workflow.now().time_since_epoch().count());
  workflow.upsert_memo("random", workflow.random().word());
  const Future<void> first = workflow.sleep(1ms + state->pause() / 100);
  const Future<void> second = workflow.sleep(2ms + state->pause() / 100);
  co_await first;
  co_await second;
}

Async<void> one_act(Workflow workflow, Shared state) {
  switch (state->chance.between(0, 9)) {
    case 0:
      return hold_by_hand(workflow, state);
    case 1:
      return hold_several(workflow, state);
    case 2:
      return try_once(workflow, state);
    case 3:
    case 4:
      return give_up(workflow, state);
    case 5:
      return look(workflow, state);
    default:
      return run_section(workflow, state);
  }
}

Async<std::string> run_sections(Workflow workflow, SectionInput input) {
  const auto state = std::make_shared<State>(std::move(input));
  co_await workflow.sleep(1ms + state->pause() / 10);
  // Notes that came before are not lost.
  workflow.on_signal("note", [state] { ++state->notes; });
  const int acts = state->chance.between(1, 4);
  for (int i = 0; i < acts; ++i) {
    try {
      Async<void> act = one_act(workflow, state);
      co_await act;
    } catch (const worker::Failed&) {
      if (workflow.is_canceled() || state->chance.percent(30)) throw;
    }
  }
  co_await workflow.sleep(1ms);
  co_return std::to_string(state->notes);
}

const worker::Registry& registry() {
  static const worker::Registry all = [] {
    worker::Registry made;
    made.workflow(section, run_sections);
    permits::register_permit_slot(made);
    return made;
  }();
  return all;
}

}  // namespace

std::optional<Payloads> draw_section(World& world) {
  SectionInput input;
  input.seed = world.chance.word() >> 1U;
  for (const PoolPlan& pool : world.plan.pools) {
    input.pools.push_back(pool.name.value);
    const bool names = !pool.configured || world.chance.percent(50);
    input.capacities.push_back(names ? pool.capacity : 0);
  }
  input.lease_min_us = world.plan.lease_min.count();
  input.lease_max_us = world.plan.lease_max.count();
  return worker::to_payloads(input);
}

void begin_sections() { outside() = 0; }

// --- Running ---

Runner::Runner(World& world, std::string identity) : world_(world), identity_(std::move(identity)) {
  begin();
}

void Runner::begin() {
  worker::TaskRunner::Options options;
  options.identity = identity_;
  options.runs_cached_max = world_.chance.pick(std::vector<std::size_t>{0, 1, 3, 1'000});
  if (options.runs_cached_max > 0) options.sticky_queue = "sticky " + identity_;
  sticky_queue_ = options.sticky_queue;
  options.log = [this](worker::LogLevel level, const worker::WorkflowInfo&,
                       const std::string& text) {
    if (level == worker::LogLevel::error) failures_.push_back(text);
  };
  options.fetch_history = [this](const WorkflowExecution& run) { return history(run); };
  runner_ = std::make_unique<worker::TaskRunner>(registry(), std::move(options));
}

void Runner::die() {
  sometimes(runner_->runs_cached() > 0, "a worker of the SDK dies with runs in memory");
  begin();
}

std::vector<Event> Runner::history(const WorkflowExecution& execution) const {
  sometimes("a worker fetches a history that it has lost");
  const RunTrace* run = world_.ledger.find(execution.run_id);
  require(run != nullptr, "a worker has a task of a run that is not there");
  const auto count = std::min(run->events.size(), static_cast<std::size_t>(started_event_id_));
  return {run->events.begin(), run->events.begin() + static_cast<std::ptrdiff_t>(count)};
}

worker::WorkflowTaskAnswer Runner::run(const PollWorkflowTaskQueueResponse& task) {
  started_event_id_ = task.started_event_id;
  const std::int64_t hits = runner_->cache_hits();
  const std::int64_t misses = runner_->cache_misses();
  worker::WorkflowTaskAnswer answer = runner_->run(task);
  sometimes(runner_->cache_hits() > hits, "a run of the SDK goes on where it is in memory");
  sometimes(runner_->cache_misses() > misses, "a run of the SDK is replayed from its history");
  for (const std::string& failure : std::exchange(failures_, {})) {
    throw Violation("a task of the SDK fails: " + failure);
  }
  return answer;
}

// --- Checks ---

std::string text_of(const std::vector<Command>& commands) {
  std::string text;
  for (const Command& command : commands) {
    write_json(command, text);
    text += '\n';
  }
  return text;
}

namespace {

void check_notes(const RunTrace& run) {
  const auto* completed = run.events.back().get_if<event::WorkflowExecutionCompleted>();
  if (completed == nullptr || !completed->result) return;
  int notes = 0;
  int before_timer = 0;  // the last one: it was waited for at the end
  for (const Event& event : run.events) {
    const auto* signaled = event.get_if<event::WorkflowExecutionSignaled>();
    if (signaled != nullptr && signaled->signal_name == "note") ++notes;
    if (event.get_if<event::TimerFired>() != nullptr) before_timer = notes;
  }
  sometimes(before_timer > 0, "a signal before its handler is handed over");
  const auto counted = worker::from_payloads<std::string>(completed->result);
  require(counted == std::to_string(before_timer), "run " + run.workflow_id.value + " has heard " +
                                                       counted + " of its " +
                                                       std::to_string(before_timer) + " notes");
}

void check_replay(World& world, const RunTrace& run,
                  const std::map<std::int64_t, std::string>& commands) {
  const auto tasks = worker::replay(registry(), run.execution(), run.events);
  std::size_t task = 0;
  for (const Event& event : run.events) {
    const auto* completed = event.get_if<event::WorkflowTaskCompleted>();
    if (completed == nullptr) continue;
    const auto asked = commands.find(completed->started_event_id);
    const std::size_t index = task++;
    if (asked == commands.end() || index >= tasks.size()) continue;
    const std::string again = text_of(tasks[index]);
    ++world.totals.tasks_compared;
    require(again == asked->second, [&] {
      return "run " + run.workflow_id.value + ", task " + std::to_string(index + 1) +
             ": its commands were\n" + asked->second + "and on replay they are\n" + again;
    });
  }
}

}  // namespace

void check_sections(World& world, const Commands& commands) {
  constexpr int prefixes_of = 2;  // runs of a seed
  constexpr std::size_t events_max = 150;
  int left = prefixes_of;
  for (const auto& [number, run] : world.ledger.runs()) {
    if (run.type != "Section") continue;
    ++world.totals.sections;
    check_notes(run);
    const auto asked = commands.find(run.run_id);
    if (asked == commands.end()) continue;
    check_replay(world, run, asked->second);
    const bool whole = run.events.back().get_if<event::WorkflowTaskStarted>() == nullptr;
    if (left == 0 || run.events.size() > events_max || !whole) continue;
    --left;
    test::ReplayTotals replayed;
    test::check_prefixes(registry(), run.execution(), run.events, test::Ends::replayed, replayed);
    world.totals.prefixes += replayed.prefixes;
    world.totals.tasks_compared += replayed.tasks_compared;
  }
}

}  // namespace permit::simulation
