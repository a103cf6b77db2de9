#include "orchestrator/http/ready_set.h"

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <boost/asio/io_context.hpp>
#include <functional>
#include <optional>
#include <tuple>
#include <utility>

namespace permit::http {
namespace {

// One end of a connection, in a set; the other is the peer's.
class End final : public ReadySet::Member {
 public:
  explicit End(ReadySet& set) : set_(set) {
    std::array<int, 2> sockets{};
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, sockets.data()) == 0);
    std::tie(socket_, peer_) = std::pair(sockets[0], sockets[1]);
    REQUIRE(set_.add(socket_, readable, *this));
  }
  ~End() override {
    set_.forget(*this);
    ::close(socket_);
    hang_up();
  }
  End(const End&) = delete;
  End& operator=(const End&) = delete;

  void on_ready(Readiness ready) override {
    ++calls;
    last = ready;
    if (then) then();
  }

  void await(Readiness awaited) { set_.change(socket_, awaited, *this); }
  void peer_says(char c) { REQUIRE(::write(peer_, &c, 1) == 1); }
  char read() {
    char c = 0;
    REQUIRE(::read(socket_, &c, 1) == 1);
    return c;
  }
  void hang_up() {
    if (peer_ >= 0) ::close(std::exchange(peer_, -1));
  }

  int calls = 0;
  Readiness last = not_ready;
  std::function<void()> then;

 private:
  ReadySet& set_;
  int socket_ = -1;
  int peer_ = -1;
};

TEST_CASE("who awaits input is called until it has read it") {
  boost::asio::io_context io(1);
  ReadySet set(io);
  End end(set);
  set.call_ready();
  CHECK(end.calls == 0);
  end.peer_says('x');
  set.call_ready();
  set.call_ready();
  CHECK(end.calls == 2);
  CHECK(end.last == readable);
  CHECK(end.read() == 'x');
  set.call_ready();
  CHECK(end.calls == 2);
}

TEST_CASE("who awaits nothing is called only when its socket is broken") {
  boost::asio::io_context io(1);
  ReadySet set(io);
  End end(set);
  end.await(not_ready);
  end.peer_says('x');
  set.call_ready();
  CHECK(end.calls == 0);
  end.await(writable);
  set.call_ready();
  CHECK(end.last == writable);
  end.await(not_ready);
  end.hang_up();
  set.call_ready();
  CHECK(end.calls == 2);
  CHECK((end.last & broken) != 0);
}

TEST_CASE("who goes while others are called is not called any more") {
  boost::asio::io_context io(1);
  ReadySet set(io);
  std::optional<End> one(set), other(set);
  int calls = 0;
  one->then = [&] {
    ++calls;
    other.reset();
  };
  other->then = [&] {
    ++calls;
    one.reset();
  };
  one->peer_says('x');
  other->peer_says('x');
  set.call_ready();
  CHECK(calls == 1);
  CHECK(one.has_value() != other.has_value());
}

TEST_CASE("the loop is told of many at once, again and again, until the set is closed") {
  boost::asio::io_context io(1);
  ReadySet set(io);
  End one(set), other(set);
  int rounds = 0;
  std::function<void()> watch = [&] {
    set.async_wait([&](const boost::system::error_code& error) {
      if (error) return;
      ++rounds;
      set.call_ready();
      watch();
    });
  };
  watch();
  one.then = [&] { one.read(); };
  other.then = [&] {
    other.read();
    if (other.calls == 2) set.close();
  };
  one.peer_says('x');
  other.peer_says('x');
  io.poll();
  CHECK(rounds == 1);
  CHECK((one.calls == 1 && other.calls == 1));
  other.peer_says('x');
  io.run();  // which ends with the set
  CHECK(rounds == 2);
}

}  // namespace
}  // namespace permit::http
