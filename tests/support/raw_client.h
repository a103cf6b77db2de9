// A blocking socket to a loopback port, for tests that decide every byte themselves. Nothing waits
// longer than its deadline: what has not happened by then throws.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace permit::test {

struct RawResponse {
  int status = 0;
  std::string head;  // status line and headers, with the blank line
  std::string body;

  // The value of that header, as it was sent; empty if there is none.
  std::string header(std::string_view name) const;
};

class RawClient {
 public:
  using Milliseconds = std::chrono::milliseconds;
  static constexpr Milliseconds patience{10'000};

  // Opens the socket only: see connect().
  RawClient();
  explicit RawClient(std::uint16_t port) : RawClient() { connect(port); }
  ~RawClient();
  RawClient(RawClient&& other) noexcept;
  RawClient& operator=(RawClient&& other) noexcept;

  void connect(std::uint16_t port);
  void set_receive_buffer(int bytes);  // before connect()

  void send(std::string_view bytes, Milliseconds time_max = patience);
  // As send(), but false when the peer has closed.
  bool try_send(std::string_view bytes, Milliseconds time_max = patience);

  // One whole response; `has_body` is false for the answer to HEAD.
  RawResponse receive(Milliseconds time_max = patience, bool has_body = true);

  // Everything until the peer closes or resets.
  std::string receive_all(Milliseconds time_max = patience);

  void end_sending();
  void close();
  void reset();  // closes with RST

 private:
  bool wait(short events, std::chrono::steady_clock::time_point deadline) const;
  // Appends to received_; false at the end of the stream.
  bool receive_some(std::chrono::steady_clock::time_point deadline);

  int socket_ = -1;
  std::string received_;  // not handed out yet
};

}  // namespace permit::test
