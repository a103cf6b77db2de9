// ZooKeeper: an ephemeral node is created, and deleted.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tests/bench/peers/stream.h"

namespace permit::bench {

class ZooKeeperSession : public LockSession {
 public:
  ZooKeeperSession(std::uint16_t port, const std::string& key);
  int socket() const override { return stream_.socket(); }
  void acquire() override;
  void release() override;
  Answer receive() override;
  void close() override;

 private:
  void send(std::string_view frame);
  void request(std::int32_t type, std::string_view body);
  std::optional<std::string> take_frame();
  std::string wait_frame();

  Stream stream_;
  std::string path_;
  std::int32_t last_request_ = 0;
  bool acquiring_ = false;
};

}  // namespace permit::bench
