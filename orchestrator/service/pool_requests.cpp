// What holders that are not workflows, and operators, ask of pools.
#include <algorithm>

#include "orchestrator/core/validate.h"
#include "orchestrator/protocol/ensure.h"
#include "orchestrator/protocol/error.h"
#include "orchestrator/protocol/json.h"
#include "orchestrator/protocol/nearest.h"
#include "orchestrator/protocol/time_text.h"
#include "orchestrator/service/full_disk.h"
#include "orchestrator/service/pools.h"
#include "orchestrator/service/slot_choice.h"

namespace permit::service {

Error Pools::unknown(const PoolName& name) {
  load();
  std::vector<std::string> known;
  known.reserve(pools_.size());
  for (const auto& [pool, settings] : pools_) known.push_back(pool.value);
  const std::optional<std::string> nearest = nearest_name(name.value, known);
  const std::string way_out = nearest
                                  ? "did you mean " + *nearest + "?"
                                  : "make it with: permit pool set " + name.value + " --capacity N";
  return not_found("POOL_NOT_FOUND", "there is no pool " + name.value + "; " + way_out);
}

// --- Tickets ---

Waiter* Pools::ticket(const PoolName& name, const std::string& request_id) {
  load();
  const auto pool = pools_.find(name);
  if (pool == pools_.end()) return nullptr;
  const auto id = pool->second.tickets.find(request_id);
  return id == pool->second.tickets.end() ? nullptr : ticket(pool->second, id->second);
}

Waiter* Pools::ticket(Pool& pool, std::int64_t id) {
  const auto holding = holding_.find(id);
  return holding != holding_.end() ? &holding->second : pool.line.find(id);
}

const Waiter* Pools::ticket_of(RunNumber permit) const {
  const auto found = ticket_of_permit_.find(permit);
  return found == ticket_of_permit_.end() ? nullptr : &holding_.at(found->second);
}

namespace {

Waiter waiter_for(const AcquireRequest& request, const PermitOrder pool_order, Time now,
                  const core::Limits& limits) {
  Waiter waiter;
  PermitRequest& wanted = waiter.request;
  wanted.pool = request.pool;
  wanted.slots = request.slots;
  wanted.only = request.only;
  wanted.count = request.count;
  wanted.lease = request.lease.count() == 0 ? Duration(std::chrono::minutes(2)) : request.lease;
  wanted.max_hold = request.max_hold;
  wanted.order = request.order == PermitOrder::unspecified ? PermitOrder::fair : request.order;
  wanted.wait = true;
  wanted.wait_timeout = request.wait_timeout;
  wanted.reason = request.reason;
  wanted.labels = request.labels;
  core::check_permit_request(wanted, limits);
  core::check_priority(Priority{request.priority, "", 0});
  waiter.order = pool_order == PermitOrder::unspecified ? wanted.order : pool_order;
  waiter.priority = request.priority == 0 ? 3 : request.priority;
  waiter.since = now;
  if (request.wait_timeout.count() > 0) waiter.expires = now + request.wait_timeout;
  waiter.request_id = request.request_id;
  waiter.holder = request.holder;
  return waiter;
}

bool same_request(const Waiter& a, const Waiter& b) {
  return a.request.count == b.request.count && a.request.lease == b.request.lease &&
         a.request.max_hold == b.request.max_hold && a.request.only == b.request.only &&
         a.holder == b.holder;
}

}  // namespace

Waiter& Pools::acquire(Change& change, const AcquireRequest& request) {
  core::check_pool_name(request.pool);
  core::check_name(request.request_id, "requestId", change.limits());
  core::check_optional_name(request.holder, "holder", change.limits());
  load();
  const auto found = pools_.find(request.pool);
  if (found == pools_.end()) throw unknown(request.pool);
  dirty_ = true;
  Pool& pool = found->second;
  Waiter waiter = waiter_for(request, pool.settings.order, change.now(), change.limits());
  const auto asked = pool.tickets.find(request.request_id);
  if (asked != pool.tickets.end()) {
    Waiter& known = *ticket(pool, asked->second);
    if (same_request(known, waiter)) return known;
    throw Error(ErrorCode::already_exists, "REQUEST_ID_REUSED",
                "this requestId was used for another acquire; use a fresh one");
  }
  auto refusal = check_belief(change, pool, waiter);
  if (!refusal) refusal = check_possible(change, pool, waiter);
  if (refusal) {
    const bool too_many = refusal->kind == PermitFailureKind::too_many;
    throw failed_precondition(too_many ? "CANNOT_FIT" : "CAPACITY_MISMATCH", refusal->message);
  }
  require_space(store_);
  waiter.id = change.next_arrival();
  const std::int64_t id = waiter.id;
  pool.tickets[waiter.request_id] = id;
  pool_of_waiter_[id] = pool.name;
  join(change, pool, std::move(waiter));
  Waiter& made = *ticket(pool, id);
  if (made.granted.empty()) {  // a grant has written its ticket
    save(change, pool, made);
    note_conflict(pool.name);
  }
  return made;
}

void Pools::caller_waits(std::int64_t ticket) {
  ++callers_[ticket].waiting;
  set_expiry(ticket);
}

void Pools::caller_left(std::int64_t ticket, Time now) {
  Callers& callers = callers_.at(ticket);
  --callers.waiting;
  callers.left = now;
  set_expiry(ticket);
}

void Pools::set_expiry(std::int64_t ticket) {
  load();
  Pool* pool = line_of(ticket);
  ENSURE(pool != nullptr);
  pool->line.set_expiry(ticket, expiry_of(*pool->line.find(ticket)));
  schedule(*pool);
}

// --- Operators ---

const SlotSetting* PoolSettings::find(const SlotName& slot) const {
  const auto found = std::find_if(slots.begin(), slots.end(),
                                  [&](const SlotSetting& setting) { return setting.slot == slot; });
  return found == slots.end() ? nullptr : &*found;
}

SlotSetting* PoolSettings::find(const SlotName& slot) {
  return const_cast<SlotSetting*>(std::as_const(*this).find(slot));
}

namespace {

bool same_rate(const std::optional<PoolRate>& a, const std::optional<PoolRate>& b) {
  return a && b && a->per_second == b->per_second && a->burst == b->burst;
}

// The first few.
std::string names_of(const std::vector<SlotName>& slots) {
  constexpr std::size_t named_max = 8;
  std::string names;
  for (std::size_t i = 0; i < std::min(slots.size(), named_max); ++i) {
    names += (i == 0 ? "" : " ") + slots[i].value;
  }
  return names + (slots.size() > named_max ? " …" : "");
}

// "set capacity 4, order fair"
std::string what_was_set(const SetPoolRequest& request) {
  std::string what;
  const auto add = [&what](const std::string& part) { what += (what.empty() ? "" : ", ") + part; };
  if (request.capacity) add("capacity " + std::to_string(*request.capacity));
  if (request.slots)
    add(std::to_string(request.slots->size()) + " slots: " + names_of(*request.slots));
  if (request.order == PermitOrder::fair) add("order fair");
  if (request.order == PermitOrder::any) add("order any");
  if (request.rate) add("rate");
  if (request.devices) add("devices");
  return "set " + (what.empty() ? "nothing" : what);
}

}  // namespace

void Pools::set(Change& change, const SetPoolRequest& request) {
  core::check_pool_name(request.pool);
  if (request.capacity && request.slots) {
    throw invalid_argument("POOL_INVALID", "give capacity or slots, not both");
  }
  std::vector<SlotName> names;
  if (request.slots) names = *request.slots;
  if (request.capacity) {
    if (*request.capacity < 0 ||
        static_cast<std::size_t>(*request.capacity) > change.limits().slots_max) {
      throw invalid_argument("CAPACITY_INVALID",
                             "capacity must be 0 to " + std::to_string(change.limits().slots_max));
    }
    for (int i = 0; i < *request.capacity; ++i) names.emplace_back(std::to_string(i));
  }
  PermitRequest shape;  // the same rules as for a caller's slots
  shape.pool = request.pool;
  shape.slots = names;
  core::check_permit_request(shape, change.limits());
  if (request.rate && !(request.rate->per_second > 0 && request.rate->burst >= 1)) {
    throw invalid_argument("RATE_INVALID", "rate needs perSecond above 0 and burst of 1 or more");
  }
  if (find(request.pool) == nullptr) {
    if (!request.capacity && !request.slots) throw unknown(request.pool);
    create(change, request.pool, {});
  }
  Pool& pool = this->pool(request.pool);
  const std::string before = to_json(pool.settings);
  if (request.capacity || request.slots) set_slots(pool, names);
  if (request.order != PermitOrder::unspecified) pool.settings.order = request.order;
  if (request.rate && !same_rate(request.rate, pool.settings.rate)) {
    set_rate(pool, *request.rate, change.now());
  }
  if (request.devices) set_devices(pool, *request.devices);
  if (to_json(pool.settings) == before) return;  // as it was, so there is nothing to record
  record(change, pool, {{}, what_was_set(request), request.identity, request.reason});
  save(change, pool);
  refuse_impossible(change, pool);
  serve(change, pool);
}

// What is known of a slot that stays is kept.
void Pools::set_slots(Pool& pool, const std::vector<SlotName>& names) {
  std::vector<SlotSetting> slots;
  for (const SlotName& name : names) {
    const SlotSetting* known = pool.settings.find(name);
    slots.push_back(known != nullptr ? *known : SlotSetting{name, false, ""});
  }
  pool.settings.slots = std::move(slots);
  pool.settings.configured = true;
  pool.settings.alert.reset();
  refresh(pool);
}

void Pools::set_devices(Pool& pool, const std::map<std::string, std::string>& devices) {
  constexpr std::size_t device_bytes_max = 256;
  for (const auto& [slot, device] : devices) {
    if (pool.settings.find(SlotName(slot)) == nullptr) {
      throw not_found("SLOT_NOT_FOUND", "pool " + pool.name.value + " has no slot " + slot);
    }
    if (device.empty() || device.size() > device_bytes_max) {
      throw invalid_argument("DEVICE_INVALID", "a device is named in 1 to 256 bytes");
    }
  }
  for (SlotSetting& slot : pool.settings.slots) {
    const auto device = devices.find(slot.slot.value);
    slot.device = device == devices.end() ? "" : device->second;
  }
}

void Pools::record(const Change& change, Pool& pool, PoolChange done, const std::string& removed) {
  constexpr std::size_t changes_max = 50;
  done.at = change.now();
  core::check_optional_name(done.by, "identity", change.limits());
  if (done.reason.size() > change.limits().reason_bytes_max) {
    done.reason.resize(change.limits().reason_bytes_max);
  }
  news_[pool.name].acts.push_back({done, removed});
  auto& changes = pool.settings.changes;
  changes.insert(changes.begin(), std::move(done));
  if (changes.size() > changes_max) changes.resize(changes_max);
}

// After a change of slots: those who now ask for more than there is.
void Pools::refuse_impossible(Change& change, Pool& pool) {
  std::vector<std::int64_t> ids;
  for (const auto& [key, waiter] : pool.line) ids.push_back(key.id);
  for (const std::int64_t id : ids) {
    const Waiter waiter = *pool.line.find(id);
    auto refusal = check_possible(change, pool, waiter);
    if (!refusal || refusal->kind != PermitFailureKind::too_many) continue;
    drop(change, pool, id);
    refuse(change, waiter, std::move(*refusal));
  }
}

void Pools::remove(Change& change, const PoolName& name) {
  if (find(name) == nullptr) throw unknown(name);
  Pool& pool = this->pool(name);
  if (!pool.holders.empty() || !pool.line.empty()) {
    throw failed_precondition("POOL_IN_USE",
                              "pool " + name.value + " has " + std::to_string(pool.holders.size()) +
                                  " holders and " + std::to_string(pool.line.size()) +
                                  " waiters; drain it and wait until they are gone");
  }
  for (const auto& [id, sleeper] : pool.sleepers) erase_row(change, id);
  set_due(pool, never);
  pools_.erase(name);
  PoolNews& news = news_[name];
  news.settings = true;
  news.acts.push_back({{change.now(), "removed the pool", "", ""}, ""});
  change.also_write([name](store::Store& store) { store.delete_pool(name); });
}

void Pools::drain(Change& change, const DrainRequest& request, Drain drain) {
  if (find(request.pool) == nullptr) throw unknown(request.pool);
  Pool& pool = this->pool(request.pool);
  const bool on = drain == Drain::on;
  if (request.slot.empty()) {
    pool.settings.drained = on;
  } else {
    SlotSetting* slot = pool.settings.find(request.slot);
    if (slot == nullptr) {
      throw not_found("SLOT_NOT_FOUND",
                      "pool " + request.pool.value + " has no slot " + request.slot.value);
    }
    slot->drained = on;
  }
  refresh(pool);
  std::string what = on ? "drained " : "undrained ";
  what += request.slot.empty() ? "the pool" : "slot " + request.slot.value;
  record(change, pool, {{}, std::move(what), request.identity, request.reason});
  save(change, pool);
  serve(change, pool);
}

void Pools::remove_waiter(Change& change, std::int64_t id) {
  load();
  if (const Sleeper* sleeper = find_sleeper(id)) {
    throw failed_precondition(
        "WAITER_BACKING_OFF",
        "waiter " + std::to_string(id) + " is not in the line: it was refused, and asks again by " +
            "itself at " + format_time(sleeper->until) + "; cancel workflow " +
            sleeper->execution.workflow_id.value + " to stop it");
  }
  const auto [of, found] = this->waiter(id);
  const Waiter waiter = *found;
  Pool& pool = this->pool(of->name);
  drop(change, pool, id);
  refuse(change, waiter,
         PermitFailure{PermitFailureKind::canceled, "removed from the line by an operator"});
  serve(change, pool);
}

void Pools::remove_waiter(Change& change, const RemoveWaiterRequest& request) {
  const auto [of, waiter] = waiter_or_sleeper(request.id.value);
  const std::string holder = waiter.parent ? waiter.parent->workflow_id.value : waiter.holder;
  Pool& pool = this->pool(of->name);
  remove_waiter(change, request.id.value);
  record(change, pool,
         {{}, "removed " + holder + " from the line", request.identity, request.reason}, holder);
  save(change, pool);
}

// --- Looking ---

std::int32_t Pools::waiting(const Pool& pool) const {
  return static_cast<std::int32_t>(pool.line.size());
}

// The pool whose line this waiter stands in, if in any.
Pools::Pool* Pools::line_of(std::int64_t waiter) {
  const auto where = pool_of_waiter_.find(waiter);
  if (where == pool_of_waiter_.end()) return nullptr;
  Pool& pool = pools_.at(where->second);
  return pool.line.find(waiter) == nullptr ? nullptr : &pool;
}

std::pair<const Pools::Pool*, const Waiter*> Pools::waiter(std::int64_t id) {
  load();
  Pool* pool = line_of(id);
  if (pool == nullptr) {
    throw not_found("WAITER_NOT_FOUND", "no waiter " + std::to_string(id) + " stands in any line");
  }
  return {pool, pool->line.find(id)};
}

const Pools::Sleeper* Pools::find_sleeper(std::int64_t id) const {
  const auto where = pool_of_waiter_.find(id);
  if (where == pool_of_waiter_.end()) return nullptr;
  const auto& sleepers = pools_.at(where->second).sleepers;
  const auto found = sleepers.find(id);
  return found == sleepers.end() ? nullptr : &found->second;
}

std::pair<const Pools::Pool*, Waiter> Pools::waiter_or_sleeper(std::int64_t id) {
  load();
  if (const Sleeper* sleeper = find_sleeper(id)) {
    return {&pools_.at(pool_of_waiter_.at(id)), as_waiter(*sleeper)};
  }
  const auto [pool, waiter] = this->waiter(id);
  return {pool, *waiter};
}

std::vector<Pools::Settled> Pools::take_settled() {
  for (const Settled& one : settled_) callers_.erase(one.ticket);
  return std::exchange(settled_, {});
}

Pools::Why Pools::why(const Pool& pool, const Waiter& waiter) const {
  Why why;
  std::size_t wanted = 0;
  std::size_t free = 0;
  for (const SlotSetting& setting : pool.settings.slots) {
    if (!may_have(pool, waiter, setting.slot)) continue;
    ++wanted;
    const auto holder = pool.holders.find(setting.slot);
    if (holder != pool.holders.end()) why.blocked_by.push_back(holder->second);
    if (pool.free.contains(setting.slot)) ++free;
  }
  if (pool.settings.drained) {
    why.reason = "pool_drained";
  } else if (wanted == 0) {
    why.reason = "no_slots";
  } else if (free >= static_cast<std::size_t>(waiter.request.count)) {
    // Before one who sleeps there are the whole line and those who were woken already.
    const bool first =
        pool.line.empty() ? pool.woken.empty() : pool.line.begin()->first.id == waiter.id;
    why.reason = first && pool.settings.rate ? "rate_limited" : "behind";
  } else {
    why.reason = why.blocked_by.empty() ? "slots_drained" : "slots_held";
  }
  return why;
}

WaiterInfo Pools::describe(const Pool& pool, const Waiter& waiter, std::int32_t position) const {
  WaiterInfo info;
  info.id = Fence{waiter.id};
  info.pool = pool.name;
  info.state = waiter.timer_id.empty() ? "in_line" : "backing_off";
  info.position = position;
  info.order = waiter.order;
  info.priority = waiter.priority;
  info.count = waiter.request.count;
  info.holder = waiter.parent ? waiter.parent->workflow_id.value : waiter.holder;
  if (waiter.parent) info.holder_run_id = waiter.parent->run_id;
  info.reason = waiter.request.reason;
  info.since = waiter.since;
  info.expires = waiter.expires;
  info.probes = waiter.probes;
  return info;
}

}  // namespace permit::service
