// What a pool is beside its number of slots: names, rates, operators' changes.
#include <algorithm>

#include "permits/pool_client.h"
#include "tests/permits/world.h"

using namespace permit;
using namespace permit::permits;
using namespace permit::test;
using namespace permit::worker;

namespace {

const PoolName gpu("gpu");

// Takes a permit as its number says and keeps it for that many seconds; returns when it had it, in
// milliseconds of the test, and the slot.
Async<std::string> user(Workflow workflow, int seconds) {
  const Semaphore pool(workflow, "gpu");
  const auto options = PermitOptions().fair().lease(1h);
  const Permit permit = co_await pool.acquire(options);
  const std::string had =
      std::to_string(workflow.now().time_since_epoch() / 1ms) + " " + permit.slot();
  co_await workflow.sleep(seconds * 1s);
  co_return had;
}

struct SetWorld : PermitWorld {
  explicit SetWorld(SetPoolRequest request)
      : PermitWorld(user), pools(environment->client().transport()) {
    request.pool = gpu;
    pools.set(std::move(request));
  }
  std::vector<std::int64_t> grants(const std::vector<Run>& runs) {
    std::vector<std::int64_t> times;
    for (const Run& run : runs) times.push_back(std::stoll(run.result()));
    std::sort(times.begin(), times.end());
    return times;
  }
  const PoolClient pools;
};

SetPoolRequest slots(int capacity) {
  SetPoolRequest request;
  request.capacity = capacity;
  return request;
}

}  // namespace

TEST_CASE("A rate holds over every stretch of time, second boundaries or not") {
  SetPoolRequest request = slots(100);
  request.rate = PoolRate{10, 5};
  SetWorld world(request);
  std::vector<PermitWorld::Run> runs;
  for (int burst = 0; burst < 4; ++burst) {
    for (int i = 0; i < 20; ++i) runs.push_back(world.start("r" + std::to_string(runs.size()), 0));
    world.environment->advance(950ms);
  }
  const auto times = world.grants(runs);
  REQUIRE(times.size() == 80);
  for (std::size_t from = 0; from < times.size(); ++from) {
    for (std::size_t to = from; to < times.size(); ++to) {
      const double seconds = static_cast<double>(times[to] - times[from]) / 1'000;
      CHECK(static_cast<double>(to - from + 1) <= 5 + 10 * seconds + 0.02);
    }
  }
  // And it is used: 5 at once, the other 75 as fast as they may.
  CHECK(times[4] == times[0]);
  CHECK(times.back() - times.front() <= 7'520);
}

TEST_CASE("No token is spent while somebody waits for a slot") {
  SetPoolRequest request = slots(1);
  request.rate = PoolRate{1.0 / 60, 2};
  SetWorld world(request);
  std::vector<PermitWorld::Run> runs;
  runs.push_back(world.start("holder", 600));
  world.environment->settle();
  for (int i = 0; i < 3; ++i) runs.push_back(world.start("w" + std::to_string(i), 0));
  world.environment->advance(600s);
  const auto times = world.grants(runs);
  CHECK(times[1] - times[0] == 600'000);
  CHECK(times[2] == times[1]);  // both tokens were there
  CHECK(times[3] - times[2] == 60'000);
}

TEST_CASE("Named slots; as registered; raised, drained and lowered while somebody waits") {
  SetPoolRequest named;
  named.slots = {SlotName("left"), SlotName("right")};
  SetWorld world(named);
  const auto first = world.start("first", 3'000);
  const auto second = world.start("second", 3'000);
  const auto third = world.start("third", 0);
  world.environment->settle();
  CHECK(world.pools.describe(gpu).held == 2);
  CHECK(world.pools.describe(gpu).waiting == 1);
  named.pool = gpu;
  named.slots->emplace_back("middle");
  world.pools.set(named);
  CHECK(third.result().ends_with(" middle"));

  world.pools.drain(gpu);
  const auto fourth = world.start("fourth", 0);
  world.environment->advance(10min);
  CHECK(world.pools.describe(gpu).waiting == 1);
  const WhyResponse why = world.pools.why(world.pools.waiters(gpu).at(0).id);
  CHECK(why.reason == "pool_drained");
  named.slots->pop_back();
  world.pools.set(named);
  world.pools.undrain(gpu);
  world.environment->advance(10min);
  CHECK(world.pools.describe(gpu).waiting == 1);
  CHECK_FALSE(fourth.result().ends_with(" middle"));  // when one of the others is free
}

TEST_CASE("An operator's capacity and order hold against what callers say") {
  const auto believes_four = [](Workflow workflow, int) -> Async<std::string> {
    const Semaphore pool(workflow, "gpu", 4);
    const std::optional<Permit> first = co_await pool.try_acquire();
    const std::optional<Permit> second = co_await pool.try_acquire();
    co_return (first ? "one" : "none") + std::string(second ? " two" : "");
  };
  PermitWorld world(+believes_four);
  const PoolClient pools(world.environment->client().transport());
  SetPoolRequest request = slots(1);
  request.pool = gpu;
  request.order = PermitOrder::fair;
  pools.set(request);
  CHECK(world.start("believer", 0).result() == "one");
  const PoolInfo pool = pools.describe(gpu);
  CHECK(pool.capacity == 1);
  REQUIRE(pool.alert.has_value());
  CHECK(pool.alert->slots == 4);
}

TEST_CASE("What a caller says of itself is kept with the hold") {
  const auto described = [](Workflow workflow, int) -> Async<std::string> {
    const Mutex mutex(workflow, "nightly");
    const auto options = PermitOptions().reason("backup").label("team", "data").task_queue("own");
    const Permit permit = co_await mutex.acquire(options);
    co_await workflow.sleep(1min);
    co_return permit.id();
  };
  PermitWorld world(+described);
  const PoolClient pools(world.environment->client().transport());
  const auto run = world.start("night", 0);
  world.environment->settle();
  const PermitInfo permit = pools.describe_permit(WorkflowId("permit:nightly:0"));
  CHECK(permit.holder == "night");
  CHECK(permit.reason == "backup");
  CHECK(run.result() == "permit:nightly:0");
  const auto started =
      PermitWorld::all<event::WorkflowExecutionStarted>(world.permit_run("permit:nightly:0")).at(0);
  CHECK(started.task_queue.name == "own");
  CHECK(started.permit_request->labels.at("team") == "data");
}

TEST_CASE("Every hold is in the ledger, with how it ended") {
  const auto clean = [](Workflow workflow, int cycles) -> Async<std::string> {
    const Semaphore pool(workflow, "gpu", 4);
    for (int i = 0; i < cycles; ++i) const Permit permit = co_await pool.acquire();
    co_return "done";
  };
  PermitWorld world(+clean);
  const PoolClient pools(world.environment->client().transport());
  for (int i = 0; i < 10; ++i) world.start("clean" + std::to_string(i), 20).result();
  const PoolInfo pool = pools.describe(gpu);
  CHECK(pool.grants.value == 200);
  REQUIRE(pool.outcomes.size() == 1);
  CHECK(pool.outcomes[0].outcome == Outcome::released);
  CHECK(pool.outcomes[0].holds.value == 200);
}
