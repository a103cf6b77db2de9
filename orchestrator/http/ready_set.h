// Which of many sockets have something to read, or room to write: an epoll set of the connections,
// for which the event loop waits as for one descriptor. The loop's own set costs a system call for
// each wait; here one that goes on waiting for the same costs none. Private to the server. Belongs
// to the server's thread.
#pragma once

#include <sys/epoll.h>

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/basic_stream_descriptor.hpp>
#include <cstdint>
#include <span>
#include <utility>

namespace permit::http {

using Readiness = std::uint32_t;
constexpr Readiness not_ready = 0;
constexpr Readiness readable = EPOLLIN;
constexpr Readiness writable = EPOLLOUT;
constexpr Readiness broken = EPOLLERR | EPOLLHUP;

class ReadySet {
 public:
  // Whose socket it is.
  class Member {
   public:
    virtual ~Member() = default;
    // Also if its socket is broken, whatever it waits for. It is called again until it has read, or
    // written, or waits for something else.
    virtual void on_ready(Readiness ready) = 0;
  };

  explicit ReadySet(boost::asio::io_context& io);

  // False if the system has no room for it. A socket leaves the set when it is closed.
  bool add(int socket, Readiness awaited, Member& member);
  void change(int socket, Readiness awaited, Member& member);
  // To be called before `member` goes.
  void forget(const Member& member);

  // Calls handler(error) in the event loop when there is something to call_ready() about.
  template <class Handler>
  void async_wait(Handler handler) {
    set_.async_wait(Descriptor::wait_read, std::move(handler));
  }
  void call_ready();
  void close();

 private:
  using Descriptor =
      boost::asio::posix::basic_stream_descriptor<boost::asio::io_context::executor_type>;

  bool control(int operation, int socket, Readiness awaited, Member& member);

  Descriptor set_;
  std::array<epoll_event, 256> events_{};
  std::span<epoll_event> ready_;  // of the events, those to be called yet
};

}  // namespace permit::http
