// What a holder that is not a workflow asks, as typed calls: a place in line, a permit, more time,
// its end. A call blocks; errors of the server come out as Error, with its code and reason:
// POOL_FULL, WAIT_TIMED_OUT, LEASE_LOST and so on. Thread-safe if the transport is.
//
//   HolderClient holder(transport);
//   AcquireResponse grant = holder.acquire(request);  // again with the same request id, until
//   while (grant.ticket) grant = holder.acquire(request);  // it is no place in line any more
//   holder.renew(grant.slots[0].id, grant.token);
//   holder.release(grant.slots[0].id, grant.token);
#pragma once

#include <string>
#include <utility>

#include "orchestrator/protocol/pools.h"
#include "worker/client.h"

namespace permit::permits {

class HolderClient {
 public:
  // `transport` outlives it. In requests the namespace is filled in.
  explicit HolderClient(worker::Transport& transport, std::string namespace_name = "default")
      : transport_(transport), namespace_(std::move(namespace_name)) {}

  // Waits for up to the request's `wait`; then the answer is a place in line. The same request id
  // gets the same place, and the same grant for as long as it lasts.
  AcquireResponse acquire(AcquireRequest request) const;
  // Leaves the line, or gives back what has been granted meanwhile. For whoever does not know what
  // became of the request: it is done once or not at all, and may be repeated.
  void abandon(AcquireRequest request) const;

  // The new deadline. Throws Error LEASE_LOST if the permit is not held with this token any more.
  Time renew(const WorkflowId& permit, const std::string& token) const;
  PermitInfo release(const WorkflowId& permit, const std::string& token) const;

 private:
  template <class Response, class Request>
  Response call(const char* name, Request request) const;

  worker::Transport& transport_;
  const std::string namespace_;
};

}  // namespace permit::permits
