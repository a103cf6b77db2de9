// What an operator should see to, as `permit doctor` and the page show it.
#include "orchestrator/protocol/time_text.h"
#include "orchestrator/service/service.h"

namespace permit::service {

namespace {

constexpr Duration long_wait = std::chrono::minutes(5);
constexpr Duration very_long_wait = std::chrono::minutes(30);
// A hold that was cut off this long ago is not news any more, if its holder never came back.
constexpr Duration overlap_shown = std::chrono::hours(1);

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

// Tasks wait, and nobody polls.
void Service::add_queue_alerts(std::vector<Alert>& alerts) {
  for (const Matching::QueueKey& key : matching_.queues()) {
    const TaskQueueInfo queue = queue_info(key);
    if (!is_set(queue.oldest_task)) continue;
    const Time recently = time() - std::chrono::seconds(70);
    if (!matching_.pollers(key, recently).empty()) continue;
    const bool permits =
        key.type == TaskQueueType::workflow && key.name == options_.limits.permit_queue;
    Alert unserved = permits ? alert("permits_unserved", "critical", queue.oldest_task)
                             : alert("queue_unserved", "warning", queue.oldest_task);
    unserved.queue = key.name;
    unserved.message = "no worker polls " + queue.kind + " queue \"" + key.name + "\", and " +
                       std::to_string(queue.backlog) + " tasks wait";
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
                      " (fence " + std::to_string(before->fence.value) + ") lost it at " +
                      format_time(before->closed_at) +
                      " without giving it back, and may work on beside the present holder";
    overlap.way_out = "make sure that it has stopped; a resource that checks fences is safe";
    alerts.push_back(std::move(overlap));
  }
}

}  // namespace permit::service
