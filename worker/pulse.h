// A worker's own heartbeat: tells the server that the worker is there and how busy it is. At its
// start, every 10 s, when it begins to stop and at its end, from a thread of its own, so that no
// work waits for it. A server that does not know the call is not asked again.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "worker/client.h"

namespace permit::worker {

// What one kind of tasks keeps a worker busy with; written by its threads, read by Pulse.
class TaskCounts {
 public:
  // For as long as it lives, a slot is used.
  class Slot {
   public:
    explicit Slot(TaskCounts& counts) : counts_(counts) { ++counts_.used_; }
    ~Slot() { --counts_.used_; }
    Slot(const Slot&) = delete;
    Slot& operator=(const Slot&) = delete;

   private:
    TaskCounts& counts_;
  };

  enum class End { done, failed };
  void note(End end) {
    ++processed_;
    if (end == End::failed) ++failed_;
  }
  // `slots`: how many there are to be used, those in use included.
  WorkerSlotsInfo info(int slots) const;

 private:
  std::atomic<int> used_{0};
  std::atomic<std::int64_t> processed_{0};
  std::atomic<std::int64_t> failed_{0};
};

class Pulse {
 public:
  // What the worker is and does now; status and times are added. Called from the pulse's thread.
  using Measure = std::function<WorkerHeartbeat()>;

  // Sends the first heartbeat at once. `transport` outlives it.
  Pulse(Transport& transport, std::string namespace_name, Measure measure);
  // Sends the last one.
  ~Pulse();
  Pulse(const Pulse&) = delete;
  Pulse& operator=(const Pulse&) = delete;

  // The worker takes no more tasks.
  void begin_to_stop();

 private:
  enum class Sent { yes, no, unknown_call };

  void run();
  void set_status(WorkerStatus status);
  Sent send(WorkerStatus status);

  Transport& transport_;
  const std::string namespace_;
  const Measure measure_;
  const Time start_time_;
  std::chrono::steady_clock::time_point sent_at_{};  // of the pulse's thread
  std::mutex mutex_;
  std::condition_variable changed_;
  WorkerStatus status_ = WorkerStatus::running;
  std::thread thread_;
};

}  // namespace permit::worker
