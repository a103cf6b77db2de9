// A closed-loop load over HTTP/1.1: keep-alive connections to one loopback port, at most one
// request outstanding on each, one thread, epoll. An answer that is not 2xx, or a connection that
// ends, throws: a run with errors has no figures.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace permit::bench {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

std::string get(std::string_view path);
std::string post(std::string_view path, std::string_view body);
std::string put(std::string_view path, std::string_view body);

struct Head {
  int status = 0;
  std::size_t size = 0;  // with the blank line
  std::size_t body_size = 0;
};
// Reads the head of a response that tells its length; size 0 if it is not all there.
Head read_head(std::string_view bytes);

// The first string member of that name in a JSON text; throws if there is none.
std::string_view text_field(std::string_view json, std::string_view name);

class Load {
 public:
  using Peer = std::size_t;  // a connection, by number
  // Called with the answer's body, which is valid until it returns.
  using Then = std::function<void(std::string_view body)>;

  explicit Load(std::uint16_t port);
  ~Load();
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;

  Peer connect();
  void send(Peer peer, std::string_view request, Then then);
  std::size_t outstanding() const { return outstanding_; }

  // Serves answers until `done` holds; throws if that takes longer than `patience`.
  void run_until(const std::function<bool()>& done, Seconds patience = Seconds(60));
  void run_for(Seconds time);

 private:
  struct Connection {
    int socket = -1;
    std::string received;
    Then then;  // set while a request is outstanding
  };

  void serve(int timeout_ms);
  void receive(Connection& connection);
  void take_answers(Connection& connection);

  std::uint16_t port_;
  int epoll_;
  std::vector<Connection> connections_;
  std::vector<char> scratch_ = std::vector<char>(64 * 1024);
  std::size_t outstanding_ = 0;
};

// What repeats a request on some connections, and counts.
struct Counter {
  std::uint64_t done = 0;
  bool stopping = false;  // send no more
};

// How often a second `counter` counts, after a warm-up.
double rate(Load& load, Counter& counter);

}  // namespace permit::bench
