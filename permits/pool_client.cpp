#include "permits/pool_client.h"

namespace permit::permits {

template <class Response, class Request>
Response PoolClient::call(const char* name, Request request) const {
  request.namespace_ = namespace_;
  const std::string rpc = std::string("permit.api.v1.PermitService/") + name;
  return worker::call<Response>(transport_, rpc, request);
}

// --- Pools ---

PoolInfo PoolClient::set(SetPoolRequest request) const {
  if (request.identity.empty()) request.identity = identity_;
  return call<PoolInfo>("SetPool", std::move(request));
}

PoolInfo PoolClient::describe(PoolName pool) const {
  return call<PoolInfo>("DescribePool", PoolRequest{{}, std::move(pool)});
}

std::vector<PoolInfo> PoolClient::list() const {
  return call<ListPoolsResponse>("ListPools", ListPoolsRequest()).pools;
}

PoolInfo PoolClient::drain(PoolName pool, SlotName slot, std::string reason) const {
  return call<PoolInfo>(
      "DrainPool",
      DrainRequest{{}, std::move(pool), std::move(slot), identity_, std::move(reason)});
}

PoolInfo PoolClient::undrain(PoolName pool, SlotName slot, std::string reason) const {
  return call<PoolInfo>(
      "UndrainPool",
      DrainRequest{{}, std::move(pool), std::move(slot), identity_, std::move(reason)});
}

void PoolClient::remove(PoolName pool) const {
  call<EmptyResponse>("DeletePool", PoolRequest{{}, std::move(pool)});
}

// --- Who waits ---

std::vector<WaiterInfo> PoolClient::waiters(PoolName pool) const {
  return call<ListWaitersResponse>("ListWaiters", PoolRequest{{}, std::move(pool)}).waiters;
}

WhyResponse PoolClient::why(Fence waiter) const {
  return call<WhyResponse>("ExplainWaiter", WaiterRequest{{}, waiter});
}

void PoolClient::remove_waiter(Fence waiter, std::string reason) const {
  call<EmptyResponse>("RemoveWaiter",
                      RemoveWaiterRequest{{}, waiter, identity_, std::move(reason)});
}

// --- Holds ---

PermitInfo PoolClient::describe_permit(WorkflowId permit, RunId run) const {
  return call<PermitInfo>("DescribePermit", PermitQuery{{}, std::move(permit), std::move(run)});
}

ListPermitsResponse PoolClient::permits(ListPermitsRequest request) const {
  return call<ListPermitsResponse>("ListPermits", std::move(request));
}

PermitInfo PoolClient::force_release(ForceReleaseRequest request) const {
  if (request.identity.empty()) request.identity = identity_;
  return call<PermitInfo>("ForceReleasePermit", std::move(request));
}

// --- The server ---

std::vector<TaskQueueInfo> PoolClient::task_queues() const {
  return call<ListTaskQueuesResponse>("ListTaskQueues", ListTaskQueuesRequest()).queues;
}

ServerStatus PoolClient::status() const {
  return call<ServerStatus>("GetServerStatus", GetServerStatusRequest());
}

}  // namespace permit::permits
