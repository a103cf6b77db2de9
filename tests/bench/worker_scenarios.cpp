// The SDK: a worker in this process against a real server, and the replay by itself.
#include <malloc.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "orchestrator/protocol/json.h"
#include "tests/bench/load.h"
#include "tests/bench/processes.h"
#include "tests/bench/scenarios.h"
#include "worker/http_client.h"
#include "worker/replayer.h"
#include "worker/test_environment.h"
#include "worker/worker.h"

namespace permit::bench {

namespace {

using namespace std::chrono_literals;
using namespace permit::worker;

constexpr ActivityName<int(int)> twice{"twice"};
constexpr WorkflowName<int(int)> chain{"chain"};
constexpr WorkflowName<bool()> idle{"idle"};

Async<int> run_chain(Workflow workflow, int n) {
  const auto options = ActivityOptions().start_to_close(1min);
  int total = 0;
  for (int i = 0; i < n; ++i) {
    const int doubled = co_await workflow.execute_activity(twice, options, i);
    total += doubled;
  }
  co_return total;
}

// What a permit's workflow does: a handler, a timer, a wait.
Async<bool> run_idle(Workflow workflow) {
  bool released = false;
  workflow.on_signal("release", [&released] { released = true; });
  const auto is_released = [&released] { return released; };
  const bool in_time = co_await workflow.wait_until(is_released, 45min);
  co_return in_time;
}

Registry make_registry() {
  Registry registry;
  registry.workflow(chain, run_chain).workflow(idle, run_idle);
  registry.activity(twice, [](ActivityContext&, int n) { return 2 * n; });
  return registry;
}

// 1,000 workflows of 10 activities, one after the other in each, all at the same time.
void run_activities(const Setting& setting, Report& report) {
  constexpr int workflows = 1'000;
  constexpr int activities = 10;
  constexpr int callers = 8;
  ServerProcess server(setting.binary, setting.directory + "/worker.db");
  const std::string address = "127.0.0.1:" + std::to_string(server.port());
  const Registry registry = make_registry();
  HttpTransport transport(address);
  WorkerOptions options("bench");
  options.workflow_pollers = 16;
  options.activity_threads = 16;
  options.deadlock_timeout = 10s;  // the machine is shared with the server
  Worker worker(transport, registry, options);
  worker.start();
  std::atomic<int> wrong{0};
  const Clock::time_point begun = Clock::now();
  std::vector<std::thread> threads;
  for (int caller = 0; caller < callers; ++caller) {
    threads.emplace_back([&, caller] {
      HttpTransport own(address);
      Client client(own);
      std::vector<TypedRunHandle<int>> runs;
      for (int i = caller; i < workflows; i += callers) {
        runs.push_back(client.start(
            chain, StartOptions("chain-" + std::to_string(i)).task_queue("bench"), activities));
      }
      for (const auto& run : runs) wrong += run.result() != activities * (activities - 1) ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  const double seconds = Seconds(Clock::now() - begun).count();
  worker.stop();
  server.stop();
  if (wrong > 0) throw std::runtime_error("a workflow has a wrong result");
  report.add("worker, 1,000 x 10 activities", "activities/s", workflows * activities / seconds);
  report.add("worker, their workflow tasks", "tasks/s", workflows * (activities + 1) / seconds);
}

// From the text of a history, as a worker gets it whose cache has lost the run.
void run_replay(const Setting&, Report& report) {
  constexpr int activities = 2'000;
  constexpr int rounds = 20;
  const Registry registry = make_registry();
  TestEnvironment::Options options;
  options.replay_at_end = false;
  TestEnvironment environment(registry, options);
  const auto run = environment.client().start(chain, StartOptions("long"), activities);
  run.result();
  std::string text;
  std::size_t events = 0;
  for (const Event& event : run.history()) {
    text += (text.empty() ? "[" : ",") + to_json(event);
    ++events;
  }
  text += "]";
  const auto parsed = read_history(text);
  Clock::time_point begun = Clock::now();
  for (int i = 0; i < rounds; ++i) replay(registry, run.execution(), parsed);
  const double code = Seconds(Clock::now() - begun).count();
  begun = Clock::now();
  for (int i = 0; i < rounds; ++i) replay(registry, run.execution(), read_history(text));
  const double whole = Seconds(Clock::now() - begun).count();
  const double replayed = static_cast<double>(events) * rounds;
  report.add("replay, history parsed", "events/s", replayed / code);
  report.add("replay, with its JSON", "events/s", replayed / whole);
}

// In use, not resident: what earlier scenarios have freed is not given back to the system.
double own_bytes() {
  const struct mallinfo2 heap = mallinfo2();
  return static_cast<double>(heap.uordblks + heap.hblkhd);
}

PollWorkflowTaskQueueResponse first_task(int number) {
  PollWorkflowTaskQueueResponse task;
  const std::string id = std::to_string(number);
  task.workflow_execution = WorkflowExecution{WorkflowId("idle-" + id), RunId("run-" + id)};
  task.workflow_type = WorkflowType{"idle"};
  task.attempt = 1;
  std::vector<Event> events(3);
  event::WorkflowExecutionStarted started;
  started.workflow_type.name = "idle";
  started.task_queue.name = "bench";
  events[0].attributes = started;
  events[1].attributes = event::WorkflowTaskScheduled{};
  events[2].attributes = event::WorkflowTaskStarted{};
  std::string text;
  for (std::size_t i = 0; i < events.size(); ++i) {
    events[i].event_id = static_cast<std::int64_t>(i) + 1;
    events[i].event_time = Time(std::chrono::seconds(1'800'000'000));
    text += (i == 0 ? "[" : ",") + to_json(events[i]);
  }
  task.history = RawHistory{RawJson{text + "]"}};
  return task;
}

void run_memory(const Setting&, Report& report) {
  constexpr int runs = 20'000;
  const Registry registry = make_registry();
  TaskRunner::Options options;
  options.sticky_queue = "sticky";
  options.runs_cached_max = runs;
  TaskRunner runner(registry, options);
  runner.run(first_task(0));
  const double empty = own_bytes();
  for (int i = 1; i < runs; ++i) runner.run(first_task(i));
  if (runner.runs_cached() != runs) throw std::runtime_error("runs were not kept");
  report.add("memory, idle workflow in a worker", "bytes a run",
             (own_bytes() - empty) / (runs - 1));
}

}  // namespace

std::vector<Scenario> worker_scenarios() {
  return {{"worker", run_activities}, {"replay", run_replay}, {"workflow memory", run_memory}};
}

}  // namespace permit::bench
