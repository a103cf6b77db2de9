// Task queues as metrics say them.
#include "orchestrator/service/service.h"

namespace permit::service {

std::vector<QueueGauges> Service::queue_gauges() {
  const Time recently = time() - std::chrono::seconds(70);  // a poll lasts 60 s
  std::map<QueueLabel, QueueGauges> gauges;
  QueueGauges other;
  other.queue.name = "_other";
  for (const Matching::QueueKey& key : matching_.queues()) {
    const auto oldest =
        matching_.oldest(key, [&](const Offer& offer) { return stands(key, offer); });
    const std::string normal = normal_queue(key, oldest);
    const QueueLabel label{key.type, normal.empty() ? key.name : normal};
    const bool has_room = gauges.contains(label) || gauges.size() < meter_.metrics.queues.named_max;
    QueueGauges& of = has_room ? gauges[label] : other;
    of.backlog += static_cast<std::int64_t>(matching_.backlog(key));
    if (oldest)
      of.oldest_task =
          is_set(of.oldest_task) ? std::min(of.oldest_task, oldest->since) : oldest->since;
    // Who polls a sticky queue polls its normal one, too.
    if (normal.empty()) {
      of.pollers += static_cast<std::int64_t>(matching_.pollers(key, recently).size());
    }
  }
  std::vector<QueueGauges> list;
  for (auto& [label, of] : gauges) {
    of.queue = label;
    list.push_back(std::move(of));
  }
  if (gauges.size() >= meter_.metrics.queues.named_max) list.push_back(std::move(other));
  return list;
}

// Of a sticky queue: its pollers have said it, or, after a restart, the run that waits there knows.
std::string Service::normal_queue(const Matching::QueueKey& key,
                                  const std::optional<Offer>& oldest) {
  const std::string said = matching_.normal_name(key);
  if (!said.empty() || !oldest || key.type != TaskQueueType::workflow) return said;
  const core::RunState* run = cache_.find(oldest->run);
  if (run == nullptr || run->started.task_queue.name == key.name) return said;
  return run->started.task_queue.name;
}

}  // namespace permit::service
