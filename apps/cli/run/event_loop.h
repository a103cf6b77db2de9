// One thread waits for several things: descriptors, a time, what other threads have finished.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

#include "apps/cli/run/hold_plan.h"

namespace permit::cli {

class EventLoop {
 public:
  EventLoop();
  ~EventLoop();
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  // Called in the loop whenever the descriptor can be read.
  void on_readable(int descriptor, std::function<void()> handler);
  void forget(int descriptor);
  // Called in the loop, from any thread.
  void post(std::function<void()> function);
  // Waits until there is something to do, or until `time`, and does it. A sleep of the machine
  // counts: it wakes up with the machine if the time has passed.
  void run_once(Instant time);

 private:
  void run_posted();

  int timer_;
  int posted_event_;
  std::map<int, std::function<void()>> handlers_;
  std::mutex mutex_;
  std::deque<std::function<void()>> posted_;  // guarded by mutex_
};

// A thread that makes calls that may take long, one after the other. What an errand returns is
// called in the loop. Never ends: its process is left by _exit().
class Errands {
 public:
  using Errand = std::function<std::function<void()>()>;
  explicit Errands(EventLoop& loop) : loop_(loop) {}
  void send(Errand errand);

 private:
  void work();

  EventLoop& loop_;
  std::thread thread_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Errand> errands_;  // guarded by mutex_
};

}  // namespace permit::cli
