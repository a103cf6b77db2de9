// What operators ask of pools, as typed calls. A call blocks; errors of the server come out as
// Error, with its code and reason. Thread-safe if the transport is.
//
//   worker::HttpTransport transport(worker::default_address());
//   PoolClient pools(transport);
//   for (const WaiterInfo& waiter : pools.waiters(PoolName("gpu"))) {
//     std::cout << pools.why(waiter.id).message << "\n";
//   }
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "orchestrator/protocol/pools.h"
#include "worker/client.h"

namespace permit::permits {

class PoolClient {
 public:
  // `transport` outlives it. In requests the namespace is filled in, and an absent identity.
  explicit PoolClient(worker::Transport& transport, std::string identity = "permit-client",
                      std::string namespace_name = "default")
      : transport_(transport),
        identity_(std::move(identity)),
        namespace_(std::move(namespace_name)) {}

  // --- Pools ---
  PoolInfo set(SetPoolRequest request) const;
  PoolInfo describe(PoolName pool) const;
  std::vector<PoolInfo> list() const;
  // Nothing more is granted of the slot, or of the whole pool; who holds one keeps it.
  PoolInfo drain(PoolName pool, SlotName slot = {}, std::string reason = {}) const;
  PoolInfo undrain(PoolName pool, SlotName slot = {}, std::string reason = {}) const;
  // Of one that nobody holds or waits for.
  void remove(PoolName pool) const;

  // --- Who waits ---
  // The line, then those who are backing off.
  std::vector<WaiterInfo> waiters(PoolName pool) const;
  WhyResponse why(Fence waiter) const;
  // Of the line. Throws Error WAITER_BACKING_OFF for one who does not stand in it.
  void remove_waiter(Fence waiter, std::string reason = {}) const;

  // --- Holds ---
  // Without a run id: the current or last one.
  PermitInfo describe_permit(WorkflowId permit, RunId run = {}) const;
  // One page of the ledger, newest first.
  ListPermitsResponse permits(ListPermitsRequest request) const;
  // Throws Error HOLDER_CHANGED if by now another run holds the slot than the request means.
  PermitInfo force_release(ForceReleaseRequest request) const;

  // --- The server ---
  std::vector<TaskQueueInfo> task_queues() const;
  ServerStatus status() const;

 private:
  template <class Response, class Request>
  Response call(const char* name, Request request) const;

  worker::Transport& transport_;
  const std::string identity_;
  const std::string namespace_;
};

}  // namespace permit::permits
