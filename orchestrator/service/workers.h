// The workers that have told of themselves, by their heartbeats. In memory only: after a restart
// of the server they come back with their next one. Engine thread.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "orchestrator/protocol/worker_info.h"

namespace permit::service {

// The workers of one task queue, summed; for metrics.
struct WorkerTotals {
  struct Slots {
    std::int64_t available = 0;
    std::int64_t used = 0;
  };
  // Of those that live: they run or shut down, and are not silent.
  Slots workflow;
  Slots activity;
  std::int64_t cached_runs = 0;
  // How many there are of each.
  std::int64_t running = 0;
  std::int64_t shutting_down = 0;
  std::int64_t shutdown = 0;
  std::int64_t silent = 0;
  // Since the queue had its first worker; of those that have gone, too, so that it never falls.
  std::int64_t cache_hits = 0;
  std::int64_t cache_misses = 0;

  void add(const WorkerTotals& other);
};

class Workers {
 public:
  static constexpr std::size_t workers_max = 10'000;
  static constexpr Duration silence_max = std::chrono::minutes(10);  // then it is forgotten
  static constexpr Duration shutdown_shown = std::chrono::minutes(1);

  // The latest of a worker replaces the one before. If there are too many, who would be forgotten
  // next is forgotten now.
  void record(WorkerHeartbeat heartbeat, Time now);
  // It asks for no more tasks, and has not said so with a heartbeat yet.
  void note_goodbye(const std::string& instance_key, Time now);
  void forget_silent(Time now);

  // Those behind that key, in order of their keys.
  std::vector<WorkerInfo> list(const std::string& after, std::size_t max, Time now) const;
  const WorkerHeartbeat* find(const std::string& instance_key) const;
  WorkerInfo info(const WorkerHeartbeat& heartbeat, Time now) const;
  std::map<std::string, WorkerTotals> totals(Time now) const;  // by task queue
  std::size_t size() const { return workers_.size(); }

 private:
  // What remains of workers that have gone.
  struct Queue {
    std::size_t workers = 0;
    std::int64_t cache_hits = 0;
    std::int64_t cache_misses = 0;
  };

  void forget(const std::string& instance_key);
  void count(const WorkerHeartbeat& before, const WorkerHeartbeat& heartbeat);

  std::map<std::string, WorkerHeartbeat> workers_;          // by instance key
  std::set<std::pair<Time, std::string>> to_be_forgotten_;  // when, and whom
  std::map<std::string, Queue> queues_;
};

}  // namespace permit::service
