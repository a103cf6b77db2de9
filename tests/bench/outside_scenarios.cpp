// Holders from outside: one acquire and one release over the network a cycle, beside what others
// would use for it. All systems are started for a repetition, warmed up alike, and take turns at
// each number of clients.
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <stdexcept>

#include "tests/bench/outside_limits.h"
#include "tests/bench/outside_names.h"
#include "tests/bench/peers/holders.h"
#include "tests/bench/peers/http_sessions.h"
#include "tests/bench/peers/lock_loop.h"
#include "tests/bench/peers/stream.h"
#include "tests/bench/peers/systems.h"
#include "tests/bench/scenarios.h"

namespace permit::bench {

namespace {

using Sessions = std::vector<std::unique_ptr<LockSession>>;

// --- Uncontended: a key for each client ---

LoopResult run_clients(const System& system, int clients, const LoopOptions& options) {
  Sessions sessions;
  for (int i = 0; i < clients; ++i) sessions.push_back(system.connect("own-" + std::to_string(i)));
  LoopResult result = run_loop(sessions, options);
  for (const auto& session : sessions) session->close();
  return result;
}

void add_result(const std::string& system, int clients, const LoopResult& result, Report& report) {
  const auto add = [&](const std::string& name, const std::string& unit, double value) {
    report.add(name, unit, value);
    if (system != permit_name) report.mark_detail(name);
  };
  add(outside_figure(system, clients), "cycles/s", result.cycles_per_second);
  add(outside_acquire(system, clients, "p50"), "ms", quantile(result.acquire_ms, 0.5));
  add(outside_acquire(system, clients, "p99"), "ms", quantile(result.acquire_ms, 0.99));
  if (clients != outside_clients_compared) return;
  for (const double share : outside_quantiles) {
    if (share == 0.5 || share == 0.99) continue;  // which are there already
    report.add(outside_quantile(system, share), "ms", quantile(result.acquire_ms, share));
    report.mark_detail(outside_quantile(system, share));
  }
}

void add_missing(const std::string& system, const std::string& why, Report& report) {
  const auto add = [&](const std::string& name, const std::string& unit) {
    report.add_missing(name, unit, why);
    report.mark_detail(name);
  };
  for (const int clients : outside_clients) {
    add(outside_figure(system, clients), "cycles/s");
    add(outside_acquire(system, clients, "p50"), "ms");
    add(outside_acquire(system, clients, "p99"), "ms");
  }
  for (const double share : outside_quantiles) add(outside_quantile(system, share), "ms");
}

// What goes wrong with ours ends the run; what goes wrong with another is said.
void run_or_say(System& system, Report& report, const std::function<void()>& what) {
  if (!system.why_not.empty()) return;
  try {
    what();
  } catch (const std::exception& error) {
    if (system.name == permit_name) throw;
    system.why_not = first_line_of(error);
    std::cerr << system.name << ": " << system.why_not << std::endl;
    add_missing(system.name, system.why_not, report);
  }
}

void add_ratios(const std::vector<System>& systems, Report& report) {
  for (const int clients : outside_clients) {
    const double ours = report.last(outside_figure(permit_name, clients));
    for (const System& system : systems) {
      if (system.name == permit_name) continue;
      const std::string name = outside_ratio(system.name, clients);
      const std::string theirs = outside_figure(system.name, clients);
      const std::string why_not = report.why_missing(theirs);  // in this repetition or before
      if (why_not.empty()) {
        report.add(name, "ratio", ours / report.last(theirs));
      } else {
        report.add_missing(name, "ratio", why_not);
      }
      if (clients != outside_clients_compared) report.mark_detail(name);
    }
  }
}

void run_outside(const Setting& setting, Report& report) {
  add_outside_limits(setting, report);
  Systems started(setting, setting.directory + "/systems");
  std::vector<System> systems = started.all();
  if (!systems.front().why_not.empty()) throw std::runtime_error(systems.front().why_not);
  LoopOptions warm_up;
  warm_up.measured = Seconds(0.6);
  for (System& system : systems) {
    if (!system.why_not.empty()) add_missing(system.name, system.why_not, report);
    run_or_say(system, report, [&] {
      prove_exclusion(system);
      run_clients(system, outside_clients_compared, warm_up);
    });
  }
  static std::size_t repetition = 0;  // each begins with another system
  const std::size_t first = repetition++ % systems.size();
  for (const int clients : outside_clients) {
    std::cerr << "  " << clients << (clients == 1 ? " client" : " clients") << std::endl;
    for (std::size_t i = 0; i < systems.size(); ++i) {
      System& system = systems[(first + i) % systems.size()];
      run_or_say(system, report, [&] {
        const LoopResult result = run_clients(system, clients, {});
        add_result(system.name, clients, result, report);
        if (system.name != permit_name || clients != 1) return;
        const double floor =
            2 * report.last(limit_commit + ": p50") + 2 * report.last(limit_round_trip + ": p50");
        report.add("outside, 1 client: cycle p50", "ms", quantile(result.cycle_ms, 0.5));
        report.add(outside_one_client, "ratio", quantile(result.cycle_ms, 0.5) / floor);
      });
    }
  }
  add_ratios(systems, report);
}

// --- Contended: 32 clients stand in line for 4 slots ---

constexpr int contenders = 32;
constexpr int contended_slots = 4;

LoopResult run_contenders(std::uint16_t port, int clients, double hold_ms) {
  make_pool(port, "shared", contended_slots);
  Sessions sessions;
  std::vector<PermitSession*> permits;
  for (int i = 0; i < clients; ++i) {
    auto session = std::make_unique<PermitSession>(port, PermitSession::Ask{"shared", "55s"});
    permits.push_back(session.get());
    sessions.push_back(std::move(session));
  }
  Holders holders(contended_slots);
  LoopOptions options;
  options.hold = Seconds(hold_ms / 1'000);
  options.granted = [&](std::size_t client) {
    holders.granted(permits[client]->slot(), permits[client]->fence());
  };
  options.releasing = [&](std::size_t client) { holders.releasing(permits[client]->slot()); };
  return run_loop(sessions, options);
}

// The ideal of a hold: the slots never stand empty. Of no hold: each slot goes on with the request
// that frees it, and one request takes half of what a cycle of one client alone takes.
void run_contended(const Setting& setting, Report& report) {
  Launch launch;
  const std::uint16_t port = free_port();
  const std::string directory = setting.directory + "/contended";
  std::filesystem::remove_all(directory);
  std::filesystem::create_directory(directory);
  launch.command = permit_command(setting, port, directory + "/bench.db");
  launch.log = directory + "/log";
  const Service server(launch, port);
  const double request_ms = quantile(run_contenders(port, 1, 0).cycle_ms, 0.5) / 2;
  for (const int hold_ms : {0, 2}) {
    const LoopResult result = run_contenders(port, contenders, hold_ms);
    const double ideal = contended_slots * 1'000 / (hold_ms == 0 ? request_ms : hold_ms);
    const auto [least, most] = std::minmax_element(result.grants.begin(), result.grants.end());
    if (*least == 0) throw std::runtime_error("a client in line was never granted");
    report.add(contended_figure(hold_ms), "cycles/s", result.cycles_per_second);
    report.add(contended_figure(hold_ms, "of the ideal"), "share",
               result.cycles_per_second / ideal);
    report.add(contended_figure(hold_ms, "most / least"), "grants",
               static_cast<double>(*most) / *least);
    report.add(contended_figure(hold_ms, "longest wait"), "ms",
               *std::max_element(result.acquire_ms.begin(), result.acquire_ms.end()));
  }
}

}  // namespace

std::vector<Scenario> outside_scenarios() {
  return {{"outside holders", run_outside}, {"outside contended", run_contended}};
}

void set_outside_targets(Report& report) {
  const auto at_least = [&](const std::string& figure, double value) {
    report.set_target(figure, {Target::Kind::at_least, value});
  };
  const auto at_most = [&](const std::string& figure, double value) {
    report.set_target(figure, {Target::Kind::at_most, value});
  };
  constexpr int clients = outside_clients_compared;
  at_most(busy_before, 0.15);
  at_least(outside_figure(permit_name, clients), 15'000);
  at_most(outside_acquire(permit_name, clients, "p50"), 2);
  at_most(outside_acquire(permit_name, clients, "p99"), 5);
  at_least(outside_ratio(no_sync_name, clients), 0.6);
  at_least(outside_ratio(redis_name, clients), 0.7);
  at_least(outside_ratio(zookeeper_name, clients), 1.2);
  at_least(outside_ratio(postgres_name, clients), 1.4);
  at_least(outside_ratio(etcd_name, clients), 3);
  at_least(outside_ratio(etcd_own_name, clients), 5);
  at_least(outside_ratio(etcd_json_name, clients), 8);
  at_most(outside_acquire(permit_name, 1, "p50"), 0.4);
  at_most(outside_one_client, 1.5);
  at_least(contended_figure(0), 6'000);
  at_least(contended_figure(2, "of the ideal"), 0.75);
  for (const int hold_ms : {0, 2}) at_most(contended_figure(hold_ms, "most / least"), 1.05);
  // Twice what 32 clients take for 4 slots, if none stands empty.
  at_most(contended_figure(2, "longest wait"), 2.0 * contenders / contended_slots * 2);
}

}  // namespace permit::bench
