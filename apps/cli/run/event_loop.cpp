#include "apps/cli/run/event_loop.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>
#include <vector>

namespace permit::cli {

namespace {

int checked(int descriptor, const char* what) {
  if (descriptor < 0) throw std::system_error(errno, std::generic_category(), what);
  return descriptor;
}

void drain(int descriptor) {
  std::uint64_t count = 0;
  while (read(descriptor, &count, sizeof count) > 0) {
  }
}

}  // namespace

EventLoop::EventLoop()
    : timer_(checked(timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC), "timerfd")),
      posted_event_(checked(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), "eventfd")) {
  on_readable(timer_, [this] { drain(timer_); });
  on_readable(posted_event_, [this] { run_posted(); });
}

EventLoop::~EventLoop() {
  close(timer_);
  close(posted_event_);
}

void EventLoop::on_readable(int descriptor, std::function<void()> handler) {
  handlers_[descriptor] = std::move(handler);
}

void EventLoop::forget(int descriptor) { handlers_.erase(descriptor); }

void EventLoop::post(std::function<void()> function) {
  const std::lock_guard lock(mutex_);
  posted_.push_back(std::move(function));
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(posted_event_, &one, sizeof one);
}

void EventLoop::run_posted() {
  drain(posted_event_);
  std::deque<std::function<void()>> functions;
  {
    const std::lock_guard lock(mutex_);
    functions.swap(posted_);
  }
  for (const auto& function : functions) function();
}

void EventLoop::run_once(Instant time) {
  itimerspec when{};
  if (time != Instant::max()) {
    const auto since = std::max<Duration>(time.time_since_epoch(), Duration(1));
    when.it_value.tv_sec = since.count() / 1'000'000;
    when.it_value.tv_nsec = since.count() % 1'000'000 * 1'000;
  }
  timerfd_settime(timer_, TFD_TIMER_ABSTIME, &when, nullptr);
  std::vector<pollfd> descriptors;
  descriptors.reserve(handlers_.size());
  for (const auto& [descriptor, handler] : handlers_) {
    descriptors.push_back({descriptor, POLLIN, 0});
  }
  if (poll(descriptors.data(), descriptors.size(), -1) <= 0) return;
  for (const pollfd& ready : descriptors) {
    if (ready.revents == 0) continue;
    const auto found = handlers_.find(ready.fd);
    if (found == handlers_.end()) continue;
    const std::function<void()> handler = found->second;  // may forget itself
    handler();
  }
}

void Errands::send(Errand errand) {
  const std::lock_guard lock(mutex_);
  errands_.push_back(std::move(errand));
  if (!thread_.joinable()) thread_ = std::thread([this] { work(); });
  changed_.notify_one();
}

void Errands::work() {
  for (;;) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !errands_.empty(); });
    const Errand errand = std::move(errands_.front());
    errands_.pop_front();
    lock.unlock();
    loop_.post(errand());
  }
}

}  // namespace permit::cli
