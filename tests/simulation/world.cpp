#include "tests/simulation/world.h"

namespace permit::simulation {

void Resources::write(const WorkflowId& slot, Fence fence, const RunId& by) {
  Seen& seen = seen_[slot];
  if (fence < seen.fence) {
    ++totals_.stale_writes_refused;
    return;
  }
  require(fence > seen.fence || seen.by == by,
          "two holds of " + slot.value + " have the fence " + std::to_string(fence.value));
  seen = {fence, by};
}

void World::send(const std::function<void()>& request) {
  if (fault(plan.requests_late)) {
    under_way.push_back(request);
    return;
  }
  request();
  if (fault(plan.requests_twice)) {
    if (chance.percent(50)) {
      request();
    } else {
      under_way.push_back(request);
    }
  }
}

bool World::reply_is_lost() {
  if (!fault(plan.replies_lost)) return false;
  ++totals.replies_lost;
  return true;
}

}  // namespace permit::simulation
