// Keeps the metrics: notes what a change brings about while its rows go into the batch, counts it
// after the commit, and looks at how things are when it is asked. Belongs to the service.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "orchestrator/service/change.h"
#include "orchestrator/service/metrics.h"
#include "orchestrator/service/news.h"
#include "orchestrator/service/pools.h"
#include "orchestrator/service/run_cache.h"

namespace permit::service {

// How a pool is now, by its label; `_other` stands for all that have no name of their own.
struct PoolGauges {
  std::string pool;
  std::int64_t slots = 0;
  std::int64_t held = 0;
  std::int64_t waiting = 0;  // in line, or backing off
  Time oldest_wait{};
  Time oldest_hold{};
};

struct SlotGauge {
  PoolName pool;
  SlotName slot;
  Time held_since{};  // zero: free
};

struct QueueGauges {
  QueueLabel queue;
  std::int64_t backlog = 0;
  Time oldest_task{};
  std::int64_t pollers = 0;
};

class Meter {
 public:
  explicit Meter(Parts& parts) : parts_(parts) {}

  // What is durable begins where the ledger is.
  void load(Time now);

  // --- While the change's rows are in the batch ---
  void collect(const Change& change, Tally& tally);
  void task_failed(const core::RunState& run, WorkflowTaskFailedCause cause, Tally& tally);
  void activity_failed(const Metrics::ActivityLabel& activity, Tally& tally);

  // --- After the commit ---
  void count(const News& news);

  // --- Between batches ---
  // By label, `_other` last. However long the lines are, only the oldest are looked at.
  std::vector<PoolGauges> pool_gauges();
  // Of pools with a name of their own.
  std::vector<SlotGauge> slot_gauges(std::size_t slots_max);
  // That every grant has ended in one way, or is held; here as in the ledger.
  void check();

  Metrics metrics;

 private:
  std::set<PoolName> meet_pools(const News& news);
  void count(const Tally& tally);
  void count_grant(const core::RunState& permit, PoolSeries* pool, bool is_counted);
  void count_end(const core::RunState& permit, PoolSeries* pool, bool is_counted);

  Parts& parts_;
};

}  // namespace permit::service
