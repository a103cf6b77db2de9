#include "tests/bench/scenarios.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <map>
#include <memory>
#include <stdexcept>
#include <thread>

#include "orchestrator/store/database.h"
#include "tests/bench/load.h"
#include "tests/bench/processes.h"
#include "tests/bench/rig.h"

namespace permit::bench {

namespace {

constexpr int idle_runs = 100'000;

// A server on a fresh database, and a load on it.
struct Rig {
  explicit Rig(const Setting& setting)
      : database(fresh_database(setting.directory)),
        server(setting.binary, database),
        load(server.port()) {}

  std::string database;
  ServerProcess server;
  Load load;
};

// --- Starts ---

class Starts : public Counter {
 public:
  explicit Starts(Load& load) : load_(load) {}

  void begin(Load::Peer peer) {
    load_.send(peer, start_request("start-" + std::to_string(++last_id_)),
               [this, peer](std::string_view) {
                 ++done;
                 if (!stopping) begin(peer);
               });
  }

 private:
  Load& load_;
  std::uint64_t last_id_ = 0;
};

// The median number of requests in a batch, of the server's histogram at /metrics. Between two
// bounds it is taken to rise evenly.
double median_batch(Load& load) {
  std::string text;
  load.send(load.connect(), get("/metrics"), [&](std::string_view body) { text = body; });
  load.run_until([&] { return !text.empty(); });
  std::map<double, double> counts = buckets_of(text, "permit_batch_requests");
  counts.erase(std::numeric_limits<double>::infinity());
  if (counts.empty()) throw std::runtime_error("no batch sizes at /metrics");
  const double half = counts.rbegin()->second / 2;
  double bound_before = 0;
  double count_before = 0;
  for (const auto& [bound, count] : counts) {
    if (count >= half && count > count_before) {
      return bound_before + (bound - bound_before) * (half - count_before) / (count - count_before);
    }
    bound_before = bound;
    count_before = count;
  }
  return counts.rbegin()->first;
}

// Bytes of text that one run has in the database.
double stored_bytes(const std::string& path) {
  store::Database::Options options;
  options.path = path;
  options.mode = store::Database::Mode::read_only;
  store::Database database(options);
  store::Statement statement(
      database,
      "SELECT (SELECT sum(length(events)) FROM history) + (SELECT sum(length(workflow_id) + "
      "length(run_id) + length(workflow_type) + length(task_queue) + length(volatile)) FROM runs), "
      "(SELECT count(*) FROM runs)");
  auto row = statement.bind();
  row.step();
  return static_cast<double>(row.i64(0)) / static_cast<double>(row.i64(1));
}

Scenario starts(int connections) {
  const std::string name = "starts, " + std::to_string(connections) + " connections";
  return {name, [name, connections](const Setting& setting, Report& report) {
            Rig rig(setting);
            Starts starts(rig.load);
            for (int i = 0; i < connections; ++i) starts.begin(rig.load.connect());
            const double cpu_before = rig.server.cpu_seconds();
            report.add(name, "starts/s", rate(rig.load, starts));
            const double cpu = rig.server.cpu_seconds() - cpu_before;
            report.add(name + ": CPU", "us a start", cpu * 1e6 / static_cast<double>(starts.done));
            starts.stopping = true;
            rig.load.run_until([&] { return rig.load.outstanding() == 0; });
            if (name == starts_at_64) report.add(starts_batch, "requests", median_batch(rig.load));
            rig.server.stop();
            if (name == starts_at_64) {
              report.add(starts_row, "bytes a run", stored_bytes(rig.database));
            }
          }};
}

// --- Workers ---

// A worker's connections: poll, look at the task, complete it, poll again.
class Worker {
 public:
  struct Task {
    std::string workflow_id;
    bool signaled = false;
    Clock::time_point received;
  };
  // Says what commands a task is completed with, as JSON.
  using Decide = std::function<std::string(const Task&)>;
  // Called when the completion is acknowledged and the next poll is under way.
  using Completed = std::function<void(const Task&)>;

  Worker(Load& load, Decide decide, Completed completed)
      : load_(load), decide_(std::move(decide)), completed_(std::move(completed)) {}

  void poll(Load::Peer peer) {
    load_.send(peer, poll_, [this, peer](std::string_view body) { complete(peer, body); });
  }

 private:
  void complete(Load::Peer peer, std::string_view body) {
    const Task task{std::string(text_field(body, "workflowId")),
                    body.find("EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED") != std::string_view::npos,
                    Clock::now()};
    const std::string request = "{\"taskToken\":\"" + std::string(text_field(body, "taskToken")) +
                                R"(","identity":"bench","namespace":"default","commands":)" +
                                decide_(task) + "}";
    load_.send(peer, post(rpc_path + "RespondWorkflowTaskCompleted", request),
               [this, peer, task](std::string_view) {
                 poll(peer);
                 completed_(task);
               });
  }

  Load& load_;
  Decide decide_;
  Completed completed_;
  const std::string poll_ =
      post(rpc_path + "PollWorkflowTaskQueue",
           R"({"namespace":"default","taskQueue":{"name":"bench"},"identity":"bench"})");
};

const std::string no_command = "[]";
const std::string complete_run =
    R"([{"completeWorkflowExecutionCommandAttributes":{"result":["done"]}}])";

// --- Start, signal, complete ---

// Callers that start a run, signal it, and begin again when it has completed.
class Cycles : public Counter {
 public:
  explicit Cycles(Load& load)
      : load_(load),
        worker_(
            load,
            [](const Worker::Task& task) { return task.signaled ? complete_run : no_command; },
            [this](const Worker::Task& task) {
              if (task.signaled) finish(task.workflow_id);
            }) {}

  void add_worker(Load::Peer peer) { worker_.poll(peer); }

  void begin(Load::Peer peer) {
    const std::string id = "cycle-" + std::to_string(++last_id_);
    callers_[id] = peer;
    load_.send(peer, start_request(id), [this, peer, id](std::string_view) {
      const std::string body = R"({"input":[{"go":true}],"identity":"bench"})";
      load_.send(peer, post(namespace_path + "/workflows/" + id + "/signal/go", body),
                 [this, id](std::string_view) { finish(id); });
    });
  }

 private:
  // The signal's answer and the worker's completion may come in either order.
  void finish(const std::string& id) {
    const auto caller = callers_.find(id);
    if (!half_done_.insert({id, true}).second) {
      half_done_.erase(id);
      const Load::Peer peer = caller->second;
      callers_.erase(caller);
      ++done;
      if (!stopping) begin(peer);
    }
  }

  Load& load_;
  Worker worker_;
  std::map<std::string, Load::Peer> callers_;
  std::map<std::string, bool> half_done_;
  std::uint64_t last_id_ = 0;
};

void run_cycles(const Setting& setting, Report& report) {
  constexpr int callers = 64;
  constexpr int polls = 64;
  Rig rig(setting);
  Cycles cycles(rig.load);
  for (int i = 0; i < polls; ++i) cycles.add_worker(rig.load.connect());
  for (int i = 0; i < callers; ++i) cycles.begin(rig.load.connect());
  report.add("start+signal+complete, 64 callers", "cycles/s", rate(rig.load, cycles));
  cycles.stopping = true;
  rig.load.run_until([&] { return rig.load.outstanding() == polls; });
}

// --- Acquire and release from outside ---

class Acquires : public Counter {
 public:
  explicit Acquires(Load& load) : load_(load) {}

  void begin(Load::Peer peer) {
    const std::string pool = "bench-" + std::to_string(peer);
    const std::string body = R"({"requestId":"acquire-)" + std::to_string(++last_id_) +
                             R"(","holder":"bench","slots":["0"],"lease":"60s"})";
    load_.send(peer, post(namespace_path + "/pools/" + pool + "/acquire", body),
               [this, peer, pool](std::string_view answer) {
                 release(peer, pool, std::string(text_field(answer, "token")));
               });
  }

 private:
  void release(Load::Peer peer, const std::string& pool, const std::string& token) {
    load_.send(peer,
               post(namespace_path + "/permits/permit:" + pool + ":0/release",
                    "{\"token\":\"" + token + "\"}"),
               [this, peer](std::string_view) {
                 ++done;
                 if (!stopping) begin(peer);
               });
  }

  Load& load_;
  std::uint64_t last_id_ = 0;
};

Scenario acquires(int connections) {
  const std::string name = "acquire+release, " + std::to_string(connections) + " connections";
  return {name, [name, connections](const Setting& setting, Report& report) {
            Rig rig(setting);
            Acquires acquires(rig.load);
            for (int i = 0; i < connections; ++i) {
              const Load::Peer peer = rig.load.connect();
              rig.load.send(
                  peer,
                  put(namespace_path + "/pools/bench-" + std::to_string(peer), R"({"capacity":1})"),
                  [&acquires, peer](std::string_view) { acquires.begin(peer); });
            }
            report.add(name, "cycles/s", rate(rig.load, acquires));
            acquires.stopping = true;
            rig.load.run_until([&] { return rig.load.outstanding() == 0; });
          }};
}

// --- Hand-off ---

// Pairs of a parked poller and a caller that then starts a run; from the start being sent to the
// task being there, its commit included.
class HandOffs : public Counter {
 public:
  explicit HandOffs(Load& load)
      : load_(load),
        worker_(
            load,
            [this](const Worker::Task& task) {
              note(task);
              return complete_run;
            },
            [this](const Worker::Task& task) { next(task.workflow_id); }) {}

  void add_pair(Load::Peer poller, Load::Peer caller) {
    worker_.poll(poller);
    begin(caller);
  }
  std::vector<double> latencies_ms;

 private:
  struct Sent {
    Load::Peer caller = 0;
    Clock::time_point at;
    bool answered = false;
    bool completed = false;
  };

  void begin(Load::Peer caller) {
    const std::string id = "hand-off-" + std::to_string(++last_id_);
    sent_[id] = {caller, Clock::now()};
    load_.send(caller, start_request(id), [this, id](std::string_view) {
      sent_.at(id).answered = true;
      begin_again(id);
    });
  }
  void note(const Worker::Task& task) {
    const auto latency = task.received - sent_.at(task.workflow_id).at;
    latencies_ms.push_back(std::chrono::duration<double, std::milli>(latency).count());
  }
  void next(const std::string& id) {
    ++done;
    sent_.at(id).completed = true;
    begin_again(id);
  }
  void begin_again(const std::string& id) {
    const Sent sent = sent_.at(id);
    if (!sent.answered || !sent.completed) return;
    sent_.erase(id);
    if (!stopping) begin(sent.caller);
  }

  Load& load_;
  Worker worker_;
  std::map<std::string, Sent> sent_;
  std::uint64_t last_id_ = 0;
};

void run_hand_off(const Setting& setting, Report& report) {
  constexpr int pairs = 8;
  Rig rig(setting);
  HandOffs hand_offs(rig.load);
  for (int i = 0; i < pairs; ++i) {
    const Load::Peer poller = rig.load.connect();
    hand_offs.add_pair(poller, rig.load.connect());
  }
  rig.load.run_for(Seconds(0.3));
  hand_offs.latencies_ms.clear();
  rig.load.run_for(Seconds(1.2));
  std::vector<double> latencies = hand_offs.latencies_ms;
  hand_offs.stopping = true;
  rig.load.run_until([&] { return rig.load.outstanding() == pairs; });
  std::sort(latencies.begin(), latencies.end());
  if (latencies.size() < 100) throw std::runtime_error("too few hand-offs to speak of");
  report.add("hand-off, 8 pairs: p50", "ms", latencies[latencies.size() / 2]);
  report.add("hand-off, 8 pairs: p99", "ms", latencies[latencies.size() * 99 / 100]);
}

// --- 100,000 open ---

// Runs whose first task is done and that wait for a signal.
class IdleRuns : public Counter {
 public:
  explicit IdleRuns(Load& load)
      : load_(load),
        worker_(
            load, [](const Worker::Task&) { return no_command; },
            [this](const Worker::Task&) { ++done; }) {}

  void add_worker(Load::Peer peer) { worker_.poll(peer); }
  void begin(Load::Peer peer) {
    if (started_ == idle_runs) return;
    load_.send(peer, start_request("idle-" + std::to_string(++started_)),
               [this, peer](std::string_view) { begin(peer); });
  }

 private:
  Load& load_;
  Worker worker_;
  int started_ = 0;
};

// From the start of the process to the answer of a call that needs a run of the last life.
double restart_seconds(const Setting& setting, const std::string& database) {
  const Clock::time_point start = Clock::now();
  ServerProcess server(setting.binary, database);
  Load load(server.port());
  bool answered = false;
  load.send(load.connect(), get(namespace_path + "/workflows/idle-1"), [&](std::string_view body) {
    answered = body.find("WORKFLOW_EXECUTION_STATUS_RUNNING") != std::string_view::npos;
  });
  load.run_until([&] { return load.outstanding() == 0; });
  const Seconds passed = Clock::now() - start;
  if (!answered) throw std::runtime_error("a run was lost over the restart");
  server.stop();
  return passed.count();
}

void run_idle(const Setting& setting, Report& report) {
  constexpr int polls = 64;
  Rig rig(setting);
  const double empty = rig.server.resident_bytes();
  {
    Load load(rig.server.port());  // whose connections are not part of what is measured
    IdleRuns runs(load);
    for (int i = 0; i < polls; ++i) runs.add_worker(load.connect());
    for (int i = 0; i < 64; ++i) runs.begin(load.connect());
    load.run_until([&] { return runs.done == idle_runs; }, Seconds(120));
    load.run_until([&] { return load.outstanding() == polls; });
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const double full = rig.server.resident_bytes();
  report.add("memory, 100,000 idle runs", "bytes a run", (full - empty) / idle_runs);
  rig.server.kill();
  report.add("restart, 100,000 open", "s", restart_seconds(setting, rig.database));
}

}  // namespace

std::string start_body(const std::string& request_id) {
  return R"({"workflowType":{"name":"bench"},"taskQueue":{"name":"bench"},"requestId":")" +
         request_id +
         R"(","input":[{"customer":"c-000017","items":[3,14,159],"express":true}],)"
         R"("identity":"bench@localhost"})";
}

std::vector<Scenario> server_scenarios() {
  return {starts(1),         starts(16),   starts(64),   {"cycles", run_cycles},
          acquires(1),       acquires(16), acquires(64), {"hand-off", run_hand_off},
          {"idle", run_idle}};
}

}  // namespace permit::bench
