#include "tests/programs/world.h"

#include <chrono>
#include <deque>
#include <utility>

#include "tests/support/prefixes.h"

namespace permit::programs {

using namespace worker;
using namespace std::chrono_literals;

namespace {

bool is_closed(const std::vector<Event>& events) {
  const Event& last = events.back();
  return last.get_if<event::WorkflowExecutionCompleted>() != nullptr ||
         last.get_if<event::WorkflowExecutionFailed>() != nullptr ||
         last.get_if<event::WorkflowExecutionCanceled>() != nullptr ||
         last.get_if<event::WorkflowExecutionTerminated>() != nullptr ||
         last.get_if<event::WorkflowExecutionTimedOut>() != nullptr ||
         last.get_if<event::WorkflowExecutionContinuedAsNew>() != nullptr;
}

// A run that has closed meanwhile is asked in vain.
template <class Call>
void try_to(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    if (error.code() == ErrorCode::internal) throw;
  }
}

}  // namespace

World::World(std::uint64_t seed, Totals& totals)
    : chance_(seed), totals_(totals), registry_(make_registry()) {
  outside() = Outside();
  outside().new_code = chance_.percent(60);
  TestEnvironment::Options options;
  options.runs_cached_max = chance_.pick(std::vector<std::size_t>{0, 1, 2, 1'000});
  options.seed = chance_.word();
  options.replay_at_end = false;
  options.log = [this](LogLevel, const WorkflowInfo& info, const std::string& text) {
    task_failures_.push_back(info.execution.workflow_id.value + ": " + text);
  };
  environment_.emplace(registry_, options);
}

void World::run() {
  start_programs();
  const int steps = chance_.between(10, 50);
  for (int i = 0; i < steps; ++i) disturb();
  finish();
  check_runs();
}

void World::start_programs() {
  const int programs = chance_.between(2, 6);
  for (int i = 0; i < programs; ++i) {
    Input input;
    input.seed = chance_.word();
    input.size = chance_.percent(20) ? chance_.between(25, 60) : chance_.between(3, 24);
    input.rounds = chance_.percent(25) ? chance_.between(1, 2) : 0;
    const StartOptions options("program." + std::to_string(i));
    programs_.push_back(environment_->client().start(program, options, input));
    ++totals_.programs;
  }
}

void World::disturb() {
  if (chance_.percent(40)) {
    environment_->advance(chance_.duration(0s, 10s));
  } else if (chance_.percent(60)) {
    const int steps = chance_.between(1, 12);
    for (int i = 0; i < steps; ++i) environment_->work();
  }
  const int what = chance_.between(1, 100);
  if (what <= 12) {
    restart_worker();
  } else if (what <= 16) {
    environment_->stop_worker();
    environment_->advance(chance_.duration(0s, 30s));
    restart_worker();
  } else if (what <= 22) {
    restart_server();
  } else if (what <= 24) {
    code_changed_ = code_changed_ || !outside().new_code;
    outside().new_code = true;
    restart_worker();
  } else if (what <= 75) {
    const RunHandle run = chance_.pick(programs_);
    try_to([&] { disturb_program(run); });
  }
}

void World::disturb_program(const RunHandle& run) {
  // Whichever run of that id is open.
  Client& client = environment_->client();
  const RunHandle current = client.run_of<std::int64_t>({run.execution().workflow_id, {}});
  const int what = chance_.between(1, 100);
  if (what <= 40) {
    current.signal("note", chance_.between(0, 99));
  } else if (what <= 70) {
    current.signal("deed", chance_.between(0, 99));
  } else if (what <= 80) {
    current.cancel("disturbed");
  } else if (what <= 82) {
    current.terminate("disturbed");
  } else {
    environment_->advance(11s);  // a queue that a dead worker has just polled would still get it
    current.query<std::int64_t>("sum");
    ++totals_.queries;
  }
}

void World::restart_worker() {
  environment_->restart_worker();
  ++totals_.worker_deaths;
}

void World::restart_server() {
  environment_->restart_server();
  ++totals_.server_restarts;
}

void World::finish() {
  for (int i = 0; i < 12; ++i) {
    environment_->advance(30s);
    if (!visit_runs()) return;
  }
  while (visit_runs()) {
    for (const Seen& seen : runs_) {
      if (is_closed(seen.events)) continue;
      const RunHandle open = environment_->client().run_of<std::int64_t>(seen.execution);
      try_to([&] { open.terminate("the end"); });
    }
    environment_->settle();
  }
}

bool World::visit_runs() {
  runs_.clear();
  std::deque<WorkflowExecution> waiting;
  std::set<RunId> known;
  const auto add = [&](const WorkflowExecution& execution) {
    if (known.insert(execution.run_id).second) waiting.push_back(execution);
  };
  for (const RunHandle& run : programs_) add(run.execution());
  bool any_open = false;
  for (; !waiting.empty(); waiting.pop_front()) {
    const WorkflowExecution execution = waiting.front();
    Client& client = environment_->client();
    std::vector<Event> events = fetch_history(client.transport(), "default", execution);
    any_open = any_open || !is_closed(events);
    for (const Event& event : events) {
      if (const auto* child = event.get_if<event::ChildWorkflowExecutionStarted>()) {
        add(*child->workflow_execution);
      } else if (const auto* next = event.get_if<event::WorkflowExecutionContinuedAsNew>()) {
        add({execution.workflow_id, next->new_execution_run_id});
      }
    }
    runs_.push_back({execution, std::move(events)});
  }
  return any_open;
}

void World::check_runs() {
  simulation::require(task_failures_.empty(),
                      task_failures_.empty() ? "" : "a task failed: " + task_failures_.front());
  environment_->check();
  test::ReplayTotals replayed;
  for (const Seen& run : runs_) {
    count(run.events);
    test::check_prefixes(registry_, run.execution, run.events,
                         code_changed_ ? test::Ends::replayed : test::Ends::live, replayed);
  }
  totals_.prefixes += replayed.prefixes;
  totals_.tasks_compared += replayed.tasks_compared;
}

void World::count(const std::vector<Event>& events) {
  const std::map<std::string_view, std::int64_t*> counters = {
      {"WorkflowExecutionStarted", &totals_.runs},
      {"ActivityTaskScheduled", &totals_.activities},
      {"ActivityTaskFailed", &totals_.activities_failed},
      {"ActivityTaskTimedOut", &totals_.activities_failed},
      {"ActivityTaskCancelRequested", &totals_.activities_canceled},
      {"TimerStarted", &totals_.timers},
      {"TimerCanceled", &totals_.timers_canceled},
      {"ChildWorkflowExecutionStarted", &totals_.children},
      {"StartChildWorkflowExecutionFailed", &totals_.children_refused},
      {"WorkflowExecutionSignaled", &totals_.signals},
      {"ExternalWorkflowExecutionSignaled", &totals_.signals_sent},
      {"WorkflowExecutionCancelRequested", &totals_.cancellations},
      {"WorkflowExecutionContinuedAsNew", &totals_.continued},
      {"WorkflowExecutionCompleted", &totals_.completed},
      {"WorkflowExecutionFailed", &totals_.failed},
      {"WorkflowExecutionCanceled", &totals_.canceled},
      {"WorkflowExecutionTerminated", &totals_.terminated},
      {"WorkflowTaskCompleted", &totals_.tasks},
      {"WorkflowTaskTimedOut", &totals_.tasks_lost},
  };
  for (const Event& event : events) {
    const auto counter = counters.find(event.name());
    if (counter != counters.end()) ++*counter->second;
    const auto* marker = event.get_if<event::MarkerRecorded>();
    if (marker == nullptr) continue;
    ++(marker->marker_name == "SideEffect" ? totals_.side_effects : totals_.patches);
  }
}

}  // namespace permit::programs
