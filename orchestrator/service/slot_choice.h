// Which slots a waiter may have, and which of the free ones it gets. Pure.
#pragma once

#include <cstddef>
#include <vector>

#include "orchestrator/service/free_slots.h"
#include "orchestrator/service/pools.h"

namespace permit::service {

// Whether the slot is registered, and the waiter wants no others only.
bool may_have(const Pools::Pool& pool, const Waiter& waiter, const SlotName& slot);
std::size_t candidate_count(const Pools::Pool& pool, const Waiter& waiter);

// Whether the slots it asks for are there; then only tokens may be missing.
bool has_slots(const Waiter& waiter, const Unclaimed& free);
// Keeps what the waiter could use for it.
void claim(const Waiter& waiter, Unclaimed& free);
// As many as it asks for, or fewer: first those that it lists, in its order. What it did not order
// is tried in an order of the request's own, the same every time.
std::vector<SlotName> choose(const Pools::Pool& pool, const Waiter& waiter, const Unclaimed& free);

}  // namespace permit::service
