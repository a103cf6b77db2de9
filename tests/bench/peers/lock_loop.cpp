#include "tests/bench/peers/lock_loop.h"

#include <sys/epoll.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <deque>
#include <stdexcept>

namespace permit::bench {

namespace {

double ms_between(Clock::time_point from, Clock::time_point to) {
  return Seconds(to - from).count() * 1'000;
}

class Loop {
 public:
  Loop(const std::vector<std::unique_ptr<LockSession>>& sessions, const LoopOptions& options)
      : sessions_(sessions),
        options_(options),
        asked_(sessions.size()),
        epoll_(epoll_create1(EPOLL_CLOEXEC)) {
    prctl(PR_SET_TIMERSLACK,
          1UL);  // ns: a hold shall not end 50 us late, as the kernel would have it
    result_.grants.resize(sessions.size());
    for (std::size_t i = 0; i < sessions.size(); ++i) {
      epoll_event event{};
      event.events = EPOLLIN;
      event.data.u64 = i;
      if (epoll_ctl(epoll_, EPOLL_CTL_ADD, sessions[i]->socket(), &event) != 0) {
        throw std::runtime_error("epoll_ctl failed");
      }
    }
  }
  ~Loop() { close(epoll_); }
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  LoopResult run() {
    for (std::size_t i = 0; i < sessions_.size(); ++i) acquire(i);
    serve_for(options_.warm_up);
    measuring_ = true;
    const Clock::time_point start = Clock::now();
    serve_for(options_.measured);
    const Seconds passed = Clock::now() - start;
    measuring_ = false;
    result_.cycles_per_second = static_cast<double>(result_.cycle_ms.size()) / passed.count();
    stopping_ = true;
    const Clock::time_point patience = Clock::now() + std::chrono::seconds(30);
    while (busy_ > 0) {
      if (Clock::now() > patience) throw std::runtime_error("a client waits for 30 s");
      serve(patience);
    }
    return std::move(result_);
  }

 private:
  struct Held {
    std::size_t client = 0;
    Clock::time_point until;
  };

  void acquire(std::size_t client) {
    ++busy_;
    asked_[client] = Clock::now();
    sessions_[client]->acquire();
  }

  void serve_for(Seconds time) {
    const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(time);
    while (Clock::now() < end) serve(end);
  }

  // Waits until something comes, a hold is over, or it is `end`; in nanoseconds, since a hold that
  // ends a millisecond late would count against the service.
  void serve(Clock::time_point end) {
    const auto until = holds_.empty() ? end : std::min(end, holds_.front().until);
    const auto wait = std::max<Clock::duration>(until - Clock::now(), Clock::duration::zero());
    const timespec time{wait.count() / 1'000'000'000, wait.count() % 1'000'000'000};
    std::array<epoll_event, 128> events;
    const int count =
        epoll_pwait2(epoll_, events.data(), static_cast<int>(events.size()), &time, nullptr);
    if (count < 0 && errno != EINTR) throw std::runtime_error("epoll_pwait2 failed");
    for (int i = 0; i < count; ++i) {
      take_answer(static_cast<std::size_t>(events[static_cast<std::size_t>(i)].data.u64));
    }
    while (!holds_.empty() && holds_.front().until <= Clock::now()) {
      const std::size_t client = holds_.front().client;
      holds_.pop_front();
      release(client);
    }
  }

  void take_answer(std::size_t client) {
    const Answer answer = sessions_[client]->receive();
    if (answer == Answer::none) return;
    const Clock::time_point now = Clock::now();
    if (answer == Answer::refused) throw std::runtime_error("a client was refused its lock");
    if (answer == Answer::granted) {
      if (options_.granted) options_.granted(client);
      if (measuring_) {
        result_.acquire_ms.push_back(ms_between(asked_[client], now));
        ++result_.grants[client];
      }
      if (options_.hold.count() == 0) return release(client);
      holds_.push_back({client, now + std::chrono::duration_cast<Clock::duration>(options_.hold)});
      return;
    }
    --busy_;
    if (measuring_) result_.cycle_ms.push_back(ms_between(asked_[client], now));
    if (!stopping_) acquire(client);
  }

  void release(std::size_t client) {
    if (options_.releasing) options_.releasing(client);
    sessions_[client]->release();
  }

  const std::vector<std::unique_ptr<LockSession>>& sessions_;
  const LoopOptions& options_;
  std::vector<Clock::time_point> asked_;
  std::deque<Held> holds_;  // equally long, so the first to end is in front
  std::size_t busy_ = 0;
  bool measuring_ = false;
  bool stopping_ = false;
  LoopResult result_;
  int epoll_;
};

}  // namespace

LoopResult run_loop(const std::vector<std::unique_ptr<LockSession>>& sessions,
                    const LoopOptions& options) {
  return Loop(sessions, options).run();
}

}  // namespace permit::bench
