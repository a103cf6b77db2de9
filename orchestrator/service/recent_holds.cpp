#include "orchestrator/service/recent_holds.h"

#include <algorithm>

namespace permit::service {

namespace {

constexpr Duration span = std::chrono::minutes(10);
constexpr std::int64_t spans_a_day = std::chrono::hours(24) / span;

std::int64_t span_of(Time at) { return at.time_since_epoch() / span; }

}  // namespace

void RecentHolds::ended(PermitInfo info) {
  const auto hold = std::make_shared<const PermitInfo>(std::move(info));
  Pool& pool = pools_[hold->pool];
  pool.newest.push_front(hold);
  if (pool.newest.size() > kept) pool.newest.pop_back();
  pool.last[hold->slot] = hold;
  const std::int64_t now = span_of(hold->closed_at);
  ++pool.day[now][{hold->outcome, hold->cause}];
  pool.day.erase(pool.day.begin(), pool.day.lower_bound(now - spans_a_day));
}

void RecentHolds::given_back_late(PermitInfo info) {
  const auto hold = std::make_shared<const PermitInfo>(std::move(info));
  const auto pool = pools_.find(hold->pool);
  if (pool == pools_.end()) return;
  const auto last = pool->second.last.find(hold->slot);
  if (last != pool->second.last.end() && last->second->fence == hold->fence) last->second = hold;
  for (Hold& known : pool->second.newest) {
    if (known->fence == hold->fence) known = hold;
  }
}

const std::deque<RecentHolds::Hold>& RecentHolds::of(const PoolName& pool) const {
  static const std::deque<Hold> none;
  const auto found = pools_.find(pool);
  return found == pools_.end() ? none : found->second.newest;
}

const PermitInfo* RecentHolds::last_of(const PoolName& pool, const SlotName& slot) const {
  const auto found = pools_.find(pool);
  if (found == pools_.end()) return nullptr;
  const auto last = found->second.last.find(slot);
  return last == found->second.last.end() ? nullptr : last->second.get();
}

std::vector<OutcomeCount> RecentHolds::last_day(const PoolName& pool, Time now) const {
  const auto found = pools_.find(pool);
  if (found == pools_.end()) return {};
  std::map<How, std::int64_t> sums;
  const auto& day = found->second.day;
  for (auto it = day.lower_bound(span_of(now) - spans_a_day + 1); it != day.end(); ++it) {
    for (const auto& [how, holds] : it->second) sums[how] += holds;
  }
  std::vector<OutcomeCount> counts;
  counts.reserve(sums.size());
  for (const auto& [how, holds] : sums) counts.push_back({how.first, how.second, Count{holds}});
  return counts;
}

}  // namespace permit::service
