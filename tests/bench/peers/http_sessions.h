// Locks over HTTP and JSON: ours, and etcd's gateway.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tests/bench/peers/stream.h"

namespace permit::bench {

// A connection that is kept, with one request under way on it.
class HttpSession : public LockSession {
 public:
  explicit HttpSession(std::uint16_t port) : stream_(port) {}
  int socket() const override { return stream_.socket(); }

 protected:
  struct Response {
    int status = 0;
    std::string body;
  };
  void send(std::string_view request) { stream_.send(request); }
  std::optional<Response> take_response();
  // Asks and waits; throws unless the answer is a 200 or 201.
  std::string call(std::string_view request);

 private:
  Stream stream_;
};

// As `permit run` and Python's hold ask: any slot, fairly, with a lease.
class PermitSession : public HttpSession {
 public:
  struct Ask {
    std::string pool;
    std::string wait;  // how long it stands in line: "0s" is refused at once
  };
  PermitSession(std::uint16_t port, Ask ask);
  void acquire() override;
  void release() override;
  Answer receive() override;

  // Of the grant.
  const std::string& slot() const { return slot_; }
  std::int64_t fence() const { return fence_; }

 private:
  void take_grant(const std::string& body);

  Ask ask_;
  std::string client_;
  std::uint64_t last_request_ = 0;
  bool acquiring_ = false;
  std::string slot_;
  std::string token_;
  std::int64_t fence_ = 0;
};

// Makes a pool, or finds that it is there.
void make_pool(std::uint16_t port, const std::string& pool, int capacity);

// A lease for each lock: grant, create the key if it is not there, revoke.
class EtcdGatewaySession : public HttpSession {
 public:
  EtcdGatewaySession(std::uint16_t port, const std::string& key);
  void acquire() override;
  void release() override;
  Answer receive() override;

 private:
  enum class Step { none, grant, create, revoke, give_up };
  void revoke(Step step);

  std::string key_;  // in base64
  std::string lease_;
  Step step_ = Step::none;
};

}  // namespace permit::bench
