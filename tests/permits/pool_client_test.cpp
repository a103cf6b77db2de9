// What an operator asks of pools through the typed client, and the ledger that it reads.
#include "permits/pool_client.h"

#include "tests/permits/world.h"

using namespace permit;
using namespace permit::permits;
using namespace permit::test;
using namespace permit::worker;

namespace {

const PoolName gpu("gpu");

std::string text_of(const PoolInfo& pool) {
  std::string text =
      std::to_string(pool.grants.value) + " granted, " + std::to_string(pool.held) + " held";
  for (const OutcomeCount& count : pool.outcomes) {
    text += ", " + std::string(boost::describe::enum_to_string(count.outcome, "?"));
    if (!count.cause.empty()) text += " (" + count.cause + ")";
    text += " " + std::to_string(count.holds.value);
  }
  return text;
}

std::string reason_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.reason();
  }
  return "none";
}

ForceReleaseRequest force(const PermitInfo& permit) {
  ForceReleaseRequest request;
  request.id = permit.id;
  request.fence = permit.fence;
  request.reason = "it hangs";
  return request;
}

enum Kind { releases, sleeps_past_lease, sleeps };

Async<std::string> hold(Workflow workflow, int kind) {
  const Semaphore gpus(workflow, "gpu", 4);
  const auto options = PermitOptions().lease(10min).fair().reason("for a test");
  const Permit permit = co_await gpus.acquire(options);
  if (kind == releases) {
    co_await permit.release();
  }
  const Duration time = kind == sleeps_past_lease ? 20min : 5min;
  co_await workflow.sleep(time);
  co_return permit.id();
}

}  // namespace

TEST_CASE("A pool's outcomes and what it holds are its grants") {
  PermitWorld world(hold);
  const PoolClient pools(world.environment->client().transport());
  world.start("released", releases);
  world.start("expired", sleeps_past_lease);
  world.environment->settle();
  CHECK(text_of(pools.describe(gpu)) == "2 granted, 1 held, released 1");
  world.environment->advance(15min);
  CHECK(text_of(pools.describe(gpu)) == "2 granted, 0 held, released 1, lease_expired (timer) 1");

  const auto closed = world.start("closed", sleeps);
  world.start("forced", sleeps);
  world.environment->settle();
  closed.terminate("enough");
  for (const SlotInfo& slot : pools.describe(gpu).slots) {
    if (slot.permit) CHECK(pools.force_release(force(*slot.permit)).possible_overlap);
  }
  world.environment->settle();
  const std::string all =
      "4 granted, 0 held, released 1, lease_expired (timer) 1, holder_closed (terminated) 1, "
      "force_released (operator) 1";
  CHECK(text_of(pools.describe(gpu)) == all);
  world.environment->restart_server();
  CHECK(text_of(pools.list().at(0)) == all);
}

TEST_CASE("The ledger says of which holds the holder may have worked on") {
  PermitWorld world(hold);
  const PoolClient pools(world.environment->client().transport());
  const auto released = world.start("released", releases);
  world.start("expired", sleeps_past_lease);
  const auto closed = world.start("closed", sleeps);
  const auto forced = world.start("forced", sleeps);
  world.environment->settle();
  closed.terminate("enough");
  ListPermitsRequest all;
  all.pool = gpu;
  for (const PermitInfo& permit : pools.permits(all).permits) {
    if (permit.holder == "forced") pools.force_release(force(permit));
  }
  world.environment->advance(15min);
  std::map<std::string, bool> overlaps;
  for (const PermitInfo& permit : pools.permits(all).permits) {
    overlaps[permit.holder] = permit.possible_overlap;
    const PermitInfo described = pools.describe_permit(permit.id, permit.run_id);
    CHECK(described.possible_overlap == permit.possible_overlap);
    CHECK(described.outcome == permit.outcome);
    CHECK(described.holder_run_id == permit.holder_run_id);
  }
  CHECK(overlaps ==
        std::map<std::string, bool>{
            {"released", false}, {"expired", true}, {"closed", true}, {"forced", true}});
  all.outcome = Outcome::lease_expired;
  all.page_size = 1;
  REQUIRE(pools.permits(all).permits.size() == 1);
  CHECK(pools.permits(all).permits[0].holder == "expired");
}

TEST_CASE("Each call of the client does what it says") {
  PermitWorld world(hold);
  const PoolClient pools(world.environment->client().transport(), "the operator");
  CHECK(pools.list().empty());
  SetPoolRequest settings;
  settings.pool = gpu;
  settings.slots = {SlotName("a"), SlotName("b")};
  settings.order = PermitOrder::fair;
  CHECK(pools.set(settings).capacity == 2);
  CHECK(pools.describe(gpu).order == PermitOrder::fair);
  CHECK(pools.drain(gpu, SlotName("b")).slots.at(1).drained);
  CHECK(pools.drain(gpu).drained);

  const auto run = world.start("drained", sleeps);
  world.environment->settle();
  REQUIRE(pools.waiters(gpu).size() == 1);
  const WaiterInfo waiter = pools.waiters(gpu)[0];
  CHECK(waiter.state == "in_line");
  CHECK(pools.why(waiter.id).reason == "pool_drained");
  CHECK_FALSE(pools.undrain(gpu).drained);
  CHECK(pools.waiters(gpu).empty());
  CHECK(pools.describe(gpu).slots.at(0).permit->holder == "drained");

  world.start("second", sleeps);
  world.environment->settle();
  CHECK(pools.why(pools.waiters(gpu).at(0).id).blocked_by.size() == 1);
  CHECK_FALSE(pools.undrain(gpu, SlotName("b")).slots.at(1).drained);
  CHECK(pools.describe(gpu).held == 2);

  const auto third = world.start("third", sleeps);
  world.environment->settle();
  pools.remove_waiter(pools.waiters(gpu).at(0).id);
  CHECK_THROWS_WITH_AS(third.result(), doctest::Contains("removed from the line"), WorkflowFailed);
  CHECK(run.result() == "permit:gpu:a");
}

TEST_CASE("Errors come out of the client with their reasons") {
  PermitWorld world(hold);
  Transport& transport = world.environment->client().transport();
  const PoolClient pools(transport);
  CHECK(reason_of([&] { pools.describe(gpu); }) == "POOL_NOT_FOUND");
  CHECK(reason_of([&] { pools.why(Fence{5}); }) == "WAITER_NOT_FOUND");
  CHECK(reason_of([&] { pools.remove_waiter(Fence{5}); }) == "WAITER_NOT_FOUND");
  CHECK(reason_of([&] { pools.describe_permit(WorkflowId("no permit")); }) == "PERMIT_ID_INVALID");
  CHECK(reason_of([&] { transport.call("permit.api.v1.PermitService/Nothing", "{}"); }) ==
        "NOT_IN_TEST");
  const PoolClient elsewhere(transport, "test", "elsewhere");
  CHECK(reason_of([&] { elsewhere.list(); }) == "NAMESPACE_NOT_FOUND");

  const auto run = world.start("holds", sleeps);
  world.environment->settle();
  ListPermitsRequest all;
  PermitInfo permit = pools.permits(all).permits.at(0);
  permit.fence = Fence{77};
  CHECK(reason_of([&] { pools.force_release(force(permit)); }) == "HOLDER_CHANGED");
}

TEST_CASE("An RPC's name may say whose service it is of") {
  CHECK(path_of("QueryWorkflow") ==
        "/temporal.api.workflowservice.v1.WorkflowService/QueryWorkflow");
  CHECK(path_of("permit.api.v1.PermitService/ListPools") ==
        "/permit.api.v1.PermitService/ListPools");
}
