#include "orchestrator/service/pools.h"

#include <algorithm>
#include <cmath>

#include "orchestrator/core/clock_transitions.h"
#include "orchestrator/core/validate.h"
#include "orchestrator/core/worker_transitions.h"
#include "orchestrator/protocol/ensure.h"
#include "orchestrator/protocol/error.h"
#include "orchestrator/protocol/json_codec.h"
#include "orchestrator/protocol/time_text.h"
#include "orchestrator/service/slot_choice.h"

namespace permit {
PERMIT_JSON(service::PoolSettings)
PERMIT_JSON(service::Waiter)
}  // namespace permit

namespace permit::service {

namespace {

PermitFailure failure(PermitFailureKind kind, std::string message) {
  return PermitFailure{kind, std::move(message)};
}

std::int32_t count32(std::size_t n) { return static_cast<std::int32_t>(n); }

}  // namespace

Pools::Pools(store::Store& store, std::uint64_t seed) : store_(store), random_(seed) {}

// --- Rows ---

void Pools::load() {
  if (loaded_) return;
  loaded_ = true;
  for (const auto& [name, json] : store_.pools()) {
    Pool& pool = pools_[name];
    pool.name = name;
    pool.settings = read_json<PoolSettings>(json);
  }
  for (const RunNumber number : store_.open_permits()) {
    const auto row = store_.run(number);
    ENSURE(row && row->permit);
    Pool& pool = pools_[row->permit->pool];
    pool.name = row->permit->pool;
    pool.holders[row->permit->slot] = number;
  }
  for (const store::WaiterRow& row : store_.waiters()) {
    Waiter waiter = read_json<Waiter>(row.waiter_json);
    Pool& pool = pools_[row.pool];
    pool.name = row.pool;
    pool_of_waiter_[waiter.id] = row.pool;
    if (!waiter.request_id.empty()) pool.tickets[waiter.request_id] = waiter.id;
    if (!waiter.timer_id.empty()) {
      pool.sleepers[waiter.id] = as_sleeper(waiter);
    } else if (!waiter.granted.empty()) {
      for (const std::int64_t run : waiter.granted) ticket_of_permit_[RunNumber{run}] = waiter.id;
      holding_[waiter.id] = std::move(waiter);
    } else {
      waiter.expires = expiry_of(waiter);
      pool.line.insert(std::move(waiter));
    }
  }
  std::erase_if(callers_, [&](const auto& of) { return line_of(of.first) == nullptr; });
  for (auto& [name, pool] : pools_) {
    refresh(pool);
    schedule(pool);
  }
}

void Pools::forget() {
  if (!dirty_) return;
  dirty_ = false;
  loaded_ = false;
  pools_.clear();
  holding_.clear();
  ticket_of_permit_.clear();
  pool_of_waiter_.clear();
  due_.clear();
  woken_in_.clear();
  settled_.clear();
  news_.clear();
  tallies_.clear();
}

void Pools::start_over(Time now) {
  dirty_ = true;
  forget();
  started_over_ = now;
}

void Pools::save(Change& change, const Pool& pool) {
  news_[pool.name].settings = true;
  write_row(change, pool);
}

void Pools::write_row(Change& change, const Pool& pool) {
  change.also_write([name = pool.name, json = to_json(pool.settings)](store::Store& store) {
    store.put_pool(name, json);
  });
}

void Pools::save(Change& change, const Pool& pool, const Waiter& waiter) {
  news_[pool.name].line = true;
  change.also_write([row = store::WaiterRow{waiter.id, pool.name, to_json(waiter)}](
                        store::Store& store) mutable { store.put_waiter(std::move(row)); });
}

void Pools::erase_row(Change& change, std::int64_t id) {
  const auto pool = pool_of_waiter_.extract(id);
  if (!pool.empty()) news_[pool.mapped()].line = true;
  change.also_write([id](store::Store& store) { store.delete_waiter(id); });
}

Pools::Pool& Pools::pool(const PoolName& name) {
  load();
  dirty_ = true;
  return pools_.at(name);
}

Pools::Pool& Pools::create(Change& change, const PoolName& name,
                           const std::vector<SlotName>& slots) {
  load();
  dirty_ = true;
  Pool& pool = pools_[name];
  pool.name = name;
  for (const SlotName& slot : slots) pool.settings.slots.push_back({slot, false, ""});
  refresh(pool);
  save(change, pool);
  return pool;
}

const Pools::Pool* Pools::find(const PoolName& name) {
  load();
  const auto found = pools_.find(name);
  return found == pools_.end() ? nullptr : &found->second;
}

std::optional<RunNumber> Pools::holder(const PoolName& name, const SlotName& slot) {
  const Pool* pool = find(name);
  if (pool == nullptr) return std::nullopt;
  const auto holder = pool->holders.find(slot);
  if (holder == pool->holders.end()) return std::nullopt;
  return holder->second;
}

const std::map<PoolName, Pools::Pool>& Pools::all() {
  load();
  return pools_;
}

// --- Asking ---

// What the caller takes the pool to be, against what it is. The first to name slots registers them;
// an operator's word ends the discussion.
std::optional<PermitFailure> Pools::check_belief(Change& change, Pool& pool, const Waiter& waiter) {
  const std::vector<SlotName>& believed = waiter.request.slots;
  if (believed.empty()) return std::nullopt;
  if (pool.settings.slots.empty() && !pool.settings.configured) {
    for (const SlotName& slot : believed) pool.settings.slots.push_back({slot, false, ""});
    refresh(pool);
    save(change, pool);
    return std::nullopt;
  }
  const auto is_registered = [&](const SlotName& slot) { return pool.places.contains(slot); };
  if (believed.size() == pool.places.size() &&
      std::all_of(believed.begin(), believed.end(), is_registered)) {
    return std::nullopt;  // none is named twice
  }
  if (pool.settings.configured) {
    const std::string by = waiter.parent ? waiter.parent->workflow_id.value : waiter.holder;
    const auto& alert = pool.settings.alert;
    if (alert && alert->by == by && alert->slots == count32(believed.size())) return std::nullopt;
    pool.settings.alert = BeliefAlert{count32(believed.size()), by, change.now()};
    save(change, pool);
    return std::nullopt;
  }
  return failure(PermitFailureKind::capacity_mismatch,
                 "pool " + pool.name.value + " is registered with " +
                     std::to_string(pool.settings.slots.size()) +
                     " slots and this caller believes it has " + std::to_string(believed.size()) +
                     "; make them agree, or settle it with: permit pool set " + pool.name.value +
                     " --capacity N");
}

// How many of the slots that would do the waiter's own run holds.
std::size_t Pools::own_holds(Change& change, const Pool& pool, const Waiter& waiter) {
  std::size_t own = 0;
  for (const auto& [id, child] : change.run(RunNumber{waiter.run}).children) {
    for (const core::ChildState::Run& run : child.runs) {
      const auto permit = core::parse_permit_id(run.execution.workflow_id);
      if (!permit || permit->pool != pool.name || !may_have(pool, waiter, permit->slot)) continue;
      const auto holder = pool.holders.find(permit->slot);
      if (holder == pool.holders.end()) continue;
      const core::RunState& held = change.run(holder->second);
      if (held.started.parent_workflow_execution == waiter.parent &&
          held.run_id == run.execution.run_id) {
        ++own;
      }
    }
  }
  return own;
}

// What no amount of waiting could ever grant.
std::optional<PermitFailure> Pools::check_possible(Change& change, const Pool& pool,
                                                   const Waiter& waiter) {
  const std::size_t wanted = candidate_count(pool, waiter);
  const auto count = static_cast<std::size_t>(waiter.request.count);
  if (!pool.settings.slots.empty() && count > wanted) {
    return failure(PermitFailureKind::too_many,
                   "asked for " + std::to_string(count) + " slots of pool " + pool.name.value +
                       ", which has " + std::to_string(wanted) + " that would do");
  }
  if (pool.settings.rate && static_cast<double>(count) > pool.settings.rate->burst) {
    return failure(PermitFailureKind::too_many, "asked for " + std::to_string(count) +
                                                    " slots of pool " + pool.name.value +
                                                    " at once, more than the burst of its rate");
  }
  if (!waiter.parent || wanted == 0) return std::nullopt;
  const std::size_t own = own_holds(change, pool, waiter);
  if (wanted - own >= count) return std::nullopt;
  return failure(PermitFailureKind::self_deadlock, "this run already holds " + std::to_string(own) +
                                                       " slots of pool " + pool.name.value +
                                                       " and could only wait for itself");
}

void Pools::request(Change& change, const core::StartChild& message) {
  load();
  const PermitRequest& request = *message.attributes.permit;
  Waiter waiter;
  waiter.request = request;
  waiter.priority = 3;
  if (message.attributes.priority && message.attributes.priority->priority_key != 0) {
    waiter.priority = message.attributes.priority->priority_key;
  }
  waiter.since = change.now();
  if (request.wait_timeout.count() > 0) waiter.expires = change.now() + request.wait_timeout;
  waiter.run = message.parent.run.value;
  waiter.initiated_event_id = message.parent.initiated_event_id;
  waiter.workflow_task_completed_event_id = message.workflow_task_completed_event_id;
  waiter.parent = message.parent.execution;
  waiter.root = message.root;
  const auto& backing_off = change.run(message.parent.run).backing_off;
  const auto probes = backing_off.find(request.pool);
  if (probes != backing_off.end()) waiter.probes = probes->second.probes;
  waiter.attributes = message.attributes;
  if (find(request.pool) == nullptr) {
    if (request.slots.empty()) {
      refuse(change, waiter,
             failure(PermitFailureKind::capacity_mismatch,
                     "pool " + request.pool.value +
                         " is not registered and the caller does not "
                         "say what slots it has; name them, or set it with: permit pool set " +
                         request.pool.value + " --capacity N"));
      return;
    }
    create(change, request.pool, request.slots);
  }
  Pool& pool = this->pool(request.pool);
  waiter.order =
      pool.settings.order == PermitOrder::unspecified ? request.order : pool.settings.order;
  auto refusal = check_belief(change, pool, waiter);
  if (!refusal) refusal = check_possible(change, pool, waiter);
  if (refusal) {
    refuse(change, waiter, std::move(*refusal));
    serve(change, pool);  // it may have been the first to say what slots there are
    return;
  }
  waiter.id = change.next_arrival();
  const std::int64_t id = waiter.id;
  pool.line.insert(std::move(waiter));
  pool_of_waiter_[id] = pool.name;
  serve(change, pool);
  Waiter* still = pool.line.find(id);
  if (still == nullptr) return;
  note_conflict(pool.name);
  if (request.wait) {
    save(change, pool, *still);
    schedule(pool);
    return;
  }
  const bool drained = pool.settings.drained;
  refuse(change, *still,
         drained ? failure(PermitFailureKind::drained, "pool " + pool.name.value + " is drained")
                 : failure(PermitFailureKind::taken,
                           "no slot of pool " + pool.name.value + " is free for this caller"));
  pool.line.erase(id);
  pool_of_waiter_.erase(id);
}

void Pools::refuse(Change& change, const Waiter& waiter, PermitFailure why) {
  if (!waiter.parent) {
    settled_.push_back({waiter.id, std::move(why)});
    return;
  }
  core::RunState& parent = change.run(RunNumber{waiter.run});
  if (!parent.is_open()) return;
  event::StartChildWorkflowExecutionFailed failed;
  failed.namespace_ = parent.namespace_;
  failed.workflow_id = core::waiting_id(waiter.request.pool, waiter.initiated_event_id);
  failed.workflow_type = waiter.attributes->workflow_type;
  failed.cause = StartChildWorkflowExecutionFailedCause::workflow_already_exists;
  failed.initiated_event_id = waiter.initiated_event_id;
  failed.workflow_task_completed_event_id = waiter.workflow_task_completed_event_id;
  failed.permit_failure = std::move(why);
  change.step(parent, [&](core::Transition& t) { t.receive(std::move(failed)); });
}

// --- Granting ---

void Pools::grant(Change& change, Pool& pool, Waiter waiter, const std::vector<SlotName>& slots) {
  for (const SlotName& slot : slots) {
    const core::RunState& permit = grant_slot(change, pool, waiter, slot);
    if (!waiter.parent) {
      waiter.granted.push_back(permit.number.value);
      ticket_of_permit_[permit.number] = waiter.id;
      continue;
    }
    core::RunState& parent = change.run(RunNumber{waiter.run});
    event::ChildWorkflowExecutionStarted started;
    started.namespace_ = parent.namespace_;
    started.initiated_event_id = waiter.initiated_event_id;
    started.workflow_execution = permit.execution();
    started.workflow_type = waiter.attributes->workflow_type;
    started.header = waiter.attributes->header;
    started.fence = permit.started.permit->fence;
    started.deadline = permit.started.permit->deadline;
    change.step(parent, [&](core::Transition& t) { t.receive(std::move(started)); });
  }
  if (waiter.parent) {
    erase_row(change, waiter.id);
    return;
  }
  waiter.expires = {};
  save(change, pool, waiter);
  const std::int64_t ticket = waiter.id;
  settled_.push_back({ticket, std::nullopt});
  holding_[ticket] = std::move(waiter);
}

namespace {

// As a number of JSON, with as many decimals as it takes.
std::string seconds_text(Duration time) {
  std::string text = format_duration(time);
  text.pop_back();  // the 's'
  if (text.find('.') != std::string::npos) text.erase(text.find_last_not_of('0') + 1);
  return text;
}

// The input that PermitSlotWorkflow has always had.
std::string permit_input(const PermitGrant& grant, Duration lease) {
  std::string input = R"({"resource":")";
  input.reserve(128);
  input += grant.pool.value;
  input += R"(","slot":")";
  input += grant.slot.value;
  input += R"(","lease_seconds":)";
  input += seconds_text(lease);
  input += '}';
  return input;
}

}  // namespace

const core::RunState& Pools::grant_slot(Change& change, Pool& pool, const Waiter& waiter,
                                        const SlotName& slot) {
  ENSURE(!pool.holders.contains(slot));
  const PermitRequest& request = waiter.request;
  Time deadline = change.now() + request.lease;
  if (request.max_hold.count() > 0) deadline = std::min(deadline, change.now() + request.max_hold);
  PermitGrant grant{pool.name, slot, change.next_fence(), deadline};
  if (waiter.since < change.now()) grant.requested_at = waiter.since;
  if (!waiter.parent) grant.ticket = waiter.id;

  NewRun run;
  run.workflow_id = core::permit_id(pool.name, slot);
  event::WorkflowExecutionStarted& started = run.started;
  started.workflow_type.name = core::permit_workflow_type;
  started.task_queue.name = change.limits().permit_queue;
  started.input = json_payloads(permit_input(grant, request.lease));
  started.workflow_execution_timeout = deadline + core::grace_of(request.lease) - change.now();
  started.permit = grant;
  started.permit_request = request;
  run.namespace_ = "default";
  std::string holder = waiter.holder;
  std::optional<RunId> holder_run_id;
  if (waiter.parent) {
    const core::RunState& parent = change.run(RunNumber{waiter.run});
    run.namespace_ = parent.namespace_;
    started.parent_workflow_namespace = parent.namespace_;
    started.parent_workflow_execution = waiter.parent;
    started.parent_initiated_event_id = waiter.initiated_event_id;
    started.root_workflow_execution = waiter.root;
    started.parent_close_policy = ParentClosePolicy::terminate;
    started.task_queue.name = waiter.attributes->task_queue.name;
    started.workflow_task_timeout = waiter.attributes->workflow_task_timeout;
    started.memo = waiter.attributes->memo;
    started.header = waiter.attributes->header;
    started.priority = waiter.attributes->priority;
    holder = waiter.parent->workflow_id.value;
    holder_run_id = waiter.parent->run_id;
  } else {
    started.identity = waiter.holder;
    started.request_id = waiter.request_id;
  }
  core::RunState& permit = change.start_run(std::move(run));
  change.step(permit,
              [&](core::Transition& t) { core::begin_lease(t, "permit-server", change.limits()); });
  hold(pool, slot, permit.number);
  news_.try_emplace(pool.name);
  store::HoldRow row{std::move(grant),         permit.number,  permit.run_id, std::move(holder),
                     std::move(holder_run_id), request.reason, change.now()};
  change.also_write(
      [row = std::move(row)](store::Store& store) mutable { store.open_hold(std::move(row)); });
  return permit;
}

void Pools::ended(Change& change, const core::RunState& permit) {
  const PermitGrant& grant = *permit.started.permit;
  Pool& pool = this->pool(grant.pool);
  const auto held = pool.holders.find(grant.slot);
  ENSURE(held != pool.holders.end() && held->second == permit.number);
  let_go(pool, grant.slot);
  PoolNews& news = news_[grant.pool];
  if (!pool.places.contains(grant.slot)) news.settings = true;  // a slot that has now gone
  const core::HoldEnd end = permit.hold_end.value();
  change.also_write([grant, end, now = change.now()](store::Store& store) {
    store.close_hold(grant, now, end.outcome, end.cause);
  });
  const auto ticket = ticket_of_permit_.find(permit.number);
  if (ticket != ticket_of_permit_.end()) {
    Waiter& holder = holding_.at(ticket->second);
    std::erase(holder.granted, permit.number.value);
    ticket_of_permit_.erase(ticket);
    if (holder.granted.empty()) {
      const std::int64_t id = holder.id;
      pool.tickets.erase(holder.request_id);
      holding_.erase(id);
      erase_row(change, id);
    } else {
      save(change, pool, holder);
    }
  }
  serve(change, pool);
}

// --- Leaving the line ---

void Pools::drop(Change& change, Pool& pool, std::int64_t id) {
  const Waiter* waiter = pool.line.find(id);
  ENSURE(waiter != nullptr);
  if (!waiter->request_id.empty()) pool.tickets.erase(waiter->request_id);
  pool.line.erase(id);
  erase_row(change, id);
}

void Pools::leave(Change& change, const core::LeaveLine& message) {
  if (find(message.pool) == nullptr) return;
  Pool& pool = this->pool(message.pool);
  const Waiter* waiter = pool.line.find_by_run(message.run.value, message.initiated_event_id);
  if (waiter == nullptr) return;
  drop(change, pool, waiter->id);
  serve(change, pool);  // what was kept for it may fit others
}

void Pools::withdraw(Change& change, RunNumber run, std::int64_t initiated_event_id) {
  const auto& children = change.run(run).children;
  const auto child = children.find(initiated_event_id);
  if (child == children.end() || find(child->second.waits_for) == nullptr) return;
  Pool& pool = this->pool(child->second.waits_for);
  const Waiter* found = pool.line.find_by_run(run.value, initiated_event_id);
  if (found == nullptr) return;
  const Waiter waiter = *found;
  drop(change, pool, waiter.id);
  refuse(change, waiter,
         failure(PermitFailureKind::canceled, "the request was withdrawn while it waited"));
  serve(change, pool);
}

}  // namespace permit::service
