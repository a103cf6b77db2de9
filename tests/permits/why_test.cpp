// Why a workflow waits for a permit: in line, and before it stands there.
#include "permits/pool_client.h"
#include "tests/permits/world.h"

using namespace permit;
using namespace permit::permits;
using namespace permit::test;
using namespace permit::worker;

namespace {

const PoolName gpu("gpu");

enum Kind { holds, asks_any, asks_fair, asks_two };

Async<std::string> use(Workflow workflow, int kind) {
  const Semaphore gpus(workflow, "gpu", 2);
  auto options = PermitOptions().lease(10min).backoff(10s, 60s);
  if (kind == holds) options.lease(1h);
  if (kind == asks_fair) options.fair();
  if (kind == asks_two) {
    const auto both = co_await gpus.acquire_n(2, options);
    co_return "both";
  }
  const Permit permit = co_await gpus.acquire(options);
  if (kind == holds) {
    co_await workflow.sleep(50min);
  }
  co_return permit.id();
}

// Two holders, since a minute, of the pool's two slots.
class BusyPool : public PermitWorld {
 public:
  BusyPool() : PermitWorld(use), pools(environment->client().transport()) {
    start("one", holds);
    start("two", holds);
    environment->advance(1min);
  }
  WaiterInfo waiter(const std::string& holder) const {
    for (const WaiterInfo& waiter : pools.waiters(gpu)) {
      if (waiter.holder == holder) return waiter;
    }
    FAIL("nobody waits who is called " << holder);
    return {};
  }

  const PoolClient pools;
};

void check_blocked(const WhyResponse& why, Duration age) {
  CHECK(why.reason == "slots_held");
  REQUIRE(why.blocked_by.size() == 2);
  for (const PermitInfo& permit : why.blocked_by) {
    CHECK((permit.holder == "one" || permit.holder == "two"));
    CHECK_FALSE(permit.holder_run_id.empty());
    CHECK(permit.age == age);
    CHECK(permit.lease_left == Duration(1h) - age);
    // The lease, and the grace in which its worker may end it.
    CHECK(why.latest_free == permit.since + 1h + 6min);
  }
}

}  // namespace

TEST_CASE("A waiter in line is told who holds its slots, for how long, and when one must free") {
  BusyPool world;
  const auto run = world.start("fair", asks_fair);
  world.environment->advance(30s);
  const WaiterInfo waiter = world.waiter("fair");
  CHECK(waiter.state == "in_line");
  CHECK(waiter.position == 1);
  CHECK(waiter.order == PermitOrder::fair);
  CHECK(waiter.probes == 0);
  CHECK(waiter.holder_run_id == run.execution().run_id);
  const WhyResponse why = world.pools.why(waiter.id);
  check_blocked(why, 90s);
  CHECK(why.message == "2 slots that would do are held; position 1 in the line");
}

TEST_CASE("A run that backs off is seen, with its rounds so far and when it asks again") {
  BusyPool world;
  const auto run = world.start("any", asks_any);
  world.environment->settle();
  const WaiterInfo first = world.waiter("any");
  CHECK(first.state == "backing_off");
  CHECK(first.position == 0);
  CHECK(first.order == PermitOrder::any);
  CHECK(first.count == 1);
  CHECK(first.probes == 1);
  CHECK(first.holder_run_id == run.execution().run_id);
  CHECK(first.since == world.environment->now());
  CHECK(first.expires >= first.since + 8s);
  CHECK(first.expires <= first.since + 12s);
  const auto timer = PermitWorld::all<event::TimerStarted>(run).at(0);
  CHECK(first.expires == first.since + timer.start_to_fire_timeout);
  const WhyResponse why = world.pools.why(first.id);
  CHECK(why.waiter.state == "backing_off");
  CHECK(why.waiter.probes == 1);
  CHECK(why.message.find(
            "2 slots that would do are held; rounds that found no slot: 1; it asks again "
            "at 2026-01-01T00:01:") == 0);
  check_blocked(why, 1min);

  world.environment->advance(15s);
  const WaiterInfo later = world.waiter("any");
  CHECK(later.state == "backing_off");
  CHECK(later.probes == 2);
  CHECK(later.id > first.id);
}

TEST_CASE("The rounds that a run has made survive restarts, and it takes them into the line") {
  BusyPool world;
  world.start("any", asks_any);
  world.environment->settle();
  for (int probes = 1; probes <= 5; ++probes) {
    const WaiterInfo before = world.waiter("any");
    CHECK(before.state == "backing_off");
    CHECK(before.probes == probes);
    world.environment->restart_server();
    world.environment->restart_worker();
    const WaiterInfo after = world.waiter("any");
    CHECK(to_json(ListWaitersResponse{{after}}) == to_json(ListWaitersResponse{{before}}));
    // And a while in which the worker that has gone is still trusted to take the task.
    world.environment->advance(after.expires - world.environment->now() + 11s);
  }
  const WaiterInfo waiter = world.waiter("any");
  CHECK(waiter.state == "in_line");
  CHECK(waiter.position == 1);
  CHECK(waiter.probes == 5);
  CHECK(world.pools.waiters(gpu).size() == 1);
}

TEST_CASE("Those who back off are listed after the line, and are not waiting in it") {
  BusyPool world;
  world.start("any", asks_any);
  world.environment->settle();
  world.start("fair", asks_fair);
  world.environment->settle();
  const auto waiters = world.pools.waiters(gpu);
  REQUIRE(waiters.size() == 2);
  CHECK(waiters[0].holder == "fair");
  CHECK(waiters[1].holder == "any");
  CHECK(world.pools.describe(gpu).waiting == 1);
}

TEST_CASE("Who backs off cannot be removed from a line it is not in") {
  BusyPool world;
  const auto run = world.start("any", asks_any);
  world.environment->settle();
  const WaiterInfo waiter = world.waiter("any");
  try {
    world.pools.remove_waiter(waiter.id);
    FAIL("it was removed");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::failed_precondition);
    CHECK(error.reason() == "WAITER_BACKING_OFF");
    CHECK(std::string(error.message()).find("asks again by itself at 2026-01-01T00:01:") !=
          std::string::npos);
  }
  CHECK(world.waiter("any").id == waiter.id);
  run.terminate("enough");
  CHECK(world.pools.waiters(gpu).empty());
  CHECK_THROWS_AS(world.pools.why(waiter.id), Error);
}

TEST_CASE("Who asks for several slots is told of them, and a grant ends the count") {
  BusyPool world;
  const auto run = world.start("both", asks_two);
  world.environment->settle();
  CHECK(world.waiter("both").count == 2);
  world.permit_run("one").terminate("enough");
  world.environment->settle();
  // Woken by the one slot that is free, which is not enough, until it stands in line.
  CHECK(world.waiter("both").probes == 5);
  CHECK(world.waiter("both").state == "in_line");
  CHECK(world.pools.why(world.waiter("both").id).reason == "slots_held");
  world.permit_run("two").terminate("enough");
  CHECK(run.result() == "both");
  CHECK(world.pools.waiters(gpu).empty());
}
