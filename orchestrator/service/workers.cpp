#include "orchestrator/service/workers.h"

#include <algorithm>
#include <limits>

namespace permit::service {

namespace {

Time forgotten_at(const WorkerHeartbeat& heartbeat) {
  return heartbeat.heartbeat_time + (heartbeat.status == WorkerStatus::shutdown
                                         ? Workers::shutdown_shown
                                         : Workers::silence_max);
}

// Ours come every 10 s, those of Temporal's SDKs every minute.
bool is_silent(const WorkerHeartbeat& heartbeat, Time now) {
  if (heartbeat.status == WorkerStatus::shutdown) return false;
  const Duration pause = std::clamp<Duration>(heartbeat.elapsed_since_last_heartbeat,
                                              std::chrono::seconds(10), std::chrono::minutes(1));
  return now - heartbeat.heartbeat_time > 3 * pause;
}

// A total that has fallen has begun anew.
std::int64_t increase(Count before, Count after) {
  return after.value >= before.value ? after.value - before.value : after.value;
}

// Workers may tell any number.
void add(std::int64_t& total, std::int64_t more) {
  if (__builtin_add_overflow(total, more, &total)) total = std::numeric_limits<std::int64_t>::max();
}

void add(WorkerTotals::Slots& total, const std::optional<WorkerSlotsInfo>& slots) {
  if (!slots) return;
  total.available += std::max(slots->current_available_slots, 0);
  total.used += slots->current_used_slots;
}

}  // namespace

void Workers::record(WorkerHeartbeat heartbeat, Time now) {
  forget_silent(now);
  heartbeat.heartbeat_time = now;
  const std::string key = heartbeat.worker_instance_key;
  const auto known = workers_.find(key);
  WorkerHeartbeat before;
  if (known != workers_.end()) before = known->second;
  if (known != workers_.end() && before.task_queue != heartbeat.task_queue) forget(key);
  if (!workers_.contains(key)) {
    if (workers_.size() >= workers_max) {
      const std::string next = to_be_forgotten_.begin()->second;
      forget(next);
    }
    ++queues_[heartbeat.task_queue].workers;
  }
  WorkerHeartbeat& kept = workers_[key];
  to_be_forgotten_.erase({forgotten_at(kept), key});
  count(before, heartbeat);
  kept = std::move(heartbeat);
  to_be_forgotten_.emplace(forgotten_at(kept), key);
}

void Workers::count(const WorkerHeartbeat& before, const WorkerHeartbeat& heartbeat) {
  Queue& queue = queues_.at(heartbeat.task_queue);
  add(queue.cache_hits, increase(before.total_sticky_cache_hit, heartbeat.total_sticky_cache_hit));
  add(queue.cache_misses,
      increase(before.total_sticky_cache_miss, heartbeat.total_sticky_cache_miss));
}

void Workers::note_goodbye(const std::string& instance_key, Time now) {
  const auto worker = workers_.find(instance_key);
  if (worker == workers_.end() || worker->second.status == WorkerStatus::shutdown) return;
  WorkerHeartbeat heartbeat = worker->second;
  heartbeat.status = WorkerStatus::shutting_down;
  record(std::move(heartbeat), now);
}

void Workers::forget(const std::string& instance_key) {
  const auto worker = workers_.find(instance_key);
  to_be_forgotten_.erase({forgotten_at(worker->second), instance_key});
  const auto queue = queues_.find(worker->second.task_queue);
  if (--queue->second.workers == 0) queues_.erase(queue);
  workers_.erase(worker);
}

void Workers::forget_silent(Time now) {
  while (!to_be_forgotten_.empty() && to_be_forgotten_.begin()->first <= now) {
    const std::string next = to_be_forgotten_.begin()->second;
    forget(next);
  }
}

// --- Looking ---

WorkerInfo Workers::info(const WorkerHeartbeat& heartbeat, Time now) const {
  return {heartbeat, is_silent(heartbeat, now)};
}

std::vector<WorkerInfo> Workers::list(const std::string& after, std::size_t max, Time now) const {
  std::vector<WorkerInfo> found;
  for (auto worker = workers_.upper_bound(after); worker != workers_.end() && found.size() < max;
       ++worker) {
    found.push_back(info(worker->second, now));
  }
  return found;
}

const WorkerHeartbeat* Workers::find(const std::string& instance_key) const {
  const auto worker = workers_.find(instance_key);
  return worker == workers_.end() ? nullptr : &worker->second;
}

void WorkerTotals::add(const WorkerTotals& other) {
  workflow.available += other.workflow.available;
  workflow.used += other.workflow.used;
  activity.available += other.activity.available;
  activity.used += other.activity.used;
  cached_runs += other.cached_runs;
  running += other.running;
  shutting_down += other.shutting_down;
  shutdown += other.shutdown;
  silent += other.silent;
  service::add(cache_hits, other.cache_hits);
  service::add(cache_misses, other.cache_misses);
}

std::map<std::string, WorkerTotals> Workers::totals(Time now) const {
  std::map<std::string, WorkerTotals> totals;
  for (const auto& [name, queue] : queues_) {
    WorkerTotals& total = totals[name];
    total.cache_hits = queue.cache_hits;
    total.cache_misses = queue.cache_misses;
  }
  for (const auto& [key, worker] : workers_) {
    if (forgotten_at(worker) <= now) continue;
    WorkerTotals& total = totals.at(worker.task_queue);
    if (worker.status == WorkerStatus::shutdown) {
      ++total.shutdown;
      continue;
    }
    if (is_silent(worker, now)) {
      ++total.silent;
      continue;
    }
    ++(worker.status == WorkerStatus::shutting_down ? total.shutting_down : total.running);
    add(total.workflow, worker.workflow_task_slots_info);
    add(total.activity, worker.activity_task_slots_info);
    total.cached_runs += worker.current_sticky_cache_size;
  }
  return totals;
}

}  // namespace permit::service
