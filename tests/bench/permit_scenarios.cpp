// Permits as workflows use them: whole cycles of acquire and release, and what it takes to hand a
// slot on. The workflows look at the clock, which only what measures may do.
#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "permits/semaphore.h"
#include "tests/bench/load.h"
#include "tests/bench/processes.h"
#include "tests/bench/scenarios.h"
#include "worker/http_client.h"
#include "worker/worker.h"

namespace permit::bench {

namespace {

using namespace std::chrono_literals;
using namespace permit::permits;
using namespace permit::worker;

// What the workflows of a scenario saw. They run on one thread; the caller looks when they are
// done.
struct Hold {
  std::string holder;
  Clock::time_point had;
  Clock::time_point freed;  // when its release was asked for
};
struct Seen {
  std::vector<double> acquired_ms;     // from asking to having
  std::map<std::int64_t, Hold> holds;  // by fence
} seen;

struct Task {
  std::string pool;
  int capacity = 1;
  int cycles = 1;
  bool fair = false;
  int hold_ms = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Task, pool, capacity, cycles, fair, hold_ms)

constexpr WorkflowName<int(Task)> cycle{"cycle"};

double milliseconds_since(Clock::time_point begun) {
  return Seconds(Clock::now() - begun).count() * 1'000;
}

Async<int> run_cycle(Workflow workflow, Task task) {
  const Semaphore pool(workflow, task.pool, task.capacity);
  PermitOptions options;
  if (task.fair) options.fair();
  int released = 0;
  for (int i = 0; i < task.cycles; ++i) {
    const Clock::time_point begun = Clock::now();
    const Permit permit = co_await pool.acquire(options);
    seen.acquired_ms.push_back(milliseconds_since(begun));
    Hold& hold = seen.holds[permit.fence()];
    hold.holder = workflow.info().execution.workflow_id.value;
    hold.had = Clock::now();
    co_await workflow.sleep(task.hold_ms * 1ms);  // of nothing: no timer
    hold.freed = Clock::now();
    const std::optional<Outcome> outcome = co_await permit.release();
    if (outcome == Outcome::released) ++released;
  }
  co_return released;
}

// Counts what the worker asks the server.
class CountingTransport : public Transport {
 public:
  explicit CountingTransport(const std::string& address) : http_(address) {}
  std::string call(std::string_view rpc, const std::string& request) override {
    ++calls_;
    return http_.call(rpc, request);
  }
  std::int64_t calls() const { return calls_; }

 private:
  HttpTransport http_;
  std::atomic<std::int64_t> calls_{0};
};

// How many batches the server has committed, or found to need no commit.
double batches_of(std::uint16_t port) {
  Load load(port);
  double batches = 0;
  const Load::Peer peer = load.connect();
  load.send(peer, get("/metrics"), [&](std::string_view text) {
    const std::string_view name = "permit_batch_requests_count ";
    batches = std::stod(std::string(text.substr(text.find(name) + name.size(), 20)));
  });
  load.run_until([&] { return load.outstanding() == 0; });
  return batches;
}

struct Measured {
  double seconds = 0;
  double batches = 0;
  double calls = 0;
};

// That many workflows do this at the same time, on one worker in this process.
Measured run_workflows(const Setting& setting, const std::string& name, int workflows, Task task,
                       bool own_pools) {
  ServerProcess server(setting.binary, setting.directory + "/" + name + ".db");
  const std::string address = "127.0.0.1:" + std::to_string(server.port());
  Registry registry;
  registry.workflow(cycle, run_cycle);
  CountingTransport transport(address);
  WorkerOptions options("bench");
  options.workflow_pollers = 16;
  options.activity_threads = 1;
  options.deadlock_timeout = 10s;  // the machine is shared with the server
  Worker worker(transport, registry, options);
  HttpTransport own(address);
  Client client(own);
  seen = {};
  Measured measured;
  const double batches_before = batches_of(server.port());
  std::vector<TypedRunHandle<int>> runs;
  for (int i = 0; i < workflows; ++i) {
    Task one = task;
    if (own_pools) one.pool += std::to_string(i);
    runs.push_back(
        client.start(cycle, StartOptions("cycle-" + std::to_string(i)).task_queue("bench"), one));
  }
  const Clock::time_point begun = Clock::now();
  worker.start();
  int released = 0;
  for (const auto& run : runs) released += run.result();
  measured.seconds = Seconds(Clock::now() - begun).count();
  measured.calls = static_cast<double>(transport.calls());
  measured.batches = batches_of(server.port()) - batches_before;
  worker.stop();
  server.stop();
  if (released != workflows * task.cycles) throw std::runtime_error("a permit was not released");
  return measured;
}

void add_latency(Report& report, const std::string& name, const std::vector<double>& values) {
  report.add(name + ": p50", "ms", quantile(values, 0.5));
  report.add(name + ": p99", "ms", quantile(values, 0.99));
}

void add_cycles(Report& report, const std::string& name, const Measured& measured, int cycles) {
  report.add(name, "cycles/s", cycles / measured.seconds);
  report.add(name + ": commits", "a cycle", measured.batches / cycles);
  report.add(name + ": requests", "a cycle", measured.calls / cycles);
  add_latency(report, name + ": acquire", seen.acquired_ms);
}

void run_alone(const Setting& setting, Report& report) {
  constexpr int cycles = 500;
  const Measured measured =
      run_workflows(setting, "alone", 1, {"alone", 1, cycles, false, 0}, false);
  add_cycles(report, "permits, 1 workflow", measured, cycles);
}

void run_uncontended(const Setting& setting, Report& report) {
  // A dozen each at least, so that their beginnings and ends are a small part of it.
  for (const auto& [workflows, cycles] : {std::pair{32, 100}, {256, 12}, {1'000, 12}}) {
    const std::string number = std::to_string(workflows);
    const Measured measured = run_workflows(setting, "uncontended-" + number, workflows,
                                            {"own", 1, cycles, false, 0}, true);
    const std::string name = "permits, " + number + " workflows, own slots";
    report.set_target(name, {Target::Kind::at_least, 1'500});
    add_cycles(report, name, measured, workflows * cycles);
  }
}

void run_contended(const Setting& setting, Report& report) {
  constexpr int workflows = 32;
  constexpr int cycles = 50;
  const Measured measured =
      run_workflows(setting, "contended", workflows, {"shared", 4, cycles, true, 0}, false);
  add_cycles(report, "permits, 32 workflows on 4 slots", measured, workflows * cycles);
}

// From asking for the release of the one slot to the code of another workflow having it. One server
// has one pool here, so the next grant has the next fence.
std::vector<double> hand_overs() {
  std::vector<double> latencies;
  for (const auto& [fence, hold] : seen.holds) {
    const auto next = seen.holds.find(fence + 1);
    if (next == seen.holds.end() || next->second.holder == hold.holder) continue;
    latencies.push_back(Seconds(next->second.had - hold.freed).count() * 1'000);
  }
  return latencies;
}

void run_hand_over(const Setting& setting, Report& report) {
  run_workflows(setting, "fair", 10, {"line", 1, 105, true, 0}, false);
  add_latency(report, "hand-over, fair, 10 workflows", hand_overs());
  run_workflows(setting, "any", 10, {"woken", 1, 105, false, 5}, false);
  add_latency(report, "hand-over, any with wake-up, 10 workflows", hand_overs());
}

}  // namespace

std::vector<Scenario> permit_scenarios() {
  return {{"permits alone", run_alone},
          {"permits uncontended", run_uncontended},
          {"permits contended", run_contended},
          {"permits hand-over", run_hand_over}};
}

}  // namespace permit::bench
