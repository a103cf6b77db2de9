#include "tests/simulation/simulation.h"

#include <iostream>

namespace permit::simulation {

using namespace std::chrono_literals;

Simulation::Simulation(std::uint64_t seed, const Plan& plan, Totals& totals, bool verbose)
    : verbose_(verbose),
      totals_(totals),
      world_(seed, plan, totals),
      workers_(world_),
      clients_(world_),
      holders_(world_) {}

std::ostringstream& Simulation::complaints() {
  static std::ostringstream text;
  return text;
}

void Simulation::say(const std::string& what) {
  if (!verbose_) return;
  const auto since = world_.now().time_since_epoch().count();
  std::cout << since << " " << what << std::endl;
}

void Simulation::run() {
  ++totals_.seeds;
  clients_.begin();
  settle();
  for (int i = 0; i < world_.plan.steps; ++i) step();
  drain();
}

// --- Faults ---

void Simulation::step() {
  deliver();
  const int actions = world_.chance.between(1, 4);
  for (int i = 0; i < actions; ++i) act();
  inject();
  settle();
  if (world_.fault(10)) {
    world_.service().answer_all_polls();
    settle();
  }
  pass_time();
}

void Simulation::act() {
  const int die = world_.chance.between(0, 99);
  if (die < 20) {
    clients_.step();
  } else if (die < 40 && world_.plan.holders > 0) {
    holders_.step();
  } else if (world_.chance.percent(world_.plan.operators)) {
    clients_.operate();
  } else {
    workers_.step();
  }
}

void Simulation::deliver() {
  std::vector<std::function<void()>> later;
  for (const auto& request : std::exchange(world_.under_way, {})) {
    if (world_.draining || world_.chance.percent(50)) {
      request();
    } else {
      later.push_back(request);
    }
  }
  world_.under_way.insert(world_.under_way.end(), later.begin(), later.end());
}

void Simulation::inject() {
  if (world_.fault(world_.plan.crashes)) {
    if (world_.server.on_disk() && world_.chance.percent(70)) {
      world_.server.lose_power_soon();
    } else {
      if (world_.chance.percent(50)) settle();
      say("killed");
      restart();
    }
  }
  if (world_.fault(world_.plan.sync_failures)) world_.server.fail_next_sync();
  if (world_.fault(world_.plan.disk_full) && !world_.server.disk_is_full()) {
    say("disk full");
    world_.server.fill_disk();
  } else if (world_.server.disk_is_full() && world_.chance.percent(40)) {
    world_.server.free_disk();
    disk_freed_ = world_.now();
  }
}

void Simulation::pass_time() {
  const int die = world_.chance.between(0, 99);
  service::ManualClock& clock = world_.server.clock();
  if (die < 40) {
    clock.set(world_.now() + world_.chance.duration(0us, world_.plan.time_step));
  } else if (die < 60) {
    const Time due = world_.service().next_due();
    if (due != never) clock.set(due);
  } else if (die < 63) {
    clock.set(world_.now() + world_.chance.duration(0us, world_.plan.lease_max * 2));
  }
}

void Simulation::restart() {
  ++totals_.crashes;
  if (world_.server.on_disk()) ++totals_.power_losses;
  world_.server.kill();
  world_.promises.died();
  workers_.disconnected();
  holders_.disconnected();
  if (world_.server.disk_is_full()) world_.server.free_disk();
  if (world_.fault(20)) {
    world_.server.clock().set(world_.now() +
                              world_.chance.duration(0us, world_.plan.lease_max * 2));
  }
  world_.server.restart();
  disk_freed_ = {};
  world_.lines.restarted();
  if (world_.server.on_disk()) {
    world_.ledger.reread(world_.server.store(), {});
    world_.lines.check(world_.server.store(), world_.ledger, {}, false);
    world_.lines.restarted();
  }
  settle();
  world_.ledger.sweep(world_.server.store(), world_.now());
  world_.service().check_everything();
}

// --- Batches ---

void Simulation::settle() {
  for (int i = 0; i < 1000; ++i) {
    switch (world_.server.run_batch()) {
      case Server::Batch::idle:
        require(world_.promises.open() == 0, "a request has had no answer");
        return;
      case Server::Batch::died:
        say("died");
        restart();
        return;
      case Server::Batch::done:
        ++totals_.batches;
        check_batch();
    }
  }
  throw Violation("the engine never comes to rest: time has work at " +
                  std::to_string(world_.service().next_due().time_since_epoch().count()));
}

void Simulation::check_batch() {
  require(complaints().view().empty(), "the engine says: " + complaints().str());
  store::Store& store = world_.server.store();
  const bool healthy = !world_.server.disk_is_full() && world_.now() > disk_freed_ + 1s;
  world_.ledger.read(store, healthy ? world_.now() : Time{});
  world_.lines.check(store, world_.ledger, world_.now(), healthy && !world_.service().has_work());
  if (world_.chance.percent(4)) world_.service().check_everything();
  if (healthy && world_.chance.percent(4) && !world_.service().has_work()) {
    world_.ledger.sweep(store, world_.now());
    world_.lines.check_counts(store, world_.ledger);
  }
}

// --- The quiet end ---

void Simulation::drain() {
  say("drain");
  world_.draining = true;
  if (world_.server.disk_is_full()) world_.server.free_disk();
  world_.server.clock().set(world_.now() + 2s);
  disk_freed_ = {};
  settle();
  deliver();
  settle();
  clients_.open_pools();
  settle();
  holders_.let_go();
  settle();
  for (int i = 0; i < 3000 && !is_quiet(); ++i) {
    bool busy = true;
    for (int round = 0; busy; ++round) {
      require(round < 500, "workers never have nothing to do: " + what_is_left());
      busy = workers_.work();
      settle();
    }
    if (i % 40 == 39) {
      clients_.finish_parents();
      settle();
      continue;
    }
    const Time due = world_.service().next_due();
    world_.server.clock().set(due == never ? world_.now() + 1s : due);
    settle();
  }
  require(is_quiet(), "work is left although everybody works: " + what_is_left());
  world_.ledger.sweep(world_.server.store(), world_.now());
  world_.lines.check_counts(world_.server.store(), world_.ledger);
  world_.service().check_everything();
  workers_.check();
  holders_.check();
}

bool Simulation::is_quiet() {
  return world_.ledger.open().empty() && world_.lines.waiters().empty();
}

std::string Simulation::what_is_left() const {
  std::string text;
  for (const std::int64_t number : world_.ledger.open()) {
    const RunTrace& run = world_.ledger.runs().at(number);
    text += " " + run.workflow_id.value + "(" + std::string(run.events.back().name()) + ")";
  }
  for (const auto& [id, waiter] : world_.lines.waiters()) {
    text += " waiter " + std::to_string(id) + " of " + waiter.request.pool.value;
  }
  return text;
}

// --- Crash after crash ---

void Simulation::run_crashes(int crashes, int writes_min) {
  clients_.begin();
  settle();
  for (int crash = 0; crash < crashes; ++crash) {
    const std::int64_t writes = totals_.writes_acknowledged;
    for (int i = 0; i < 5'000 && totals_.writes_acknowledged < writes + writes_min; ++i) step();
    require(totals_.writes_acknowledged >= writes + writes_min, "too little was acknowledged");
    const int starts = world_.server.starts();
    world_.server.lose_power_soon();
    for (int i = 0; i < 200 && world_.server.starts() == starts; ++i) step();
    if (world_.server.starts() == starts) restart();
    require(world_.server.store().database().quick_check() == "ok", "the database is damaged");
  }
  drain();
}

}  // namespace permit::simulation
