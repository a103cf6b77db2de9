#include "orchestrator/service/meter.h"

#include <boost/describe.hpp>
#include <boost/mp11.hpp>

#include "orchestrator/core/run_state.h"
#include "orchestrator/protocol/ensure.h"

namespace permit::service {

namespace {

void add_ledger(PoolSeries& series, const std::vector<OutcomeCount>& counts) {
  for (const OutcomeCount& count : counts) {
    if (count.outcome == Outcome::unspecified) {
      series.acquires += count.holds.value;
    } else {
      series.closed[{count.outcome, count.cause}] += count.holds.value;
    }
  }
}

// As Temporal's SDKs say it, and else the cause's own name.
std::string reason_of(WorkflowTaskFailedCause cause) {
  if (cause == WorkflowTaskFailedCause::non_deterministic_error) return "nondeterminism";
  std::string reason = "unspecified";
  boost::mp11::mp_for_each<boost::describe::describe_enumerators<WorkflowTaskFailedCause>>(
      [&](auto enumerator) {
        if (enumerator.value == cause) reason = enumerator.name;
      });
  return reason;
}

Time earlier(Time a, Time b) {
  if (!is_set(a)) return b;
  return is_set(b) ? std::min(a, b) : a;
}

}  // namespace

void Meter::load(Time now) {
  metrics.up_since = now;
  metrics.runs_open = parts_.store.open_run_count();
  metrics.runs_due = parts_.store.due_run_count();
  const auto counts = parts_.store.hold_counts();
  for (const auto& [name, pool] : parts_.pools.all()) {
    PoolSeries& series = metrics.pools.of(name);
    if (!metrics.pools.find(name)) metrics.pools_in_other.insert(name);
    const auto found = counts.find(name);
    if (found != counts.end()) add_ledger(series, found->second);
  }
  for (const store::Store::OpenPermit& permit : parts_.store.open_permits_by_pool()) {
    metrics.pool(permit.pool)->held.emplace(permit.run, permit.since);
  }
}

// --- While the change's rows are in the batch ---

void Meter::collect(const Change& change, Tally& tally) {
  for (const auto& [pool, counts] : parts_.pools.take_tallies()) {
    tally.pools[pool].conflicts += counts.conflicts;
    tally.pools[pool].timeouts += counts.timeouts;
  }
  for (const Change::TaskStart& start : change.task_starts()) {
    const core::RunState* run = parts_.cache.find(start.run);
    ENSURE(run != nullptr);
    const bool is_activity = start.scheduled_event_id != 0;
    const std::string& queue =
        is_activity ? run->activities.at(start.scheduled_event_id).scheduled.task_queue.name
                    : run->started.task_queue.name;
    TaskQueueSeries& series =
        metrics.queues.of({is_activity ? TaskQueueType::activity : TaskQueueType::workflow, queue});
    tally.task_starts.push_back({&series, start.waited});
    if (start.polled) tally.counters.push_back(&series.polls_served);
  }
  for (const core::SilentActivity& silent : change.silent_activities()) {
    tally.counters.push_back(
        &metrics.activities.of({silent.task_queue, silent.type}).heartbeat_timeouts);
  }
}

void Meter::task_failed(const core::RunState& run, WorkflowTaskFailedCause cause, Tally& tally) {
  tally.counters.push_back(
      &metrics.task_failures.of({run.started.task_queue.name, reason_of(cause)}));
}

void Meter::activity_failed(const Metrics::ActivityLabel& activity, Tally& tally) {
  tally.counters.push_back(&metrics.activities.of(activity).failures);
}

// --- After the commit ---

// Pools that came or went. Returns those that are new, whose ledger was read just now.
std::set<PoolName> Meter::meet_pools(const News& news) {
  std::set<PoolName> read;
  for (const auto& [name, what] : news.pools) {
    if (!what.settings) continue;
    if (parts_.pools.find(name) == nullptr) {
      metrics.pools.erase(name);
      metrics.pools_in_other.erase(name);
      continue;
    }
    if (metrics.pool(name) != nullptr) continue;
    PoolSeries& series = metrics.pools.of(name);
    if (metrics.pools.find(name) == nullptr) {
      metrics.pools_in_other.insert(name);  // whose counts only go up: nothing of before
    } else {
      add_ledger(series, parts_.store.hold_counts(name));
      read.insert(name);
    }
  }
  return read;
}

void Meter::count(const News& news) {
  count(news.tally);
  if (news.empty()) return;
  const std::set<PoolName> read = meet_pools(news);
  for (const RunNumber number : news.started) {
    const core::RunState* run = parts_.cache.find(number);
    if (run == nullptr) continue;
    ++metrics.runs_open;
    ++metrics.workflow_types.of(run->started.workflow_type.name).started;
    if (!run->is_permit()) continue;
    const PoolName& pool = run->started.permit->pool;
    count_grant(*run, metrics.pool(pool), !read.contains(pool));
  }
  for (const RunNumber number : news.closed) {
    const core::RunState* run = parts_.cache.find(number);
    if (run == nullptr) continue;
    --metrics.runs_open;
    WorkflowTypeSeries& series = metrics.workflow_types.of(run->started.workflow_type.name);
    ++series.closed.at(static_cast<std::size_t>(run->status));
    series.end_to_end.observe(run->close_time - run->start_time);
    if (!run->is_permit()) continue;
    const PoolName& pool = run->started.permit->pool;
    count_end(*run, metrics.pool(pool), !read.contains(pool));
  }
  for (const RunNumber number : news.late_releases) {
    const core::RunState* run = parts_.cache.find(number);
    PoolSeries* pool = run == nullptr ? nullptr : metrics.pool(run->started.permit->pool);
    if (pool != nullptr) ++pool->late_releases;
  }
}

void Meter::count(const Tally& tally) {
  Totals& totals = metrics.totals;
  for (const auto& [name, counts] : tally.pools) {
    totals.conflicts += counts.conflicts;
    PoolSeries* pool = metrics.pool(name);
    if (pool == nullptr) continue;
    pool->conflicts += counts.conflicts;
    pool->timeouts += counts.timeouts;
  }
  for (const Tally::TaskStart& start : tally.task_starts) {
    start.series->schedule_to_start.observe(start.waited);
    totals.task_latency.observe(start.waited);
  }
  for (std::int64_t* counter : tally.counters) ++*counter;
  for (const Duration lag : tally.timer_lags) {
    metrics.timer_lateness.observe(lag);
    totals.timer_lag.observe(lag);
  }
  for (const Duration lag : tally.lease_lags) metrics.lease_lateness.observe(lag);
  metrics.runs_due += tally.runs_due;
}

// `is_counted`: by the ledger only from here on; else its counts have it already.
void Meter::count_grant(const core::RunState& permit, PoolSeries* pool, bool is_counted) {
  const Time asked = permit.started.permit->requested_at;
  const Duration waited = is_set(asked) ? permit.start_time - asked : Duration(0);
  ++metrics.totals.acquires;
  metrics.totals.wait.observe(waited);
  if (pool == nullptr) return;  // it has gone, in the same batch
  if (is_counted) ++pool->acquires;
  pool->wait.observe(waited);
  pool->held.emplace(permit.number, permit.start_time);
}

void Meter::count_end(const core::RunState& permit, PoolSeries* pool, bool is_counted) {
  const core::HoldEnd& end = permit.hold_end.value();
  if (end.outcome == Outcome::lease_expired) ++metrics.totals.expiries;
  if (pool == nullptr) return;
  if (is_counted) ++pool->closed[{end.outcome, end.cause}];
  if (may_overlap(end.outcome, end.cause)) ++pool->possible_overlaps;
  pool->hold.at(static_cast<std::size_t>(end.outcome))
      .observe(permit.close_time - permit.start_time);
  pool->held.erase(permit.number);
}

void Meter::check() {
  ENSURE(metrics.runs_open == parts_.store.open_run_count());
  ENSURE(metrics.runs_due == parts_.store.due_run_count());
  const auto ledger = parts_.store.hold_counts();
  for (const auto& [name, pool] : parts_.pools.all()) {
    const PoolSeries* known = metrics.pool(name);
    ENSURE(known != nullptr);
    if (metrics.pools_in_other.contains(name)) continue;
    PoolSeries stored;
    const auto counts = ledger.find(name);
    if (counts != ledger.end()) add_ledger(stored, counts->second);
    ENSURE(known->acquires == stored.acquires && known->closed == stored.closed);
    ENSURE(known->held.size() == pool.holders.size());
  }
  const auto balanced = [](const PoolSeries& series) {
    std::int64_t ended = 0;
    for (const auto& [how, holds] : series.closed) ended += holds;
    return series.acquires == ended + static_cast<std::int64_t>(series.held.size());
  };
  for (const auto& [name, series] : metrics.pools.named()) ENSURE(balanced(series));
  if (const PoolSeries* other = metrics.pools.other()) ENSURE(balanced(*other));
}

// --- How things are ---

std::vector<PoolGauges> Meter::pool_gauges() {
  std::vector<PoolGauges> gauges;
  PoolGauges other;
  other.pool = "_other";
  for (const auto& [name, pool] : parts_.pools.all()) {
    const bool is_named = metrics.pools.find(name) != nullptr;
    if (is_named) gauges.emplace_back().pool = name.value;
    PoolGauges& of = is_named ? gauges.back() : other;
    of.slots += static_cast<std::int64_t>(pool.settings.slots.size());
    of.held += static_cast<std::int64_t>(pool.holders.size());
    of.waiting += static_cast<std::int64_t>(pool.line.size() + pool.sleepers.size());
    if (const Waiter* oldest = pool.line.oldest()) {
      of.oldest_wait = earlier(of.oldest_wait, oldest->since);
    }
    if (!pool.sleepers.empty()) {
      of.oldest_wait = earlier(of.oldest_wait, pool.sleepers.begin()->second.since);
    }
    const PoolSeries* series = metrics.pool(name);
    if (series != nullptr && !series->held.empty()) {
      of.oldest_hold = earlier(of.oldest_hold, series->held.begin()->second);
    }
  }
  if (metrics.pools.other() != nullptr) gauges.push_back(std::move(other));
  return gauges;
}

std::vector<SlotGauge> Meter::slot_gauges(std::size_t slots_max) {
  std::vector<SlotGauge> gauges;
  for (const auto& [name, pool] : parts_.pools.all()) {
    const PoolSeries* series = metrics.pools.find(name);
    if (series == nullptr) continue;
    for (const SlotSetting& slot : pool.settings.slots) {
      if (gauges.size() >= slots_max) return gauges;
      SlotGauge& gauge = gauges.emplace_back(SlotGauge{name, slot.slot, {}});
      const auto holder = pool.holders.find(slot.slot);
      if (holder == pool.holders.end()) continue;
      const auto since = series->held.find(holder->second);
      if (since != series->held.end()) gauge.held_since = since->second;
    }
  }
  return gauges;
}

}  // namespace permit::service
