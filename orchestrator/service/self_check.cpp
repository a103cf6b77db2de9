#include "orchestrator/service/self_check.h"

#include "orchestrator/core/invariants.h"
#include "orchestrator/protocol/ensure.h"
#include "orchestrator/protocol/json.h"

namespace permit::service {

void check_against_store(store::Store& store, const core::RunState& state) {
  core::check_run(state);
  const auto reloaded = load_run(store, state.number);
  ENSURE(reloaded != nullptr);
  core::check_run(*reloaded);
  const store::RunRow kept = row_of(state);
  const store::RunRow fresh = row_of(*reloaded);
  ENSURE(kept.status == fresh.status && kept.next_event_id == fresh.next_event_id);
  ENSURE(kept.next_due == fresh.next_due);
  ENSURE(kept.offered_on == fresh.offered_on);
  ENSURE(kept.volatile_json == fresh.volatile_json);
  ENSURE(kept.outcome == fresh.outcome && kept.cause == fresh.cause);
  ENSURE(state.history_bytes == reloaded->history_bytes);
  ENSURE(state.timers.size() == reloaded->timers.size());
  ENSURE(state.activities.size() == reloaded->activities.size());
  ENSURE(state.children.size() == reloaded->children.size());
  ENSURE(state.request_ids == reloaded->request_ids);
  ENSURE(state.backing_off.size() == reloaded->backing_off.size());
  for (const auto& [pool, backoff] : state.backing_off) {
    const auto found = reloaded->backing_off.find(pool);
    ENSURE(found != reloaded->backing_off.end() && found->second.probes == backoff.probes);
  }
  ENSURE(state.cancel_requested == reloaded->cancel_requested);
  const auto row = store.run(state.number);
  ENSURE(row.has_value() && row->next_due == kept.next_due);
}

namespace {

// Every grant has ended in one way, or is held.
void check_ledger(store::Store& store, const PoolName& pool, std::size_t held) {
  std::int64_t missing = 0;
  for (const OutcomeCount& count : store.hold_counts(pool)) {
    const bool began = count.outcome == Outcome::unspecified;
    missing += began ? count.holds.value : -count.holds.value;
  }
  ENSURE(missing == static_cast<std::int64_t>(held));
}

void check_pools(store::Store& store, Pools& pools) {
  std::size_t held = 0;
  for (const auto& [name, pool] : pools.all()) {
    held += pool.holders.size();
    check_ledger(store, name, pool.holders.size());
    std::size_t free = 0;
    for (const SlotSetting& slot : pool.settings.slots) {
      const bool held_now = pool.holders.contains(slot.slot);
      const bool is_free = !pool.settings.drained && !slot.drained && !held_now;
      ENSURE(pool.free.contains(slot.slot) == is_free);
      if (is_free) ++free;
    }
    ENSURE(pool.free.size() == free);
    for (const auto& [slot, number] : pool.holders) {
      const auto row = store.run(number);
      ENSURE(row && row->status == WorkflowExecutionStatus::running && row->permit);
      ENSURE(row->permit->pool == name && row->permit->slot == slot);
    }
  }
  ENSURE(held == store.open_permits().size());
}

}  // namespace

void check_against_store(store::Store& store, RunCache& cache, Pools& pools) {
  cache.for_each([&](const core::RunState& state) { check_against_store(store, state); });
  check_pools(store, pools);
}

}  // namespace permit::service
