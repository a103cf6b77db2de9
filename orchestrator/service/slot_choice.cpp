#include "orchestrator/service/slot_choice.h"

#include <algorithm>
#include <set>

#include "orchestrator/service/identifiers.h"

namespace permit::service {

namespace {

bool is_in(const std::vector<SlotName>& slots, const SlotName& slot) {
  return std::find(slots.begin(), slots.end(), slot) != slots.end();
}

bool is_wanted(const Waiter& waiter, const SlotName& slot) {
  return waiter.request.only.empty() || is_in(waiter.request.only, slot);
}

}  // namespace

bool may_have(const Pools::Pool& pool, const Waiter& waiter, const SlotName& slot) {
  return pool.places.contains(slot) && is_wanted(waiter, slot);
}

std::size_t candidate_count(const Pools::Pool& pool, const Waiter& waiter) {
  const std::vector<SlotName>& only = waiter.request.only;
  if (only.empty()) return pool.places.size();
  return static_cast<std::size_t>(std::count_if(
      only.begin(), only.end(), [&](const SlotName& slot) { return pool.places.contains(slot); }));
}

bool has_slots(const Waiter& waiter, const Unclaimed& free) {
  const auto count = static_cast<std::size_t>(waiter.request.count);
  const std::vector<SlotName>& only = waiter.request.only;
  if (only.empty()) return free.size() >= count;
  const auto there = std::count_if(only.begin(), only.end(),
                                   [&](const SlotName& slot) { return free.contains(slot); });
  return static_cast<std::size_t>(there) >= count;
}

void claim(const Waiter& waiter, Unclaimed& free) {
  if (waiter.request.only.empty()) free.claim_all();
  for (const SlotName& slot : waiter.request.only) free.claim(slot);
}

std::vector<SlotName> choose(const Pools::Pool& pool, const Waiter& waiter, const Unclaimed& free) {
  const auto count = static_cast<std::size_t>(waiter.request.count);
  const std::vector<SlotName>& listed = waiter.request.slots;
  std::vector<SlotName> chosen;
  for (const SlotName& slot : listed) {
    if (chosen.size() == count) return chosen;
    if (free.contains(slot) && is_wanted(waiter, slot)) chosen.push_back(slot);
  }
  if (chosen.size() == count || free.size() < count) return chosen;
  const std::set<SlotName> known(listed.begin(), listed.end());
  const std::vector<SlotSetting>& slots = pool.settings.slots;
  std::vector<std::size_t> rest;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (known.empty() || !known.contains(slots[i].slot)) rest.push_back(i);
  }
  Random random(static_cast<std::uint64_t>(waiter.id));
  for (std::size_t i = rest.size(); i > 1; --i) std::swap(rest[i - 1], rest[random.below(i)]);
  for (std::size_t i = 0; i < rest.size() && chosen.size() < count; ++i) {
    const SlotName& slot = slots[rest[i]].slot;
    if (free.contains(slot) && is_wanted(waiter, slot)) chosen.push_back(slot);
  }
  return chosen;
}

}  // namespace permit::service
