// etcd over gRPC: a key is created in a transaction if it is not there, bound to a lease.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace permit::bench {

class LockSession;

// `client`: each client has one lease, and deletes the key. `lock`: each lock has a lease of its
// own, and the release is the end of the lease.
enum class EtcdLease { client, lock };

// Whether this program was built with libnghttp2.
bool has_etcd_client();
std::unique_ptr<LockSession> etcd_session(std::uint16_t port, const std::string& key,
                                          EtcdLease lease);

}  // namespace permit::bench
