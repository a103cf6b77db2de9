#include "tests/bench/peers/zookeeper_session.h"

#include <stdexcept>

namespace permit::bench {

namespace {

// Jute, its encoding: big-endian numbers; texts and bytes behind their size.
void put_int(std::string& out, std::int32_t value) {
  const auto bits = static_cast<std::uint32_t>(value);
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(bits >> shift);
}
void put_long(std::string& out, std::int64_t value) {
  put_int(out, static_cast<std::int32_t>(value >> 32));
  put_int(out, static_cast<std::int32_t>(value));
}
void put_text(std::string& out, std::string_view text) {
  put_int(out, static_cast<std::int32_t>(text.size()));
  out += text;
}
std::int32_t int_at(std::string_view bytes, std::size_t at) {
  std::uint32_t bits = 0;
  for (std::size_t i = at; i < at + 4; ++i) {
    bits = bits << 8 | static_cast<unsigned char>(bytes.at(i));
  }
  return static_cast<std::int32_t>(bits);
}

constexpr std::int32_t type_create = 1;
constexpr std::int32_t type_delete = 2;
constexpr std::int32_t type_close = -11;
constexpr std::int32_t error_node_exists = -110;

}  // namespace

ZooKeeperSession::ZooKeeperSession(std::uint16_t port, const std::string& key)
    : stream_(port), path_("/" + key) {
  std::string hello;
  put_int(hello, 0);       // protocol
  put_long(hello, 0);      // last transaction seen
  put_int(hello, 30'000);  // ms without a sign of life
  put_long(hello, 0);      // session: a new one
  put_text(hello, std::string(16, '\0'));
  hello += '\0';  // not read only
  send(hello);
  if (int_at(wait_frame(), 4) <= 0) throw std::runtime_error("ZooKeeper: no session");
}

void ZooKeeperSession::send(std::string_view frame) {
  std::string bytes;
  put_text(bytes, frame);
  stream_.send(bytes);
}

void ZooKeeperSession::request(std::int32_t type, std::string_view body) {
  std::string frame;
  put_int(frame, ++last_request_);
  put_int(frame, type);
  frame += body;
  send(frame);
}

std::optional<std::string> ZooKeeperSession::take_frame() {
  stream_.read();
  std::string& received = stream_.received();
  if (received.size() < 4) return std::nullopt;
  const auto size = static_cast<std::size_t>(int_at(received, 0));
  if (received.size() < 4 + size) return std::nullopt;
  if (received.size() != 4 + size) throw std::runtime_error("ZooKeeper: an answer too many");
  const std::string frame = received.substr(4);
  received.clear();
  return frame;
}

std::string ZooKeeperSession::wait_frame() {
  for (;;) {
    wait_readable(socket());
    if (const std::optional<std::string> frame = take_frame()) return *frame;
  }
}

void ZooKeeperSession::acquire() {
  acquiring_ = true;
  std::string body;
  put_text(body, path_);
  put_text(body, "bench");
  put_int(body, 1);   // one entry in the access list:
  put_int(body, 31);  // everything
  put_text(body, "world");
  put_text(body, "anyone");
  put_int(body, 1);  // ephemeral
  request(type_create, body);
}

void ZooKeeperSession::release() {
  acquiring_ = false;
  std::string body;
  put_text(body, path_);
  put_int(body, -1);  // whatever its version
  request(type_delete, body);
}

Answer ZooKeeperSession::receive() {
  const std::optional<std::string> frame = take_frame();
  if (!frame) return Answer::none;
  const std::int32_t error = int_at(*frame, 12);  // behind the request's number and a transaction's
  if (int_at(*frame, 0) != last_request_) throw std::runtime_error("ZooKeeper: another's answer");
  if (acquiring_ && error == error_node_exists) return Answer::refused;
  if (error != 0) throw std::runtime_error("ZooKeeper: error " + std::to_string(error));
  return acquiring_ ? Answer::granted : Answer::released;
}

void ZooKeeperSession::close() {
  request(type_close, "");
  wait_frame();
}

}  // namespace permit::bench
