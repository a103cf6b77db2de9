// The slots of a pool that can be granted, as far as those further ahead in line leave them.
#pragma once

#include <set>

#include "orchestrator/protocol/ids.h"

namespace permit::service {

// Registered, not drained, not held. Kept as that changes, so that nobody looks through a pool of
// two thousand slots to find one.
using FreeSlots = std::set<SlotName>;

// Those that nobody further ahead in line has a claim on. A view: who is granted a slot takes it
// out of the pool's.
class Unclaimed {
 public:
  explicit Unclaimed(const FreeSlots& free) : free_(&free) {}

  void claim(const SlotName& slot) {
    if (free_->contains(slot)) claimed_.insert(slot);
  }
  void claim_all() { all_claimed_ = true; }
  bool contains(const SlotName& slot) const {
    return !all_claimed_ && free_->contains(slot) && !claimed_.contains(slot);
  }
  std::size_t size() const { return all_claimed_ ? 0 : free_->size() - claimed_.size(); }
  bool empty() const { return size() == 0; }

 private:
  const FreeSlots* free_;
  std::set<SlotName> claimed_;
  bool all_claimed_ = false;
};

}  // namespace permit::service
