#include "tests/bench/load.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <stdexcept>
#include <utility>

namespace permit::bench {

namespace {

[[noreturn]] void fail(const std::string& what) { throw std::runtime_error(what); }

std::string with_body(std::string_view method, std::string_view path, std::string_view body) {
  std::string request(method);
  request += ' ';
  request += path;
  request += " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ";
  request += std::to_string(body.size());
  request += "\r\n\r\n";
  request += body;
  return request;
}

}  // namespace

std::string get(std::string_view path) {
  return "GET " + std::string(path) + " HTTP/1.1\r\nHost: localhost\r\n\r\n";
}
std::string post(std::string_view path, std::string_view body) {
  return with_body("POST", path, body);
}
std::string put(std::string_view path, std::string_view body) {
  return with_body("PUT", path, body);
}

Head read_head(std::string_view bytes) {
  Head head;
  const std::size_t end = bytes.find("\r\n\r\n");
  if (end == std::string_view::npos) return head;
  head.size = end + 4;
  std::from_chars(bytes.data() + 9, bytes.data() + 12, head.status);
  constexpr std::string_view name = "\r\nContent-Length: ";
  const std::size_t length = bytes.substr(0, end).find(name);
  if (length != std::string_view::npos) {
    std::from_chars(bytes.data() + length + name.size(), bytes.data() + end, head.body_size);
  }
  return head;
}

std::string_view text_field(std::string_view json, std::string_view name) {
  const std::string key = "\"" + std::string(name) + "\":\"";
  const std::size_t at = json.find(key);
  if (at == std::string_view::npos) fail("no " + std::string(name) + " in " + std::string(json));
  json.remove_prefix(at + key.size());
  return json.substr(0, json.find('"'));
}

Load::Load(std::uint16_t port) : port_(port), epoll_(epoll_create1(EPOLL_CLOEXEC)) {
  if (epoll_ < 0) fail("epoll_create1 failed");
}

Load::~Load() {
  for (const Connection& connection : connections_) close(connection.socket);
  close(epoll_);
}

Load::Peer Load::connect() {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port_);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    fail("cannot connect to port " + std::to_string(port_));
  }
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = connections_.size();
  if (epoll_ctl(epoll_, EPOLL_CTL_ADD, socket, &event) != 0) fail("epoll_ctl failed");
  connections_.push_back({socket, {}, nullptr});
  return connections_.size() - 1;
}

// A request is small and alone on its connection, so it fits the socket's buffer.
void Load::send(Peer peer, std::string_view request, Then then) {
  Connection& connection = connections_.at(peer);
  if (connection.then) fail("a request is outstanding already");
  connection.then = std::move(then);
  ++outstanding_;
  const ssize_t sent = ::send(connection.socket, request.data(), request.size(), MSG_NOSIGNAL);
  if (sent != static_cast<ssize_t>(request.size())) fail("cannot send a request");
}

void Load::receive(Connection& connection) {
  const ssize_t size = recv(connection.socket, scratch_.data(), scratch_.size(), MSG_DONTWAIT);
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (size <= 0) fail("the server closed a connection");
  connection.received.append(scratch_.data(), static_cast<std::size_t>(size));
}

void Load::take_answers(Connection& connection) {
  const Head head = read_head(connection.received);
  if (head.size == 0 || connection.received.size() < head.size + head.body_size) return;
  const std::string answer = std::exchange(connection.received, {});
  if (answer.size() != head.size + head.body_size || !connection.then) fail("an answer too many");
  const std::string_view body = std::string_view(answer).substr(head.size);
  if (head.status < 200 || head.status > 299) {
    fail("the server answered " + std::to_string(head.status) + ": " + std::string(body));
  }
  --outstanding_;
  const Then then = std::exchange(connection.then, nullptr);
  then(body);
}

void Load::serve(int timeout_ms) {
  std::array<epoll_event, 128> events;
  const int count = epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), timeout_ms);
  if (count < 0 && errno != EINTR) fail("epoll_wait failed");
  for (int i = 0; i < count; ++i) {
    const auto peer = static_cast<Peer>(events[static_cast<std::size_t>(i)].data.u64);
    receive(connections_[peer]);
    take_answers(connections_[peer]);
  }
}

void Load::run_until(const std::function<bool()>& done, Seconds patience) {
  const Clock::time_point end =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(patience);
  while (!done()) {
    if (Clock::now() > end) fail("the server did not answer in time");
    serve(10);
  }
}

void Load::run_for(Seconds time) {
  const Clock::time_point end = Clock::now() + std::chrono::duration_cast<Clock::duration>(time);
  while (Clock::now() < end) serve(10);
}

double rate(Load& load, Counter& counter) {
  constexpr Seconds warm_up(0.3);
  constexpr Seconds measured(1.2);
  load.run_for(warm_up);
  const std::uint64_t before = counter.done;
  const Clock::time_point start = Clock::now();
  load.run_for(measured);
  const Seconds passed = Clock::now() - start;
  return static_cast<double>(counter.done - before) / passed.count();
}

}  // namespace permit::bench
