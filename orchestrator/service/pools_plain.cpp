// Permits that a stock SDK starts by their id, as a plain child or workflow: they pass the same
// gate, and teach the server what slots there are.
#include <algorithm>

#include "orchestrator/core/validate.h"
#include "orchestrator/protocol/ensure.h"
#include "orchestrator/service/pools.h"

namespace permit::service {

std::optional<PermitFailure> Pools::admit_plain(Change& change, NewRun& run) {
  const auto id = core::parse_permit_id(run.workflow_id);
  ENSURE(id.has_value());
  const Duration timeout = run.started.workflow_execution_timeout;
  if (timeout.count() <= 0) {
    return PermitFailure{
        PermitFailureKind::taken,
        "a permit started by its id needs a workflowExecutionTimeout: it is the lease's "
        "backstop"};
  }
  if (find(id->pool) == nullptr) create(change, id->pool, {id->slot});
  Pool& pool = this->pool(id->pool);
  if (!pool.places.contains(id->slot)) {
    if (pool.settings.configured) {
      return PermitFailure{
          PermitFailureKind::taken,
          "slot " + id->slot.value + " is not registered in pool " + id->pool.value};
    }
    pool.settings.slots.push_back({id->slot, false, ""});
    refresh(pool);
    save(change, pool);
  }
  if (pool.settings.drained) {
    return PermitFailure{PermitFailureKind::drained, "pool " + id->pool.value + " is drained"};
  }
  if (!serve_line(change, pool).contains(id->slot)) {
    return PermitFailure{
        PermitFailureKind::taken,
        "slot " + id->slot.value + " of pool " + id->pool.value + " is not free for this caller"};
  }
  if (!take_tokens(change, pool, 1)) {
    return PermitFailure{PermitFailureKind::taken,
                         "pool " + id->pool.value + " may not grant faster than its rate"};
  }
  run.started.permit = PermitGrant{id->pool, id->slot, change.next_fence(), change.now() + timeout};
  return std::nullopt;
}

void Pools::granted_plain(Change& change, const core::RunState& permit) {
  const event::WorkflowExecutionStarted& started = permit.started;
  Pool& pool = this->pool(started.permit->pool);
  hold(pool, started.permit->slot, permit.number);
  news_.try_emplace(pool.name);
  store::HoldRow hold{*started.permit,  permit.number, permit.run_id,
                      started.identity, std::nullopt,  "",
                      change.now()};
  if (started.parent_workflow_execution) {
    hold.holder = started.parent_workflow_execution->workflow_id.value;
    hold.holder_run_id = started.parent_workflow_execution->run_id;
  }
  change.also_write(
      [hold = std::move(hold)](store::Store& store) mutable { store.open_hold(std::move(hold)); });
  schedule(pool);
}

}  // namespace permit::service
