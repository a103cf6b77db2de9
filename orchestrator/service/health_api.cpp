// Whether the server can do its work; asked from outside, and after each batch from inside.
#include "orchestrator/service/service.h"

namespace permit::service {

namespace {

constexpr Duration late_max = std::chrono::seconds(2);

HealthCheck passed(std::string name, std::string message = "") {
  return {std::move(name), "ok", std::move(message)};
}
HealthCheck failing(std::string name, std::string message) {
  return {std::move(name), "failing", std::move(message)};
}

}  // namespace

// Decided in a batch like a change, which it is if the disk was full the last time: then the commit
// shows whether it still is, and if so the answer is DISK_FULL.
void Service::health(Done<Health> done) {
  submit(done, [this, done] {
    Health health;
    const std::string obstacle = store_.obstacle();
    if (obstacle.empty() && disk_is_full_ && !store_.in_batch()) store_.begin();
    health.checks.push_back(obstacle.empty() ? passed("store") : failing("store", obstacle));
    health.checks.push_back(
        passed("migrations", "schema " + std::to_string(store::schema_version)));
    const Time due = std::min(horizon_, pools_.next_due());
    if (due < now_ - late_max) {
      const auto late = std::chrono::duration_cast<std::chrono::seconds>(now_ - due);
      health.checks.push_back(
          failing("timers", "what was due " + std::to_string(late.count()) + " s ago is not done"));
    } else if (!stuck_.empty()) {
      health.checks.push_back(
          {"timers", "warning",
           std::to_string(stuck_.size()) +
               " runs are left alone until a restart, after an internal error"});
    } else {
      health.checks.push_back(passed("timers"));
    }
    reply(done, std::move(health));
  });
}

}  // namespace permit::service
