// How the last holds of each pool ended: the newest of them, the last one of each slot, and how
// many ended how in the last 24 hours. In memory; after a restart from the ledger.
#pragma once

#include <array>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "orchestrator/protocol/pools.h"

namespace permit::service {

class RecentHolds {
 public:
  static constexpr std::size_t kept = 20;  // of a pool

  using Hold = std::shared_ptr<const PermitInfo>;

  // In the order in which they ended.
  void ended(PermitInfo info);
  void given_back_late(PermitInfo info);
  void forget(const PoolName& pool) { pools_.erase(pool); }

  // Newest first.
  const std::deque<Hold>& of(const PoolName& pool) const;
  // The last one of the slot; nullptr if none is known.
  const PermitInfo* last_of(const PoolName& pool, const SlotName& slot) const;
  std::vector<OutcomeCount> last_day(const PoolName& pool, Time now) const;

 private:
  using How = std::pair<Outcome, std::string>;
  struct Pool {
    std::deque<Hold> newest;
    std::map<SlotName, Hold> last;
    std::map<std::int64_t, std::map<How, std::int64_t>> day;  // by ten minutes since 1970
  };

  std::map<PoolName, Pool> pools_;
};

}  // namespace permit::service
