// The server's counters. Plain numbers: they belong to the engine thread, are counted after the
// commit of what they count (service/meter.cpp), and are read by GET /metrics and the ring behind
// GET server/history. What a pool has granted and how its holds ended is as durable as the ledger,
// and begins with its counts; the rest begins at 0 with the process.
//
// Who asks names pools, queues and types, so tables of them are bounded: beyond a thousand, names
// share one series, `_other`. There is nothing per workflow or run.
#pragma once

#include <array>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "orchestrator/protocol/common.h"
#include "orchestrator/service/batch_sizes.h"
#include "orchestrator/service/histogram.h"

namespace permit::service {

template <class Key, class Series>
class SeriesTable {
 public:
  static constexpr std::size_t named_max = 1'000;

  // The name's own, made if need be and if there is room; else the one that they share. Stays where
  // it is until erase().
  Series& of(const Key& key) {
    const auto found = named_.find(key);
    if (found != named_.end()) return found->second;
    if (named_.size() < named_max) return named_[key];
    return shared();
  }
  Series* find(const Key& key) {
    const auto found = named_.find(key);
    return found == named_.end() ? nullptr : &found->second;
  }
  // The one that names without their own share.
  Series& shared() {
    has_other_ = true;
    return other_;
  }
  void erase(const Key& key) { named_.erase(key); }

  const std::map<Key, Series>& named() const { return named_; }
  const Series* other() const { return has_other_ ? &other_ : nullptr; }

 private:
  std::map<Key, Series> named_;
  Series other_{};
  bool has_other_ = false;
};

struct QueueLabel {
  TaskQueueType type = TaskQueueType::workflow;
  std::string name;  // a sticky queue goes by the name of its normal one
  auto operator<=>(const QueueLabel&) const = default;
};

struct PoolSeries {
  using HowEnded = std::pair<Outcome, std::string>;  // outcome and cause

  std::int64_t acquires = 0;  // of all time, like the next
  // Σ closed + held = acquires. The usual ends are there from the start: of a counter that begins
  // with 1 Prometheus does not see the first.
  std::map<HowEnded, std::int64_t> closed = {{{Outcome::released, ""}, 0},
                                             {{Outcome::lease_expired, "timer"}, 0},
                                             {{Outcome::lease_expired, "backstop"}, 0},
                                             {{Outcome::holder_closed, "completed"}, 0},
                                             {{Outcome::force_released, "operator"}, 0}};
  std::map<RunNumber, Time> held;  // since when; the first is the oldest
  std::int64_t conflicts = 0;
  std::int64_t timeouts = 0;
  std::int64_t late_releases = 0;
  std::int64_t possible_overlaps = 0;
  Histogram<histogram_bounds::wait> wait;
  std::array<Histogram<histogram_bounds::hold>, 5> hold;  // by outcome
};

struct WorkflowTypeSeries {
  std::int64_t started = 0;
  std::array<std::int64_t, 8> closed{};  // by status
  Histogram<histogram_bounds::end_to_end> end_to_end;
};

struct TaskQueueSeries {
  std::int64_t polls_served = 0;
  std::int64_t polls_timed_out = 0;
  Histogram<histogram_bounds::schedule_to_start> schedule_to_start;
};

// Of a task queue and an activity type.
struct ActivitySeries {
  std::int64_t heartbeat_timeouts = 0;
  std::int64_t failures = 0;
};

// Over all pools and queues. Copied once a second.
struct Totals {
  std::int64_t acquires = 0;
  std::int64_t conflicts = 0;
  std::int64_t expiries = 0;
  Histogram<histogram_bounds::fine> wait;
  Histogram<histogram_bounds::fine> task_latency;
  Histogram<histogram_bounds::fine> timer_lag;
  Histogram<histogram_bounds::fine> commit_latency;
};

struct Metrics {
  using ActivityLabel = std::pair<std::string, std::string>;     // task queue, activity type
  using TaskFailureLabel = std::pair<std::string, std::string>;  // task queue, reason

  SeriesTable<PoolName, PoolSeries> pools;
  std::set<PoolName> pools_in_other;
  SeriesTable<std::string, WorkflowTypeSeries> workflow_types;
  SeriesTable<QueueLabel, TaskQueueSeries> queues;
  SeriesTable<ActivityLabel, ActivitySeries> activities;
  SeriesTable<TaskFailureLabel, std::int64_t> task_failures;
  Totals totals;

  Histogram<histogram_bounds::lateness> timer_lateness;
  Histogram<histogram_bounds::lateness> lease_lateness;
  Histogram<histogram_bounds::store> commit_latency;
  std::int64_t commits_failed = 0;
  BatchSizes batch_sizes;
  std::int64_t runs_open = 0;
  std::int64_t runs_due = 0;  // that time will do something to
  Time up_since{};

  // nullptr: there is no such pool.
  PoolSeries* pool(const PoolName& name) {
    if (PoolSeries* own = pools.find(name)) return own;
    return pools_in_other.contains(name) ? &pools.shared() : nullptr;
  }
};

}  // namespace permit::service
