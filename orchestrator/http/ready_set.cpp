#include "orchestrator/http/ready_set.h"

#include <boost/system/system_error.hpp>
#include <cerrno>

#include "orchestrator/protocol/ensure.h"

namespace permit::http {

namespace {

[[noreturn]] void throw_errno() {
  throw boost::system::system_error(errno, boost::system::system_category());
}

int make_set() {
  const int set = ::epoll_create1(EPOLL_CLOEXEC);
  if (set < 0) throw_errno();
  return set;
}

}  // namespace

ReadySet::ReadySet(boost::asio::io_context& io) : set_(io, make_set()) {}

bool ReadySet::control(int operation, int socket, Readiness awaited, Member& member) {
  epoll_event event{};
  event.events = awaited;
  event.data.ptr = &member;
  return ::epoll_ctl(set_.native_handle(), operation, socket, &event) == 0;
}

bool ReadySet::add(int socket, Readiness awaited, Member& member) {
  return control(EPOLL_CTL_ADD, socket, awaited, member);
}

void ReadySet::change(int socket, Readiness awaited, Member& member) {
  ENSURE(control(EPOLL_CTL_MOD, socket, awaited, member));
}

void ReadySet::forget(const Member& member) {
  for (epoll_event& event : ready_) {
    if (event.data.ptr == &member) event.data.ptr = nullptr;
  }
}

void ReadySet::call_ready() {
  const int count =
      ::epoll_wait(set_.native_handle(), events_.data(), static_cast<int>(events_.size()), 0);
  if (count < 0 && errno != EINTR) throw_errno();
  ready_ = std::span(events_).first(static_cast<std::size_t>(count < 0 ? 0 : count));
  while (!ready_.empty()) {
    const epoll_event event = ready_.front();
    ready_ = ready_.subspan(1);
    if (event.data.ptr != nullptr) static_cast<Member*>(event.data.ptr)->on_ready(event.events);
  }
}

void ReadySet::close() {
  boost::system::error_code ignored;
  set_.close(ignored);
}

}  // namespace permit::http
