#include "orchestrator/service/waiting_line.h"

#include "orchestrator/protocol/ensure.h"

namespace permit::service {

Waiter& WaitingLine::insert(Waiter waiter) {
  const Key key = key_of(waiter);
  ENSURE(by_id_.emplace(waiter.id, key).second);
  if (waiter.run != 0) by_run_[{waiter.run, waiter.initiated_event_id}] = waiter.id;
  if (is_set(waiter.expires)) expiries_.emplace(waiter.expires, waiter.id);
  return by_key_.emplace(key, std::move(waiter)).first->second;
}

Waiter WaitingLine::take(std::int64_t id) {
  const auto found = by_id_.find(id);
  ENSURE(found != by_id_.end());
  const auto entry = by_key_.find(found->second);
  Waiter waiter = std::move(entry->second);
  if (waiter.run != 0) by_run_.erase({waiter.run, waiter.initiated_event_id});
  expiries_.erase({waiter.expires, id});
  by_key_.erase(entry);
  by_id_.erase(found);
  return waiter;
}

Waiter* WaitingLine::find(std::int64_t id) {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : &by_key_.at(found->second);
}

Waiter* WaitingLine::find_by_run(std::int64_t run, std::int64_t initiated_event_id) {
  const auto found = by_run_.find({run, initiated_event_id});
  return found == by_run_.end() ? nullptr : find(found->second);
}

std::int32_t WaitingLine::position(std::int64_t id) const {
  std::int32_t position = 0;
  for (const auto& [key, waiter] : by_key_) {
    ++position;
    if (key.id == id) return position;
  }
  return 0;
}

Time WaitingLine::next_expiry() const {
  return expiries_.empty() ? never : expiries_.begin()->first;
}

std::vector<std::int64_t> WaitingLine::expired(Time now) const {
  std::vector<std::int64_t> ids;
  for (const auto& [expires, id] : expiries_) {
    if (expires > now) break;
    ids.push_back(id);
  }
  return ids;
}

void WaitingLine::set_expiry(std::int64_t id, Time expires) {
  Waiter* waiter = find(id);
  ENSURE(waiter != nullptr);
  expiries_.erase({waiter->expires, id});
  waiter->expires = expires;
  if (is_set(expires)) expiries_.emplace(expires, id);
}

}  // namespace permit::service
