#include "tests/bench/peers/etcd_session.h"

#include <stdexcept>

#include "tests/bench/peers/grpc.h"
#include "tests/bench/peers/lock_session.h"

#ifdef PERMIT_BENCH_NGHTTP2

namespace permit::bench {

namespace {

const std::string grant_method = "/etcdserverpb.Lease/LeaseGrant";
const std::string revoke_method = "/etcdserverpb.Lease/LeaseRevoke";
const std::string txn_method = "/etcdserverpb.KV/Txn";
const std::string delete_method = "/etcdserverpb.KV/DeleteRange";

std::string grant_request() {
  std::string message;
  put_number(message, 1, 60);  // s
  return message;
}

std::string revoke_request(std::uint64_t lease) {
  std::string message;
  put_number(message, 1, lease);
  return message;
}

// If the revision in which the key was created is 0, there is none: then put it.
std::string create_request(const std::string& key, std::uint64_t lease) {
  std::string compare;
  put_number(compare, 1, 0);  // equal
  put_number(compare, 2, 1);  // the creation's revision
  put_bytes(compare, 3, key);
  put_number(compare, 5, 0);
  std::string put;
  put_bytes(put, 1, key);
  put_bytes(put, 2, "bench");
  put_number(put, 3, lease);
  std::string operation;
  put_bytes(operation, 2, put);
  std::string message;
  put_bytes(message, 1, compare);
  put_bytes(message, 2, operation);
  return message;
}

std::string delete_request(const std::string& key) {
  std::string message;
  put_bytes(message, 1, key);
  return message;
}

class EtcdSession : public LockSession {
 public:
  EtcdSession(std::uint16_t port, const std::string& key, EtcdLease kind)
      : connection_(port), kind_(kind) {
    key_ = (kind == EtcdLease::client ? "shared/" : "own/") + key;
    if (kind == EtcdLease::client)
      lease_ = lease_of(connection_.wait(grant_method, grant_request()));
  }

  int socket() const override { return connection_.socket(); }

  void acquire() override {
    if (kind_ == EtcdLease::lock) {
      ask(Step::grant, grant_method, grant_request());
    } else {
      ask(Step::create, txn_method, create_request(key_, lease_));
    }
  }

  void release() override {
    if (kind_ == EtcdLease::lock) {
      ask(Step::revoke, revoke_method, revoke_request(lease_));
    } else {
      ask(Step::erase, delete_method, delete_request(key_));
    }
  }

  Answer receive() override {
    const std::optional<std::string> message = connection_.receive();
    if (!message) return Answer::none;
    switch (step_) {
      case Step::grant:
        lease_ = lease_of(*message);
        ask(Step::create, txn_method, create_request(key_, lease_));
        return Answer::none;
      case Step::create:
        if (number_in(*message, 2) == 1) return Answer::granted;
        if (kind_ == EtcdLease::client) return Answer::refused;
        ask(Step::give_up, revoke_method, revoke_request(lease_));
        return Answer::none;
      case Step::erase:
        if (number_in(*message, 2) != 1) throw std::runtime_error("etcd: the key was gone");
        return Answer::released;
      case Step::revoke:
        return Answer::released;
      case Step::give_up:
        return Answer::refused;
      case Step::none:
        break;
    }
    throw std::runtime_error("etcd answers what nobody asked");
  }

  void close() override {
    if (kind_ == EtcdLease::client) connection_.wait(revoke_method, revoke_request(lease_));
  }

 private:
  enum class Step { none, grant, create, erase, revoke, give_up };

  static std::uint64_t lease_of(const std::string& granted) {
    const std::uint64_t lease = number_in(granted, 2);
    if (lease == 0) throw std::runtime_error("etcd: no lease");
    return lease;
  }

  void ask(Step step, const std::string& method, const std::string& message) {
    step_ = step;
    connection_.call(method, message);
  }

  GrpcConnection connection_;
  EtcdLease kind_;
  std::string key_;
  std::uint64_t lease_ = 0;
  Step step_ = Step::none;
};

}  // namespace

bool has_etcd_client() { return true; }

std::unique_ptr<LockSession> etcd_session(std::uint16_t port, const std::string& key,
                                          EtcdLease lease) {
  return std::make_unique<EtcdSession>(port, key, lease);
}

}  // namespace permit::bench

#else

namespace permit::bench {

bool has_etcd_client() { return false; }
std::unique_ptr<LockSession> etcd_session(std::uint16_t, const std::string&, EtcdLease) {
  throw std::logic_error("built without libnghttp2");
}

}  // namespace permit::bench

#endif
