// The server's time. Inside a process it is wall clock at start plus elapsed boot time, so a
// stepped wall clock neither expires nor extends a lease, and suspend counts. Across restarts it is
// wall clock, never behind the largest time stored.
#pragma once

#include <algorithm>
#include <ctime>
#include <functional>
#include <utility>

#include "orchestrator/protocol/ids.h"

namespace permit::service {

class Clock {
 public:
  Clock() = default;
  Clock(const Clock&) = delete;
  Clock& operator=(const Clock&) = delete;
  virtual ~Clock() = default;
  virtual Time now() = 0;
};

class SystemClock : public Clock {
 public:
  using Read = std::function<Time(clockid_t)>;
  // `not_before`: the largest time the store has seen. `read`: for a simulation, which has clocks
  // of its own.
  explicit SystemClock(Time not_before, Read read = kernel_time)
      : read_(std::move(read)),
        wall_at_start_(std::max(read_(CLOCK_REALTIME), not_before)),
        boot_at_start_(read_(CLOCK_BOOTTIME)) {}

  Time now() override { return wall_at_start_ + (read_(CLOCK_BOOTTIME) - boot_at_start_); }

 private:
  static Time kernel_time(clockid_t clock) {
    timespec at{};
    clock_gettime(clock, &at);
    return Time(std::chrono::seconds(at.tv_sec) + Duration(at.tv_nsec / 1000));
  }

  const Read read_;
  const Time wall_at_start_;
  const Time boot_at_start_;
};

// Stands still until it is told; for tests and `--virtual-time`.
class ManualClock : public Clock {
 public:
  explicit ManualClock(Time start) : now_(start) {}
  Time now() override { return now_; }
  void set(Time now) { now_ = std::max(now_, now); }

 private:
  Time now_;
};

}  // namespace permit::service
