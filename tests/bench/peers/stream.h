// A TCP connection to a loopback port, without Nagle's delay.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "tests/bench/peers/lock_session.h"

namespace permit::bench {

class Stream {
 public:
  explicit Stream(std::uint16_t port);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  int socket() const { return socket_; }
  // All of it, which fits the socket's buffer, since what is sent is small.
  void send(std::string_view bytes);
  // Appends what has come to received(), without waiting.
  void read();
  std::string& received() { return received_; }

 private:
  int socket_;
  std::string received_;
};

// Whether something listens there.
bool is_listening(std::uint16_t port);
// One that nothing listens on at the moment.
std::uint16_t free_port();
// Until there is something to read; throws if nothing comes for half a minute.
void wait_readable(int socket);
// Waits for what has been asked.
Answer wait_answer(LockSession& session);

}  // namespace permit::bench
