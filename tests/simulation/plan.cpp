#include "tests/simulation/plan.h"

namespace permit::simulation {

namespace {

using namespace std::chrono_literals;

// A fault that this seed has or has not.
int maybe(Chance& chance, int likely, int most) {
  return chance.percent(likely) ? chance.between(1, most) : 0;
}

}  // namespace

Plan draw_plan(Chance& chance) {
  Plan plan;
  plan.on_disk = chance.percent(35);
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
  plan.steps = chance.between(20, 90);
  plan.parents = chance.percent(80) ? chance.between(1, 8) : chance.between(8, 30);
  plan.holders = chance.percent(60) ? chance.between(1, 5) : 0;
  const std::vector<Duration> leases = {500ms, 2s, 10s, 60s, 10min, 45min};
  plan.lease_min = chance.pick(leases);
  plan.lease_max = std::max(plan.lease_min, chance.pick(leases));
  plan.time_step = chance.duration(10ms, std::max<Duration>(plan.lease_min, 1s));
  plan.fair = chance.pick(std::vector<int>{0, 50, 80, 100});
  plan.several = maybe(chance, 30, 40);
  plan.sleepers = maybe(chance, 70, 90);
  plan.activities = chance.percent(60) ? chance.between(30, 100) : 0;
  plan.children = maybe(chance, 60, 60);
  if (chance.percent(30)) {
    plan.orphans = chance.between(50, 100);
    plan.parents = chance.between(1, 3);  // so that each id soon has its next run
  }
  plan.continue_as_new = maybe(chance, 40, 50);
  plan.close = chance.between(5, 40);
  plan.invalid = maybe(chance, 40, 12);
  plan.operators = maybe(chance, 50, 20);
  plan.crashes = maybe(chance, 60, 15);
  plan.disk_full = plan.on_disk ? maybe(chance, 30, 10) : 0;
  plan.sync_failures = plan.on_disk ? maybe(chance, 30, 6) : 0;
  plan.replies_lost = maybe(chance, 50, 25);
  plan.requests_late = maybe(chance, 40, 25);
  plan.requests_twice = maybe(chance, 40, 25);
  plan.workers_die = maybe(chance, 50, 25);
  plan.pauses = maybe(chance, 50, 25);
  plan.permit_workers = chance.percent(20) ? 0 : chance.between(1, 3);
  return plan;
}

}  // namespace permit::simulation
