#include "tests/simulation/simulation.h"

#include <iostream>

#include "orchestrator/protocol/json.h"

namespace permit::simulation {

using namespace std::chrono_literals;

Simulation::Simulation(std::uint64_t seed, const Plan& plan, Totals& totals, Notes notes)
    : notes_(notes), totals_(totals), schedule_(~seed), world_(seed, plan, totals) {
  script_.plan = plan;
  world_.settle = [this] { settle(); };
}

std::ostringstream& Simulation::complaints() {
  static std::ostringstream text;
  return text;
}

std::uint64_t Simulation::hash() const {
  std::uint64_t hash = world_.ledger.hash();
  for (const Segment& segment : script_.segments) {
    for (const std::uint64_t choice : segment.choices) {
      hash = (hash ^ choice) * 1'099'511'628'211U;
    }
  }
  return hash;
}

// --- Phases ---

void Simulation::perform(Phase phase, const Choices* choices) {
  script_.segments.push_back({phase, {}, {}});
  Segment& segment = script_.segments.back();
  if (choices == nullptr) {
    world_.chance.record(segment.choices);
  } else {
    world_.chance.replay(*choices, segment.choices);
  }
  world_.notes = notes_ == Notes::none ? nullptr : &segment.notes;
  ++totals_.phases;
  do_phase(phase);
  if (notes_ == Notes::printed && !segment.notes.empty()) {
    std::cout << world_.now().time_since_epoch().count() << " " << segment.notes << std::endl;
  }
}

void Simulation::do_phase(Phase phase) {
  if (phase != Phase::setup && !workers_) return;  // of a script that has lost its beginning
  switch (phase) {
    case Phase::setup:
      return set_up();
    case Phase::deliver:
      return deliver();
    case Phase::act:
      return act();
    case Phase::inject:
      return inject();
    case Phase::settle:
      return settle();
    case Phase::polls:
      return answer_all_polls();
    case Phase::time:
      return pass_time();
    case Phase::drain:
      return drain();
  }
}

void Simulation::run() {
  perform(Phase::setup);
  for (int i = 0; i < world_.plan.steps; ++i) step();
  perform(Phase::drain);
}

void Simulation::replay(const Script& script) {
  for (const Segment& segment : script.segments) perform(segment.phase, &segment.choices);
}

void Simulation::set_up() {
  if (workers_) return;
  world_.server_.emplace(world_.plan, world_.chance);
  if (world_.plan.level == 2) world_.wire.serve(world_.service(), world_.server().store());
  workers_.emplace(world_);
  clients_.emplace(world_);
  holders_.emplace(world_);
  clients_->begin();
  settle();
}

void Simulation::step() {
  perform(Phase::deliver);
  const int actions = schedule_.between(2, 6);
  for (int i = 0; i < actions; ++i) perform(Phase::act);
  perform(Phase::inject);
  perform(Phase::settle);
  if (schedule_.percent(10)) perform(Phase::polls);
  perform(Phase::time);
}

void Simulation::act() {
  const int die = world_.chance.between(0, 99);
  if (die < 20) {
    clients_->step();
  } else if (die < 40 && world_.plan.holders > 0) {
    holders_->step();
  } else if (world_.chance.percent(world_.plan.operators)) {
    clients_->operate();
  } else {
    workers_->step();
  }
}

void Simulation::deliver() {
  std::vector<std::function<void()>> later;
  for (const auto& request : std::exchange(world_.under_way, {})) {
    if (world_.draining || world_.chance.percent(50)) {
      request();
      sometimes("a request arrives late");
    } else {
      later.push_back(request);
    }
  }
  world_.under_way.insert(world_.under_way.end(), later.begin(), later.end());
}

void Simulation::answer_all_polls() {
  world_.service().answer_all_polls();
  settle();
}

// --- Faults ---

void Simulation::inject() {
  if (world_.fault(world_.plan.crashes)) crash();
  if (world_.server().on_disk()) inject_into_disk();
  if (world_.fault(world_.plan.clock_jumps)) {
    const std::vector<Duration> sizes = {1ms, 1s, 1h, 24h, 240h};
    Duration by = world_.chance.pick(sizes);
    if (world_.chance.percent(50)) by = -by;
    world_.say("the wall clock jumps by " + std::to_string(by.count()) + " us");
    sometimes(by.count() > 0 ? "the wall clock jumps forward" : "the wall clock jumps back");
    world_.server().jump_wall(by);
  }
}

void Simulation::inject_into_disk() {
  Server& server = world_.server();
  const Plan& plan = world_.plan;
  const auto strike = [&](int percent, const char* what) {
    if (!world_.fault(percent)) return false;
    world_.say(what);
    return true;
  };
  if (strike(plan.sync_failures, "a sync will fail")) server.fail_next_sync();
  if (strike(plan.sync_lies, "a sync will fail and be durable")) server.lie_next_sync();
  if (strike(plan.write_failures, "a write will fail")) server.fail_a_write();
  if (strike(plan.read_failures, "a read will fail")) server.fail_a_read();
  if (strike(plan.slow_disk, "a sync will be slow")) {
    server.slow_next_sync(world_.chance.duration(1ms, 30s));
  }
  if (strike(plan.connections_cut, "a connection is cut")) world_.wire.cut_one();
  if (!server.disk_is_full()) {
    if (strike(plan.disk_full, "the disk is full")) server.fill_disk();
  } else if (world_.chance.percent(40)) {
    world_.say("there is space again");
    server.free_disk();
    world_.disk_freed = world_.now();
    sometimes("there is space on the disk again");
  }
}

void Simulation::crash() {
  if (world_.server().on_disk() && world_.chance.percent(70)) {
    world_.say("power will fail");
    world_.server().lose_power_soon();
    return;
  }
  if (world_.chance.percent(50)) settle();
  world_.say("killed");
  restart();
}

void Simulation::pass_time() {
  const int die = world_.chance.between(0, 99);
  Server& server = world_.server();
  if (world_.fault(world_.plan.freezes)) {
    sometimes("everything stands still for long");
    server.wait_until(world_.now() + world_.chance.duration(1s, 6h));
  } else if (die < 40) {
    server.wait_until(world_.now() + world_.chance.duration(0us, world_.plan.time_step));
  } else if (die < 60) {
    const Time due = world_.service().next_due();
    if (due != never) server.wait_until(due);
  } else if (die < 63) {
    server.wait_until(world_.now() + world_.chance.duration(0us, world_.plan.lease_max * 2));
  }
}

void Simulation::restart() {
  Server& server = world_.server();
  ++totals_.crashes;
  sometimes(world_.promises.open() > 0, "a crash with requests that have no answer");
  sometimes(!world_.lines.waiters().empty(), "a crash while somebody waits in line");
  world_.wire.stop();
  world_.let_go_of_store();
  world_.promises.died();
  workers_->disconnected();
  holders_->disconnected();
  if (server.on_disk() && !server.disk_is_full() && server.is_up() &&
      world_.fault(world_.plan.usurpers)) {
    world_.say("another server takes the file");
    const std::string why = server.usurp();
    require(why.empty(), why);
    after_restart();
    return;
  }
  if (server.on_disk()) ++totals_.power_losses;
  server.kill();
  if (server.on_disk() && world_.fault(world_.plan.damage)) {
    const std::string why = server.open_damaged();
    require(why.empty(), why);
  }
  if (server.disk_is_full()) server.free_disk();
  if (world_.fault(20)) {
    sometimes("the server is down for long");
    server.wait_until(world_.now() + world_.chance.duration(0us, world_.plan.lease_max * 2));
  }
  server.restart(world_.draining ? 0 : world_.plan.crashes_of_recovery);
  after_restart();
}

void Simulation::after_restart() {
  Server& server = world_.server();
  if (server.on_disk()) world_.wire.serve(world_.service(), server.store());
  world_.disk_freed = {};
  world_.lines.restarted();
  if (server.on_disk()) {
    world_.ledger.reread(server.store(), world_.now());
    world_.lines.check(server.store(), world_.ledger, {}, false);
    world_.lines.restarted();
  }
  const int starts = server.starts();
  if (world_.fault(world_.plan.other_settings)) clients_->change_settings();
  settle();
  if (server.starts() != starts) return;  // and again
  world_.ledger.sweep(server.store(), world_.batch_time);
  world_.service().check_everything();
}

// --- Batches ---

void Simulation::settle() {
  for (int i = 0; i < 1000; ++i) {
    if (world_.server().on_disk()) world_.wire.pump();
    world_.batch_time = world_.now();
    switch (world_.server().run_batch()) {
      case Server::Batch::idle:
        if (world_.server().on_disk() && world_.wire.pump()) break;
        require(world_.promises.open() == 0, "a request has had no answer");
        return;
      case Server::Batch::died:
        world_.say("died");
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
  store::Store& store = world_.server().store();
  const Time now = world_.batch_time;
  const bool healthy = !world_.server().disk_is_full() && now > world_.disk_freed + 1s;
  const bool at_rest = healthy && !world_.service().has_work();
  // With few requests a batch, what is due may come some batches later.
  world_.ledger.read(store, now, healthy);
  world_.lines.check(store, world_.ledger, now, at_rest);
  if (world_.chance.percent(4)) world_.service().check_everything();
  if (at_rest && world_.chance.percent(4)) {
    world_.ledger.sweep(store, now);
    world_.lines.check_counts(store, world_.ledger);
  }
}

// --- The quiet end ---

void Simulation::drain() {
  world_.draining = true;
  if (world_.server().disk_is_full()) world_.server().free_disk();
  world_.server().wait_until(world_.now() + 2s);
  world_.disk_freed = {};
  settle();
  deliver();
  settle();
  // The last fault may strike only now.
  for (int starts = 0; starts != world_.server().starts();) {
    starts = world_.server().starts();
    clients_->open_pools();
    settle();
  }
  holders_->let_go();
  settle();
  for (int i = 0; i < 3000 && !is_quiet(); ++i) {
    bool busy = true;
    for (int round = 0; busy; ++round) {
      require(round < 500, [&] { return "workers never have nothing to do: " + what_is_left(); });
      busy = workers_->work();
      settle();
    }
    if (i % 40 == 39) {
      clients_->finish_parents();
      settle();
      continue;
    }
    const Time due = world_.service().next_due();
    world_.server().wait_until(due == never ? world_.now() + 1s : due);
    settle();
  }
  require(is_quiet(), [&] { return "work is left although everybody works: " + what_is_left(); });
  world_.ledger.sweep(world_.server().store(), world_.now());
  world_.lines.check_counts(world_.server().store(), world_.ledger);
  world_.service().check_everything();
  workers_->check();
  holders_->check();
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

void Simulation::tell_open_runs() const {
  constexpr std::size_t events_max = 60;
  for (const std::int64_t number : world_.ledger.open()) {
    const RunTrace& run = world_.ledger.runs().at(number);
    std::cout << run.workflow_id.value << " run " << run.run_id.value << "\n";
    const std::size_t first =
        run.events.size() > events_max ? run.events.size() - events_max : std::size_t{0};
    for (std::size_t i = first; i < run.events.size(); ++i) {
      std::cout << "  " << to_json(run.events[i]) << "\n";
    }
  }
}

// --- Crash after crash ---

void Simulation::run_crashes(int crashes, int writes_min) {
  perform(Phase::setup);
  for (int crash = 0; crash < crashes; ++crash) {
    const std::int64_t writes = totals_.writes_acknowledged;
    for (int i = 0; i < 5'000 && totals_.writes_acknowledged < writes + writes_min; ++i) step();
    require(totals_.writes_acknowledged >= writes + writes_min, "too little was acknowledged");
    const int starts = world_.server().starts();
    world_.server().lose_power_soon();
    for (int i = 0; i < 200 && world_.server().starts() == starts; ++i) step();
    if (world_.server().starts() == starts) restart();
    require(world_.server().store().database().quick_check() == "ok", "the database is damaged");
  }
  perform(Phase::drain);
}

}  // namespace permit::simulation
