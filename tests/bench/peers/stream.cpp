#include "tests/bench/peers/stream.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <stdexcept>

namespace permit::bench {

namespace {

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

// A connected socket, or -1.
int connect_to(std::uint16_t port) {
  const sockaddr_in address = loopback(port);
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
    return socket;
  }
  close(socket);
  return -1;
}

}  // namespace

Stream::Stream(std::uint16_t port) : socket_(connect_to(port)) {
  if (socket_ < 0) throw std::runtime_error("cannot connect to port " + std::to_string(port));
  const int on = 1;
  setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

Stream::~Stream() { close(socket_); }

void Stream::send(std::string_view bytes) {
  const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  if (sent != static_cast<ssize_t>(bytes.size())) throw std::runtime_error("cannot send a request");
}

void Stream::read() {
  std::array<char, 16 * 1024> bytes;
  const ssize_t size = recv(socket_, bytes.data(), bytes.size(), MSG_DONTWAIT);
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (size <= 0) throw std::runtime_error("the service closed a connection");
  received_.append(bytes.data(), static_cast<std::size_t>(size));
}

bool is_listening(std::uint16_t port) {
  const int socket = connect_to(port);
  if (socket >= 0) close(socket);
  return socket >= 0;
}

// Not from where the kernel takes the ports of connections, of which there are hundreds here: one
// of those could have it by the time that the service binds it.
std::uint16_t free_port() {
  constexpr std::uint16_t first = 20'000;
  constexpr std::uint16_t count = 12'000;
  static auto next = static_cast<std::uint16_t>(getpid() * 101 % count);
  for (int tries = 0; tries < count; ++tries) {
    next = static_cast<std::uint16_t>((next + 1) % count);
    const sockaddr_in address = loopback(static_cast<std::uint16_t>(first + next));
    const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int bound = bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address);
    close(socket);
    if (bound == 0) return ntohs(address.sin_port);
  }
  throw std::runtime_error("no free port");
}

void wait_readable(int socket) {
  constexpr int patience_ms = 30'000;
  pollfd waiting{socket, POLLIN, 0};
  if (poll(&waiting, 1, patience_ms) != 1) throw std::runtime_error("no answer for 30 s");
}

Answer wait_answer(LockSession& session) {
  for (;;) {
    wait_readable(session.socket());
    const Answer answer = session.receive();
    if (answer != Answer::none) return answer;
  }
}

}  // namespace permit::bench
