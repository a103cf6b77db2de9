// Who gets what is free: the line of a pool is served when a slot comes free, when somebody joins,
// and when time has brought new tokens.
#include "orchestrator/protocol/ensure.h"
#include "orchestrator/service/pools.h"
#include "orchestrator/service/slot_choice.h"

namespace permit::service {

// --- What is free ---

// After a change of settings.
void Pools::refresh(Pool& pool) {
  pool.places.clear();
  pool.free = {};
  for (std::size_t i = 0; i < pool.settings.slots.size(); ++i) {
    const SlotSetting& slot = pool.settings.slots[i];
    pool.places.emplace(slot.slot, i);
    const bool is_drained = pool.settings.drained || slot.drained;
    if (!is_drained && !pool.holders.contains(slot.slot)) pool.free.insert(slot.slot);
  }
}

void Pools::hold(Pool& pool, const SlotName& slot, RunNumber permit) {
  pool.holders[slot] = permit;
  pool.free.erase(slot);
}

void Pools::let_go(Pool& pool, const SlotName& slot) {
  pool.holders.erase(slot);
  const auto place = pool.places.find(slot);
  if (place == pool.places.end() || pool.settings.drained) return;
  if (!pool.settings.slots.at(place->second).drained) pool.free.insert(slot);
}

// --- Serving ---

void Pools::serve(Change& change, Pool& pool) {
  const Unclaimed left = serve_line(change, pool);
  wake_sleepers(change, pool, left.size());
  schedule(pool);
}

// Grants what can be granted and returns the slots that nobody in line has a claim on.
Unclaimed Pools::serve_line(Change& change, Pool& pool) {
  Unclaimed free(pool.free);
  std::vector<std::int64_t> any;
  for (auto next = pool.line.begin(); next != pool.line.end() && !free.empty();) {
    const std::int64_t id = next->first.id;
    const PermitOrder order = next->first.order;
    ++next;  // serving takes it out of the line
    if (order == PermitOrder::any) {
      any.push_back(id);
    } else if (!serve_one(change, pool, id, free)) {
      // Strict: what the head could use is kept for it, slots as well as tokens.
      const Waiter& head = *pool.line.find(id);
      if (has_slots(head, free)) {
        free.claim_all();
        return free;
      }
      claim(head, free);
    }
  }
  for (std::size_t i = any.size(); i > 1; --i) std::swap(any[i - 1], any[random_.below(i)]);
  for (const std::int64_t id : any) {
    if (free.empty()) break;
    serve_one(change, pool, id, free);
  }
  return free;
}

bool Pools::serve_one(Change& change, Pool& pool, std::int64_t id, const Unclaimed& free) {
  const auto slots = slots_for(change, pool, *pool.line.find(id), free);
  if (!slots) return false;
  grant(change, pool, pool.line.take(id), *slots);
  return true;
}

// Those that it can be granted now, with the tokens for them.
std::optional<std::vector<SlotName>> Pools::slots_for(Change& change, Pool& pool,
                                                      const Waiter& waiter, const Unclaimed& free) {
  const auto count = static_cast<std::size_t>(waiter.request.count);
  std::vector<SlotName> slots = choose(pool, waiter, free);
  if (slots.size() < count) return std::nullopt;
  // Closed by this very change, which will take it out of the line and serve again.
  if (waiter.parent && !change.run(RunNumber{waiter.run}).is_open()) return std::nullopt;
  if (!take_tokens(change, pool, count)) return std::nullopt;
  return slots;
}

// Who finds nobody in the line, and what it wants free, need not stand in it.
void Pools::join(Change& change, Pool& pool, Waiter waiter) {
  if (pool.line.empty()) {
    const Unclaimed free(pool.free);
    if (const auto slots = slots_for(change, pool, waiter, free)) {
      grant(change, pool, std::move(waiter), *slots);
      wake_sleepers(change, pool, free.size());
      schedule(pool);
      return;
    }
  }
  pool.line.insert(std::move(waiter));
  serve(change, pool);
}

}  // namespace permit::service
