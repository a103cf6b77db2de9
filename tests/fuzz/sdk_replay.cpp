// Histories into the worker: real ones of random programs and of holders of permits, bent event by
// event, or any text. The task fails or goes on; the worker neither crashes nor hangs nor leaks.
//
//   byte 0: which history, or text ('{', '['); byte 1: how it is run; then edits
#include <nlohmann/json.hpp>
#include <optional>

#include "orchestrator/protocol/ensure.h"
#include "orchestrator/protocol/error.h"
#include "orchestrator/protocol/json.h"
#include "permits/semaphore.h"
#include "permits/slot_workflow.h"
#include "tests/fuzz/choices.h"
#include "tests/fuzz/targets.h"
#include "tests/programs/interpreter.h"
#include "worker/replayer.h"
#include "worker/task_runner.h"
#include "worker/test_environment.h"

namespace permit::fuzz {

namespace {

using namespace worker;
using namespace std::chrono_literals;
using Events = std::vector<Event>;

constexpr WorkflowName<std::string(int)> hold{"hold"};
constexpr std::size_t events_max = 300;

Async<std::string> hold_permits(Workflow workflow, int count) {
  const permits::Semaphore pool(workflow, "pool", 3);
  auto options = permits::PermitOptions().lease(10min).timeout(1h);
  options = count % 2 == 0 ? options.fair() : options.any();
  std::string slots;
  for (int i = 0; i < count % 5; ++i) {
    permits::Permit permit = co_await pool.acquire(options);
    slots += permit.slot() + " ";
    co_await workflow.sleep(20s);
    co_await permit.renew();  // and gives it back where its scope ends
  }
  co_return slots;
}

const Registry& registry() {
  static const Registry registry = [] {
    Registry all = programs::make_registry();
    all.workflow(hold, hold_permits);
    permits::register_permit_slot(all);
    return all;
  }();
  return registry;
}

// Of runs that went well.
const std::vector<Events>& real_histories() {
  static const std::vector<Events> histories = [] {
    TestEnvironment::Options options;
    options.replay_at_end = false;
    TestEnvironment environment(registry(), options);
    std::vector<RunHandle> runs;
    for (int i = 0; i < 12; ++i) {
      const StartOptions start("program." + std::to_string(i));
      const programs::Input input{static_cast<std::uint64_t>(i) * 77 + 5, 4 + i, i % 2};
      runs.push_back(environment.client().start(programs::program, start, input));
    }
    for (int i = 1; i < 5; ++i) {
      runs.push_back(
          environment.client().start(hold, StartOptions("hold." + std::to_string(i)), i));
    }
    runs[3].signal("deed", 7);
    runs[4].cancel("fuzz");
    environment.advance(30min);
    std::vector<Events> all;
    for (const RunHandle& run : runs) {
      Events history = run.history();
      if (history.size() > events_max) history.resize(events_max);
      all.push_back(std::move(history));
    }
    return all;
  }();
  return histories;
}

// One byte of the event's text becomes another, if that is an event still.
void bend(Event& event, Choices& choices) {
  std::string text = to_json(event);
  const std::size_t at = choices.byte() * 256U + choices.byte();
  text[at % text.size()] = static_cast<char>(choices.byte());
  try {
    event = read_json<Event>(text);
  } catch (const Error&) {
    return;
  }
}

void edit(Events& events, Choices& choices) {
  if (events.empty()) return;
  const std::size_t what = choices.below(7);
  const std::size_t at = choices.byte() % events.size();
  const auto here = events.begin() + static_cast<std::ptrdiff_t>(at);
  if (what == 0) {
    events.erase(here);
  } else if (what == 1 && events.size() < events_max) {
    events.insert(here, Event(*here));
  } else if (what == 2) {
    std::swap(*here, events[choices.byte() % events.size()]);
  } else if (what == 3) {
    const Events& other = real_histories()[choices.byte() % real_histories().size()];
    *here = other[choices.byte() % other.size()];
  } else if (what == 4) {
    events.resize(at + 1);
  } else {
    bend(*here, choices);
  }
}

// Programs are as large as their input says, and that is theirs to answer for.
bool is_small(const Events& events) {
  const auto* started =
      events.empty() ? nullptr : events.front().get_if<event::WorkflowExecutionStarted>();
  if (started == nullptr || !started->input || started->input->payloads.empty()) return true;
  const auto input =
      nlohmann::json::parse(started->input->payloads.front().data.value, nullptr, false);
  return !input.is_object() || !input.contains("size") || !input["size"].is_number() ||
         (input["size"] >= -100 && input["size"] <= 40);
}

// Only bugs of ours are left to be thrown.
template <class Use>
void survive(const Use& use) {
  try {
    use();
  } catch (const InvariantViolated&) {
    throw;
  } catch (const std::exception&) {
    // It fails the task, and says why.
  }
}

std::string text_of(Events::const_iterator begin, Events::const_iterator end) {
  std::string text;
  for (auto event = begin; event != end; ++event) {
    if (!text.empty()) text += ',';
    write_json(*event, text);
  }
  return text;
}

// As a worker gets it: a task with the first part, then one with the rest.
void run_in_two_tasks(const Events& events, std::size_t cut) {
  TaskRunner::Options options;
  options.sticky_queue = "sticky";
  options.runs_cached_max = 1;
  options.log = [](LogLevel, const WorkflowInfo&, const std::string&) {};
  options.fetch_history = [&](const WorkflowExecution&) { return events; };
  TaskRunner runner(registry(), options);
  const auto middle = events.begin() + static_cast<std::ptrdiff_t>(cut % (events.size() + 1));
  PollWorkflowTaskQueueResponse task;
  task.task_token.value = "token";
  task.workflow_execution = WorkflowExecution{WorkflowId("id"), RunId("run")};
  task.workflow_type = WorkflowType{"program"};
  task.attempt = 1;
  task.history = RawHistory{RawJson{"[" + text_of(events.begin(), middle) + "]"}};
  survive([&] { runner.run(task); });
  runner.accepted(RunId("run"), task.task_token);
  task.history->events.text = "[" + text_of(middle, events.end()) + "]";
  survive([&] { runner.run(task); });
}

void run(const Events& events, std::size_t how) {
  if (events.empty() || !is_small(events)) return;
  const WorkflowExecution execution{WorkflowId("id"), RunId("run")};
  survive([&] { replay(registry(), execution, events); });
  if (how % 2 == 1) run_in_two_tasks(events, how / 2);
}

}  // namespace

void sdk_replay(std::string_view input) {
  Choices choices(input);
  if (input.starts_with('{') || input.starts_with('[')) {
    try {
      const Events events = read_history(input);
      if (events.size() <= events_max) run(events, input.size());
    } catch (const Error&) {
      return;
    }
    return;
  }
  const std::size_t which = choices.byte();
  Events events = real_histories()[which % real_histories().size()];
  const std::size_t how = choices.byte();
  for (int edits = 0; edits < 12 && !choices.at_end(); ++edits) edit(events, choices);
  run(events, how);
}

}  // namespace permit::fuzz
