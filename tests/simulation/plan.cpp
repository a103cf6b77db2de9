#include "tests/simulation/plan.h"

#include <boost/mp11.hpp>

#include "orchestrator/protocol/json_codec.h"

namespace permit {
PERMIT_JSON(simulation::Plan)
}  // namespace permit

namespace permit::simulation {

namespace {

using namespace std::chrono_literals;

// A fault that this seed has or has not.
int maybe(Chance& chance, int likely, int most) {
  return chance.percent(likely) ? chance.between(1, most) : 0;
}

void draw_world(Chance& chance, Plan& plan) {
  const int pools = chance.between(1, 3);
  for (int i = 0; i < pools; ++i) {
    PoolPlan pool;
    pool.name = PoolName("pool" + std::to_string(i));
    pool.capacity = chance.between(1, 6);
    if (chance.percent(40)) pool.capacity = 1;
    pool.configured = chance.percent(60);
    pool.rate = pool.configured && chance.percent(15);
    plan.pools.push_back(std::move(pool));
  }
  plan.steps = chance.between(30, 120);
  plan.parents = chance.percent(80) ? chance.between(1, 8) : chance.between(8, 30);
  plan.sections = chance.percent(35) ? chance.between(1, 4) : 0;
  plan.holders = chance.percent(60) ? chance.between(1, 5) : 0;
  const std::vector<Duration> leases = {500ms, 2s, 10s, 60s, 10min, 45min};
  plan.lease_min = chance.pick(leases);
  plan.lease_max = std::max(plan.lease_min, chance.pick(leases));
  plan.time_step = chance.duration(10ms, std::max<Duration>(plan.lease_min, 1s));
  if (chance.percent(25)) plan.retention = chance.duration(10s, plan.lease_max * 4 + 1min);
  plan.fences_high = chance.percent(10);
  plan.permit_workers = chance.percent(20) ? 0 : chance.between(1, 3);
  if (chance.percent(40)) plan.permit_runners = plan.permit_workers;
}

void draw_work(Chance& chance, Plan& plan) {
  plan.fair = chance.pick(std::vector<int>{0, 50, 80, 100});
  plan.several = maybe(chance, 30, 40);
  plan.sleepers = maybe(chance, 70, 90);
  plan.activities = chance.percent(60) ? chance.between(30, 100) : 0;
  plan.children = maybe(chance, 60, 60);
  if (chance.percent(30)) {
    plan.orphans = chance.between(50, 100);
    plan.parents = chance.between(1, 3);  // so that each id soon has its next run
  }
  plan.continue_as_new = maybe(chance, 50, 70);
  plan.close = chance.between(5, 40);
  plan.invalid = maybe(chance, 40, 12);
  plan.operators = maybe(chance, 50, 20);
  plan.callers = maybe(chance, 40, 30);
}

void draw_faults(Chance& chance, Plan& plan) {
  const bool on_disk = plan.level == 2;
  plan.crashes = maybe(chance, 60, 15);
  plan.crashes_of_recovery = on_disk ? maybe(chance, 40, 50) : 0;
  plan.usurpers = on_disk ? maybe(chance, 40, 40) : 0;
  plan.damage = on_disk ? maybe(chance, 40, 40) : 0;
  plan.other_settings = maybe(chance, 40, 60);
  plan.disk_full = on_disk ? maybe(chance, 30, 10) : 0;
  plan.sync_failures = on_disk ? maybe(chance, 30, 6) : 0;
  plan.sync_lies = on_disk ? maybe(chance, 30, 6) : 0;
  plan.write_failures = on_disk ? maybe(chance, 30, 6) : 0;
  plan.read_failures = on_disk ? maybe(chance, 20, 6) : 0;
  plan.slow_disk = on_disk ? maybe(chance, 30, 20) : 0;
  plan.replies_lost = maybe(chance, 50, 25);
  plan.requests_late = maybe(chance, 40, 25);
  plan.requests_twice = maybe(chance, 40, 25);
  plan.connections_cut = on_disk ? maybe(chance, 40, 10) : 0;
  plan.workers_die = maybe(chance, 50, 25);
  plan.pauses = maybe(chance, 50, 25);
  plan.clock_jumps = maybe(chance, 30, 20);
  plan.freezes = maybe(chance, 20, 4);
}

}  // namespace

Plan draw_plan(Chance& chance, int level) {
  Plan plan;
  plan.level = level;
  draw_world(chance, plan);
  draw_work(chance, plan);
  draw_faults(chance, plan);
  return plan;
}

std::string to_text(const Plan& plan) { return to_json(plan); }
Plan plan_of(const std::string& text) { return read_json<Plan>(text); }

std::vector<Plan> simpler(const Plan& plan) {
  std::vector<Plan> plans;
  const auto keep = {"level", "steps", "parents"};
  boost::mp11::mp_for_each<boost::describe::describe_members<Plan, boost::describe::mod_public>>(
      [&](auto member) {
        using Member = std::remove_cvref_t<decltype(plan.*member.pointer)>;
        if constexpr (std::is_arithmetic_v<Member>) {
          const std::string_view name = member.name;
          if (plan.*member.pointer == Member{}) return;
          for (const char* kept : keep) {
            if (name == kept) return;
          }
          plans.push_back(plan);
          plans.back().*member.pointer = Member{};
        }
      });
  return plans;
}

}  // namespace permit::simulation
