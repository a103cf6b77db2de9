// What an operator should see to, as `permit doctor` and the page show it.
#include <algorithm>

#include "orchestrator/service/service.h"

namespace permit::service {

namespace {

constexpr Duration long_wait = std::chrono::minutes(5);
constexpr Duration very_long_wait = std::chrono::minutes(30);
// A hold that was cut off this long ago is not news any more, if its holder never came back.
constexpr Duration overlap_shown = std::chrono::hours(1);
// A worker comes back to its queue within this, also over another connection.
constexpr Duration desertion_noticed = std::chrono::seconds(2);
// And to a server that has just started.
constexpr Duration worker_expected = std::chrono::seconds(10);

Alert alert(std::string kind, std::string severity, Time since) {
  Alert alert;
  alert.kind = std::move(kind);
  alert.severity = std::move(severity);
  alert.since = since;
  return alert;
}

std::string minutes_text(Duration time) {
  return std::to_string(std::chrono::duration_cast<std::chrono::minutes>(time).count()) +
         " minutes";
}

}  // namespace

std::vector<Alert> Service::alerts() {
  std::vector<Alert> alerts;
  add_queue_alerts(alerts);
  for (const auto& [name, pool] : pools_.all()) add_pool_alerts(pool, alerts);
  return alerts;
}

// Since when there has been work for a queue and nobody who polls it; nullopt if there is none, or
// somebody, or it has been so for no longer than a worker may take to come back. Permits that are
// held are work for theirs, even before one of them ends.
std::optional<Time> Service::unserved_since(const Matching::QueueKey& queue) {
  const auto deserted = matching_.deserted_since(queue, time());
  if (!deserted) return std::nullopt;
  Time since = std::max(*deserted, began_);
  const auto waits =
      matching_.oldest(queue, [&](const Offer& offer) { return stands(queue, offer); });
  if (waits) {
    since = std::max(since, waits->since);
  } else {
    const auto& pools = pools_.all();
    const bool held = std::any_of(pools.begin(), pools.end(),
                                  [](const auto& entry) { return !entry.second.holders.empty(); });
    if (queue != permit_queue_ || !held) return std::nullopt;
  }
  const Duration patience = since == began_ ? worker_expected : desertion_noticed;
  if (time() - since < patience) return std::nullopt;
  return since;
}

void Service::add_queue_alerts(std::vector<Alert>& alerts) {
  std::vector<Matching::QueueKey> queues = matching_.queues();
  if (std::find(queues.begin(), queues.end(), permit_queue_) == queues.end()) {
    queues.push_back(permit_queue_);
  }
  for (const Matching::QueueKey& key : queues) {
    const auto since = unserved_since(key);
    if (!since) continue;
    const bool permits = key == permit_queue_;
    Alert unserved = permits ? alert("permits_unserved", "critical", *since)
                             : alert("queue_unserved", "warning", *since);
    const TaskQueueInfo queue = queue_info(key);
    unserved.queue = key.name;
    unserved.message =
        "no worker polls " + queue.kind + " queue \"" + key.name + "\", and " +
        (queue.backlog == 1 ? "1 task waits" : std::to_string(queue.backlog) + " tasks wait");
    unserved.way_out = "start a worker for it";
    if (permits) {
      unserved.message =
          "no worker serves the permits: a lease that runs out is ended later, by "
          "its backstop";
      unserved.way_out = "permit worker start --task-queue " + key.name;
    }
    alerts.push_back(std::move(unserved));
  }
}

void Service::add_pool_alerts(const Pools::Pool& pool, std::vector<Alert>& alerts) {
  const Time now = time();
  const std::string name = pool.name.value;
  if (const auto& belief = pool.settings.alert) {
    Alert mismatch = alert("capacity_mismatch", "warning", belief->at);
    mismatch.pool = pool.name;
    mismatch.message = "callers disagree on the capacity of " + name + ": " + belief->by +
                       " takes it to have " + std::to_string(belief->slots) +
                       " slots, it is set to " + std::to_string(pool.settings.slots.size());
    mismatch.way_out = "make them agree, or set it: permit pool set " + name + " --capacity N";
    alerts.push_back(std::move(mismatch));
  }
  const Time oldest = pool_summary(pool).oldest_wait;
  if (is_set(oldest) && now - oldest >= long_wait) {
    Alert wait =
        alert("long_wait", now - oldest >= very_long_wait ? "critical" : "warning", oldest);
    wait.pool = pool.name;
    wait.message = "somebody has waited for " + name + " for more than " +
                   minutes_text(now - oldest >= very_long_wait ? very_long_wait : long_wait);
    wait.way_out = "permit who " + name;
    alerts.push_back(std::move(wait));
  }
  for (const auto& [slot, holder] : pool.holders) {
    const PermitInfo* before = recent_holds_.last_of(pool.name, slot);
    if (before == nullptr || !before->possible_overlap || is_set(before->late_release_at) ||
        now - before->closed_at > overlap_shown) {
      continue;
    }
    Alert overlap = alert("possible_overlap", "critical", before->closed_at);
    overlap.pool = pool.name;
    overlap.slot = slot;
    overlap.message = "possible overlap on " + before->id.value + ": " + before->holder +
                      " (fence " + std::to_string(before->fence.value) +
                      ") lost it without giving it back, and may work on beside the present holder";
    overlap.way_out = "make sure that it has stopped; a resource that checks fences is safe";
    alerts.push_back(std::move(overlap));
  }
}

}  // namespace permit::service
