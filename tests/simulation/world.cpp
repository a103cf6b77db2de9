#include "tests/simulation/world.h"

#include <iostream>

namespace permit::simulation {

void Resources::write(const RunTrace& permit, const Ledger& ledger) {
  ++totals_.writes_guarded;
  Seen& seen = seen_[permit.workflow_id];
  const bool admitted = guard_.admit(permit.workflow_id.value, permit.grant->fence);
  const bool stale = permit.granted < seen.granted;
  if (stale) {
    const RunTrace* holder = ledger.find(seen.by);
    if (holder != nullptr && holder->open) {
      ++totals_.overlaps_unguarded;
      sometimes("two holders would write to one slot");
    }
    if (admitted) ++totals_.stale_writes_taken;
  }
  if (!admitted) {
    ++totals_.stale_writes_refused;
    sometimes("a fence refuses a stale write");
    require(stale, "the fence " + std::to_string(permit.grant->fence.value) + " of the holder of " +
                       permit.workflow_id.value + " was refused as stale");
    return;
  }
  require(!stale, "a stale write was taken: " + permit.workflow_id.value + " fence " +
                      std::to_string(permit.grant->fence.value) + ", after a later holder's");
  if (permit.granted > seen.granted) seen = {permit.granted, permit.run_id};
}

void World::say(const std::string& what) {
  if (notes == nullptr) return;
  if (!notes->empty()) *notes += "; ";
  *notes += what;
}

void World::send(const std::function<void()>& request) {
  if (fault(plan.requests_late)) {
    say("(late)");
    under_way.push_back(request);
    return;
  }
  request();
  if (fault(plan.requests_twice)) {
    say("(twice)");
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
  say("(reply lost)");
  return true;
}

void World::hang_up(std::int64_t call) {
  if (plan.level == 1) {
    service().forget_poll(call);
  } else {
    wire.hang_up(call);
  }
}

}  // namespace permit::simulation
