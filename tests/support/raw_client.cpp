#include "tests/support/raw_client.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace permit::test {
namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void fail(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

bool peer_closed() { return errno == EPIPE || errno == ECONNRESET; }

}  // namespace

std::string RawResponse::header(std::string_view name) const {
  const std::string start = "\r\n" + std::string(name) + ": ";
  const std::size_t found = head.find(start);
  if (found == std::string::npos) return {};
  const std::size_t value = found + start.size();
  return head.substr(value, head.find("\r\n", value) - value);
}

RawClient::RawClient() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  if (socket_ < 0) fail("socket");
}

RawClient::~RawClient() { close(); }

RawClient::RawClient(RawClient&& other) noexcept
    : socket_(std::exchange(other.socket_, -1)), received_(std::move(other.received_)) {}

RawClient& RawClient::operator=(RawClient&& other) noexcept {
  std::swap(socket_, other.socket_);
  std::swap(received_, other.received_);
  return *this;
}

void RawClient::connect(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(socket_, std::bit_cast<sockaddr*>(&address), sizeof address) != 0) fail("connect");
  const int on = 1;
  ::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (::fcntl(socket_, F_SETFL, O_NONBLOCK) != 0) fail("fcntl");
}

void RawClient::set_receive_buffer(int bytes) {
  if (::setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes) != 0) fail("setsockopt");
}

bool RawClient::wait(short events, Clock::time_point deadline) const {
  while (true) {
    const auto left = std::chrono::ceil<Milliseconds>(deadline - Clock::now()).count();
    pollfd descriptor{socket_, events, 0};
    const int ready = ::poll(&descriptor, 1, static_cast<int>(std::max<decltype(left)>(left, 0)));
    if (ready > 0) return true;
    if (ready == 0) return false;
    if (errno != EINTR) fail("poll");
  }
}

bool RawClient::try_send(std::string_view bytes, Milliseconds time_max) {
  const Clock::time_point deadline = Clock::now() + time_max;
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    } else if (peer_closed()) {
      return false;
    } else if (errno != EAGAIN) {
      fail("send");
    } else if (!wait(POLLOUT, deadline)) {
      throw std::runtime_error("the peer did not take the bytes in time");
    }
  }
  return true;
}

void RawClient::send(std::string_view bytes, Milliseconds time_max) {
  if (!try_send(bytes, time_max)) throw std::runtime_error("the peer has closed");
}

bool RawClient::receive_some(Clock::time_point deadline) {
  std::array<char, 64 * 1024> buffer;
  while (true) {
    const ssize_t size = ::recv(socket_, buffer.data(), buffer.size(), 0);
    if (size > 0) received_.append(buffer.data(), static_cast<std::size_t>(size));
    if (size >= 0) return size > 0;
    if (peer_closed()) return false;
    if (errno != EAGAIN) fail("recv");
    if (!wait(POLLIN, deadline)) throw std::runtime_error("the peer sent nothing in time");
  }
}

RawResponse RawClient::receive(Milliseconds time_max, bool has_body) {
  const Clock::time_point deadline = Clock::now() + time_max;
  const auto need = [&](bool complete) {
    if (complete) return false;
    if (!receive_some(deadline)) throw std::runtime_error("the peer closed early: " + received_);
    return true;
  };
  std::size_t end = std::string::npos;
  while (need((end = received_.find("\r\n\r\n")) != std::string::npos)) {
  }
  RawResponse response;
  response.head = received_.substr(0, end + 4);
  received_.erase(0, end + 4);
  response.status = std::stoi(response.head.substr(std::string_view("HTTP/1.1 ").size()));
  const std::string length = response.header("Content-Length");
  const std::size_t size = has_body && !length.empty() ? std::stoul(length) : 0;
  while (need(received_.size() >= size)) {
  }
  response.body = received_.substr(0, size);
  received_.erase(0, size);
  return response;
}

std::string RawClient::receive_all(Milliseconds time_max) {
  const Clock::time_point deadline = Clock::now() + time_max;
  while (receive_some(deadline)) {
  }
  return std::exchange(received_, std::string());
}

void RawClient::end_sending() { ::shutdown(socket_, SHUT_WR); }

void RawClient::close() {
  if (socket_ >= 0) ::close(std::exchange(socket_, -1));
}

void RawClient::reset() {
  const linger now{1, 0};
  ::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  close();
}

}  // namespace permit::test
