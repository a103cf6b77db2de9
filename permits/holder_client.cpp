#include "permits/holder_client.h"

namespace permit::permits {

template <class Response, class Request>
Response HolderClient::call(const char* name, Request request) const {
  request.namespace_ = namespace_;
  const std::string rpc = std::string("permit.api.v1.PermitService/") + name;
  return worker::call<Response>(transport_, rpc, request);
}

AcquireResponse HolderClient::acquire(AcquireRequest request) const {
  return call<AcquireResponse>("AcquirePermit", std::move(request));
}

void HolderClient::abandon(AcquireRequest request) const {
  request.wait = Duration(0);  // who is not willing to wait leaves the line, unless it has a grant
  AcquireResponse granted;
  try {
    granted = acquire(std::move(request));
  } catch (const Error& error) {
    if (error.reason() != "POOL_FULL") throw;
  }
  for (const GrantedSlot& slot : granted.slots) {
    try {
      release(slot.id, granted.token);
    } catch (const Error& error) {
      if (error.reason() != "LEASE_LOST") throw;
    }
  }
}

Time HolderClient::renew(const WorkflowId& permit, const std::string& token) const {
  return call<RenewResponse>("RenewPermit", HolderRequest{{}, permit, token, {}}).deadline;
}

PermitInfo HolderClient::release(const WorkflowId& permit, const std::string& token) const {
  return call<PermitInfo>("ReleasePermit", HolderRequest{{}, permit, token, {}});
}

}  // namespace permit::permits
