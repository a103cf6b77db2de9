// What it costs to have much: open runs, timers, parked polls, waiters, and readers beside it all.
#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <stdexcept>

#include "tests/bench/load.h"
#include "tests/bench/open_runs.h"
#include "tests/bench/processes.h"
#include "tests/bench/rig.h"
#include "tests/bench/scenarios.h"

namespace permit::bench {

namespace {

double milliseconds_since(Clock::time_point begun) {
  return Seconds(Clock::now() - begun).count() * 1'000;
}

// One kind of request, again and again on some connections.
class Repeated : public Counter {
 public:
  Repeated(Load& load, std::function<std::string(std::uint64_t)> request)
      : load_(load), request_(std::move(request)) {}

  void begin(Load::Peer peer) {
    const Clock::time_point begun = Clock::now();
    load_.send(peer, request_(++last_), [this, peer, begun](std::string_view) {
      latencies_ms.push_back(milliseconds_since(begun));
      ++done;
      if (!stopping) begin(peer);
    });
  }
  std::vector<double> latencies_ms;

 private:
  Load& load_;
  std::function<std::string(std::uint64_t)> request_;
  std::uint64_t last_ = 0;
};

// Acquire and release, each connection of a pool of its own or all of one.
class Holds : public Counter {
 public:
  Holds(Load& load, std::string pool) : load_(load), pool_(std::move(pool)) {}

  void begin(Load::Peer peer, const std::string& pool) {
    const std::string body = R"({"requestId":"hold-)" + std::to_string(++last_) +
                             R"(","holder":"bench","lease":"60s","wait":"60s"})";
    const Clock::time_point begun = Clock::now();
    load_.send(peer, post(namespace_path + "/pools/" + pool + "/acquire", body),
               [this, peer, pool, begun](std::string_view answer) {
                 latencies_ms.push_back(milliseconds_since(begun));
                 const std::string id(text_field(answer, "id"));
                 const std::string token(text_field(answer, "token"));
                 load_.send(peer,
                            post(namespace_path + "/permits/" + id + "/release",
                                 "{\"token\":\"" + token + "\"}"),
                            [this, peer, pool](std::string_view) {
                              ++done;
                              if (!stopping) begin(peer, pool);
                            });
               });
  }
  void begin_own(Load::Peer peer) {
    const std::string pool = pool_ + std::to_string(peer);
    load_.send(peer, put(namespace_path + "/pools/" + pool, R"({"capacity":1})"),
               [this, peer, pool](std::string_view) { begin(peer, pool); });
  }
  std::vector<double> latencies_ms;

 private:
  Load& load_;
  const std::string pool_;
  std::uint64_t last_ = 0;
};

// Until `counter` has counted so many more, and then until all is answered.
void run_many(Load& load, Counter& counter, std::uint64_t count) {
  const std::uint64_t end = counter.done + count;
  load.run_until([&] { return counter.done >= end; });
  counter.stopping = true;
  load.run_until([&] { return load.outstanding() == 0; });
}

std::string body_of(Load& load, const std::string& request) {
  std::string text;
  load.send(load.connect(), request, [&](std::string_view body) { text = body; });
  load.run_until([&] { return !text.empty(); });
  return text;
}

// --- Open runs ---

struct Costs {
  ServerProcess& server;
  Report& report;
  std::string open;  // ", 1,000 open"

  // CPU time of the server for each of them, with 64 connections.
  template <class Begin>
  void add(const std::string& what, Load& load, Counter& counter, Begin begin) {
    constexpr std::uint64_t requests = 6'000;
    for (int i = 0; i < 64; ++i) begin(load.connect());
    run_many(load, counter, 500);
    counter.stopping = false;
    const std::uint64_t before = counter.done;
    const double cpu = settled_cpu_seconds();
    for (Load::Peer peer = 0; peer < 64; ++peer) begin(peer);
    run_many(load, counter, requests);
    const double each = (settled_cpu_seconds() - cpu) / static_cast<double>(counter.done - before);
    report.add(what + open + ": CPU", "us each", each * 1e6);
  }

  // A list is answered when the tables have what was committed before: so that each pays for its
  // own.
  double settled_cpu_seconds() {
    Load load(server.port());
    body_of(load, get(namespace_path + "/workflows?pageSize=1"));
    return server.cpu_seconds();
  }
};

void measure_costs(ServerProcess& server, int runs, Report& report) {
  const std::string open = ", " + number(runs) + " open";
  Costs costs{server, report, open};
  {
    Load load(server.port());
    Repeated starts(load, [&](std::uint64_t i) {
      return start_request("new-" + std::to_string(runs) + "-" + std::to_string(i));
    });
    costs.add("start", load, starts, [&](Load::Peer peer) { starts.begin(peer); });
  }
  {
    Load load(server.port());
    const auto span = static_cast<std::uint64_t>(runs);
    Repeated signals(load, [&](std::uint64_t i) {  // of runs far apart
      return post(
          namespace_path + "/workflows/open-" + std::to_string(i * 7919 % span) + "/signal/go",
          R"({"input":[{"go":true}],"identity":"bench"})");
    });
    costs.add("signal", load, signals, [&](Load::Peer peer) { signals.begin(peer); });
  }
  {
    Load load(server.port());
    Holds holds(load, "scale-" + std::to_string(runs) + "-");
    costs.add("acquire+release", load, holds, [&](Load::Peer peer) { holds.begin_own(peer); });
  }
  Load load(server.port());
  Repeated starts(load, [&](std::uint64_t i) {
    return start_request("one-" + std::to_string(runs) + "-" + std::to_string(i));
  });
  starts.begin(load.connect());
  run_many(load, starts, 300);
  report.add("start" + open + ", 1 connection: p50", "ms", quantile(starts.latencies_ms, 0.5));
  Repeated lists(load, [](std::uint64_t) {
    return get(namespace_path + "/workflows?query=ExecutionStatus%3D%27Running%27&pageSize=100");
  });
  lists.begin(load.connect());
  run_many(load, lists, 30);
  report.add("list of 100" + open + ": p50", "ms", quantile(lists.latencies_ms, 0.5));
}

void measure_level(const Setting& setting, const std::string& database, int runs, Report& report) {
  const std::string open = ", " + number(runs) + " open";
  report.add("database" + open, "bytes a run",
             static_cast<double>(std::filesystem::file_size(database)) / runs);
  const Clock::time_point begun = Clock::now();
  ServerProcess server(setting.binary, database);
  {
    Load load(server.port());
    const std::string text = body_of(load, get(namespace_path + "/workflows/open-1"));
    if (text.find("WORKFLOW_EXECUTION_STATUS_RUNNING") == std::string::npos) {
      throw std::runtime_error("an open run was lost");
    }
  }
  report.add("restart" + open, "s", milliseconds_since(begun) / 1'000);
  report.add("memory" + open, "MiB", server.resident_bytes() / 1024 / 1024);
  measure_costs(server, runs, report);
  report.add("memory" + open + ", after load", "MiB", server.resident_bytes() / 1024 / 1024);
  server.stop();
}

// Once in all repetitions: it takes minutes to make a million runs.
void run_open(const Setting& setting, Report& report) {
  static bool done = false;
  if (std::exchange(done, true)) return;
  const std::string database = fresh_database(setting.directory);
  int made = 0;
  for (const int runs : {1'000, 10'000, 100'000, 1'000'000}) {
    add_open_runs(database, made, runs);
    made = runs;
    measure_level(setting, database, runs, report);
  }
}

// --- Timers ---

// Of a histogram at /metrics: how many it has, and the bound below which that share of them is.
struct Lateness {
  double count = 0;
  double p99 = 0;
};
Lateness lateness_of(const std::string& text) {
  Lateness lateness;
  std::map<double, double> buckets = buckets_of(text, "permit_timer_lateness_seconds");
  if (buckets.empty()) return lateness;
  lateness.count = buckets.rbegin()->second;
  buckets.erase(std::numeric_limits<double>::infinity());
  for (const auto& [bound, count] : buckets) {
    lateness.p99 = bound;
    if (count >= lateness.count * 0.99) break;
  }
  return lateness;
}

// So many timers that are due within `span`, beside `pending` that are not; how late they are.
void run_timers(const Setting& setting, Report& report, const std::string& name, int due,
                Seconds span, int pending) {
  const std::string database = fresh_database(setting.directory);
  const auto timer = [](Seconds from_now) {
    command::StartTimer start;
    start.timer_id = "t";
    start.start_to_fire_timeout = std::chrono::duration_cast<Duration>(from_now);
    Command command;
    command.attributes = std::move(start);
    return std::vector<Command>{std::move(command)};
  };
  if (pending > 0) add_open_runs(database, 0, pending, [&] { return timer(Seconds(3'600)); });
  const Seconds making(3 + due * 0.0004);  // and starting the server
  const Clock::time_point first =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(making);
  int made = 0;
  add_open_runs(database, pending, pending + due, [&] {
    return timer(first - Clock::now() + span * (static_cast<double>(made++) / due));
  });
  ServerProcess server(setting.binary, database);
  if (Clock::now() > first)
    throw std::runtime_error("the timers were due before the server was up");
  Load load(server.port());
  Lateness lateness;
  load.run_until(
      [&] {
        load.run_for(Seconds(0.2));
        lateness = lateness_of(body_of(load, get("/metrics")));
        return lateness.count >= due;
      },
      making + span + Seconds(60));
  const Seconds took = Clock::now() - first;
  report.add(name + ": p99 lateness, at most", "ms", lateness.p99 * 1'000);
  report.add(name, "timers/s", due / took.count());
  server.stop();
}

// --- Polls ---

void raise_file_limit() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

void run_parked(const Setting& setting, Report& report) {
  constexpr int polls = 10'000;
  raise_file_limit();
  ServerProcess server(setting.binary, fresh_database(setting.directory));
  Load load(server.port());
  body_of(load, get("/livez"));
  const double before = server.resident_bytes();
  const std::string poll =
      post(rpc_path + "PollWorkflowTaskQueue",
           R"({"namespace":"default","taskQueue":{"name":"bench"},"identity":"bench"})");
  std::map<std::string, Clock::time_point> sent;
  std::vector<double> hand_offs_ms;
  const auto received = [&](std::string_view task) {
    const auto start = sent.find(std::string(text_field(task, "workflowId")));
    if (start != sent.end()) hand_offs_ms.push_back(milliseconds_since(start->second));
  };
  for (int i = 0; i < polls; ++i) load.send(load.connect(), poll, received);
  load.run_for(Seconds(1.5));
  report.add("parked poll", "bytes each", (server.resident_bytes() - before) / polls);
  const double cpu = server.cpu_seconds();
  load.run_for(Seconds(2));
  report.add("10,000 parked polls: CPU", "% of a core", (server.cpu_seconds() - cpu) / 2 * 100);
  const Load::Peer caller = load.connect();
  for (int i = 0; i < 1'000; ++i) {
    const std::string id = "hand-off-" + std::to_string(i);
    sent[id] = Clock::now();
    bool answered = false;
    load.send(caller, start_request(id), [&](std::string_view) { answered = true; });
    load.run_until([&] { return answered && hand_offs_ms.size() > static_cast<std::size_t>(i); });
  }
  report.add("10,000 parked polls: hand-off p99", "ms", quantile(hand_offs_ms, 0.99));
}

void run_idle(const Setting& setting, Report& report) {
  ServerProcess server(setting.binary, fresh_database(setting.directory));
  Load load(server.port());
  body_of(load, get("/livez"));
  load.run_for(Seconds(0.5));
  const double cpu = server.cpu_seconds();
  load.run_for(Seconds(3));
  report.add("idle server: CPU", "% of a core", (server.cpu_seconds() - cpu) / 3 * 100);
}

// --- Waiters ---

void run_waiters(const Setting& setting, Report& report) {
  constexpr int waiters = 1'000;
  raise_file_limit();
  ServerProcess server(setting.binary, fresh_database(setting.directory));
  Load load(server.port());
  body_of(load, put(namespace_path + "/pools/crowd", R"({"capacity":4})"));
  Holds holds(load, "crowd");
  for (int i = 0; i < waiters; ++i) holds.begin(load.connect(), "crowd");
  report.add("1,000 waiters on 4 slots", "cycles/s", rate(load, holds));
  report.add("1,000 waiters on 4 slots: longest wait", "ms", quantile(holds.latencies_ms, 1));
}

// --- Readers ---

// Who lists, looks at the page and exports a history is not in the way of who acquires.
void run_readers(const Setting& setting, Report& report) {
  const std::string database = fresh_database(setting.directory);
  add_open_runs(database, 0, 10'000);
  ServerProcess server(setting.binary, database);
  Load load(server.port());
  Repeated signals(load, [](std::uint64_t) {
    return post(namespace_path + "/workflows/open-1/signal/go", R"({"input":["x"]})");
  });
  for (int i = 0; i < 16; ++i) signals.begin(load.connect());
  run_many(load, signals, 4'000);
  Holds holds(load, "beside-");
  for (int i = 0; i < 16; ++i) holds.begin_own(load.connect());
  load.run_for(Seconds(0.5));
  holds.latencies_ms.clear();
  load.run_for(Seconds(2));
  const double alone = quantile(holds.latencies_ms, 0.99);
  std::vector<std::unique_ptr<Repeated>> readers;
  for (const std::string& path :
       {namespace_path + "/workflows?pageSize=1000", std::string("/"),
        namespace_path + "/workflows/open-1/history?maximumPageSize=5000"}) {
    readers.push_back(
        std::make_unique<Repeated>(load, [path](std::uint64_t) { return get(path); }));
    readers.back()->begin(load.connect());
  }
  load.run_for(Seconds(0.5));
  holds.latencies_ms.clear();
  load.run_for(Seconds(2));
  report.add("acquire beside readers: p99", "ms", quantile(holds.latencies_ms, 0.99));
  report.add("acquire beside readers: p99 to that alone", "x",
             quantile(holds.latencies_ms, 0.99) / alone);
}

}  // namespace

void set_scale_targets(Report& report) {
  using Kind = Target::Kind;
  report.set_target("restart, 1,000,000 open", {Kind::at_most, 2});
  report.set_target("memory, 1,000,000 open", {Kind::at_most, 1'024});
  report.set_target("parked poll", {Kind::at_most, 10 * 1024});
  report.set_target("10,000 parked polls: hand-off p99", {Kind::at_most, 5});
  report.set_target("idle server: CPU", {Kind::at_most, 0.05});
  report.set_target("acquire beside readers: p99 to that alone", {Kind::at_most, 1.5});
  report.set_target("timers, 1,000/s beside 100,000: p99 lateness, at most", {Kind::at_most, 20});
  report.set_target("timers, 100,000 in one second: p99 lateness, at most", {Kind::at_most, 1'000});
}

std::vector<Scenario> scale_scenarios() {
  return {{"scale: open runs", run_open},
          {"scale: timers, steady",
           [](const Setting& setting, Report& report) {
             run_timers(setting, report, "timers, 1,000/s beside 100,000", 5'000, Seconds(5),
                        100'000);
           }},
          {"scale: timers, at once",
           [](const Setting& setting, Report& report) {
             run_timers(setting, report, "timers, 100,000 in one second", 100'000, Seconds(1), 0);
           }},
          {"scale: parked polls", run_parked},
          {"scale: idle", run_idle},
          {"scale: waiters", run_waiters},
          {"scale: readers", run_readers}};
}

}  // namespace permit::bench
