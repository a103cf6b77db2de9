// Redis: SET NX PX takes the lock; a script that compares the token deletes the key.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tests/bench/peers/stream.h"

namespace permit::bench {

class RedisSession : public LockSession {
 public:
  RedisSession(std::uint16_t port, const std::string& key);
  int socket() const override { return stream_.socket(); }
  void acquire() override;
  void release() override;
  Answer receive() override;

 private:
  void send(const std::vector<std::string>& words);
  // A reply that is not an array: "+OK", "$-1", "$3\r\nabc", ":1" without the last line end.
  std::optional<std::string> take_reply();

  Stream stream_;
  std::string key_;
  std::string script_;  // its hash
  std::string token_;
  std::uint64_t last_token_ = 0;
  bool acquiring_ = false;
};

}  // namespace permit::bench
