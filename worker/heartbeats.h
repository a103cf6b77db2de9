// Sends the heartbeats of the activities that run here, from a thread of its own: at most one per
// activity in 0.8 of its heartbeat timeout, and one in 5 s at least if it has news: an answer tells
// it to stop, and renews the permit it runs under. Always the latest details. Thread-safe.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "orchestrator/protocol/request.h"
#include "worker/activity.h"

namespace permit::worker {

class Heartbeats {
 public:
  // Sends one, and returns whether the activity is to stop.
  using Send = std::function<bool(const Bytes& task_token, const std::optional<Payloads>& details)>;
  explicit Heartbeats(Send send);
  ~Heartbeats();
  Heartbeats(const Heartbeats&) = delete;
  Heartbeats& operator=(const Heartbeats&) = delete;

  // From here to remove(), which the context outlives. The id is for the others.
  std::int64_t add(ActivityContext& context);
  void record(std::int64_t id, std::optional<Payloads> details);
  // The details that have not been sent, if any: a failure takes them along.
  std::optional<Payloads> remove(std::int64_t id);
  // All that run are told to stop.
  void cancel_all();

 private:
  using Clock = std::chrono::steady_clock;
  struct Beating {
    ActivityContext* context = nullptr;
    Bytes task_token;
    Clock::duration pause{};
    Clock::time_point due{};  // the next may be sent
    std::optional<Payloads> details;
    bool has_news = false;
    bool is_sending = false;
  };

  void run();
  void send_one(std::unique_lock<std::mutex>& lock, std::int64_t id);

  const Send send_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::condition_variable sent_;
  std::map<std::int64_t, Beating> beating_;
  std::int64_t last_id_ = 0;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace permit::worker
