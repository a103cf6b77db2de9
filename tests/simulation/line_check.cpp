#include "tests/simulation/line_check.h"

#include <algorithm>
#include <compare>

#include "orchestrator/protocol/json.h"

namespace permit::simulation {

namespace {

using service::Waiter;
using service::WaitingLine;

bool sleeps(const Waiter& waiter) { return !waiter.timer_id.empty(); }
bool holds(const Waiter& waiter) { return !waiter.granted.empty(); }
bool in_line(const Waiter& waiter) { return !sleeps(waiter) && !holds(waiter); }

}  // namespace

void LineCheck::load(store::Store& store) {
  const auto pools = store.pools();
  std::erase_if(pools_, [&](const auto& pool) { return !pools.contains(pool.first); });
  for (const auto& [name, json] : pools) {
    std::string& text = pool_texts_[name];
    if (text == json && pools_.contains(name)) continue;
    text = json;
    pools_[name] = read_json<service::PoolSettings>(json);
  }
  Waiters now;
  for (const store::WaiterRow& row : store.waiters()) {
    std::string& text = texts_[row.id];
    const auto known = waiters_.find(row.id);
    const bool same = known != waiters_.end() && text == row.waiter_json;
    Waiter waiter = same ? known->second : read_json<Waiter>(row.waiter_json);
    if (!same) text = row.waiter_json;
    if (waiter.request.pool.empty()) waiter.request.pool = row.pool;  // a sleeper
    now.emplace(row.id, std::move(waiter));
  }
  waiters_ = std::move(now);
}

void LineCheck::check(store::Store& store, const Ledger& ledger, Time now, bool quiet) {
  const Waiters before = waiters_;
  const auto pools_before = pools_;
  load(store);
  for (const RunTrace* grant : ledger.new_grants()) check_slots(*grant, pools_before);
  check_order(ledger, before);
  check_rate(ledger);
  check_renewals(store, ledger, now);
  check_ghosts(ledger);
  note_buffered_wakes(ledger, now);
  if (quiet) check_rest(ledger, now);
  changed_.clear();
  restarted_ = false;
}

// --- Order ---

std::set<SlotName> LineCheck::candidates(const Waiter& waiter) const {
  std::set<SlotName> slots;
  const auto pool = pools_.find(waiter.request.pool);
  if (pool == pools_.end()) return slots;
  const auto& only = waiter.request.only;
  for (const service::SlotSetting& slot : pool->second.slots) {
    if (only.empty() || std::find(only.begin(), only.end(), slot.slot) != only.end()) {
      slots.insert(slot.slot);
    }
  }
  return slots;
}

void LineCheck::check_order(const Ledger& ledger, const Waiters& before) {
  for (const RunTrace* grant : ledger.new_grants()) {
    if (is_changing(grant->grant->pool)) continue;
    check_grant(*grant, ledger, before);
  }
}

// Nobody was in front who stood in line already, could have used the slot, and still waits.
void LineCheck::check_grant(const RunTrace& grant, const Ledger& ledger, const Waiters& before) {
  const auto is_grants = [&](const Waiter& waiter) {
    if (!in_line(waiter) || waiter.request.pool != grant.grant->pool) return false;
    if (waiter.parent) {
      return waiter.parent == grant.parent && waiter.initiated_event_id == grant.initiated_event_id;
    }
    return !waiter.request_id.empty() && !grant.parent && waiter.request_id == grant.request_id;
  };
  const auto own = std::find_if(before.begin(), before.end(),
                                [&](const auto& entry) { return is_grants(entry.second); });
  // Not in line before: it came in this batch, behind all who were, but for its priority.
  WaitingLine::Key key{PermitOrder::any, 9, INT64_MAX};
  if (own != before.end()) {
    key = WaitingLine::key_of(own->second);
    ++totals_.waits_granted;
  } else if (grant.parent) {
    const RunTrace* parent = ledger.find(grant.parent->run_id);
    require(parent != nullptr, "a permit's parent is not there");
    const auto child = parent->children.find(grant.initiated_event_id);
    if (child == parent->children.end() || !child->second.permit) return;  // closed again already
    const PermitOrder order = pools_.at(grant.grant->pool).order;
    key.order = order == PermitOrder::unspecified ? child->second.permit->order : order;
    key.priority = child->second.priority;
  } else if (grant.request) {
    return;  // a ticket of this batch: its priority is not in its history
  }
  for (const auto& [id, ahead] : before) {
    if (!in_line(ahead) || ahead.order != PermitOrder::fair) continue;
    if (ahead.request.pool != grant.grant->pool || !waiters_.contains(id)) continue;
    if (holds(waiters_.at(id)) || !(WaitingLine::key_of(ahead) < key)) continue;
    require(!candidates(ahead).contains(grant.grant->slot),
            "waiter " + std::to_string(id) + " of pool " + ahead.request.pool.value +
                " was overtaken by " + grant.workflow_id.value + " fence " +
                std::to_string(grant.grant->fence.value));
  }
}

void LineCheck::check_slots(const RunTrace& grant,
                            const std::map<PoolName, service::PoolSettings>& before) const {
  const auto allows = [&](const std::map<PoolName, service::PoolSettings>& pools) {
    const auto pool = pools.find(grant.grant->pool);
    if (pool == pools.end() || pool->second.drained) return false;
    return std::any_of(pool->second.slots.begin(), pool->second.slots.end(), [&](const auto& slot) {
      return slot.slot == grant.grant->slot && !slot.drained;
    });
  };
  require(allows(before) || allows(pools_) || is_changing(grant.grant->pool),
          "a slot was granted that is drained or not registered: " + grant.workflow_id.value);
}

// --- Rest ---

void LineCheck::check_ghosts(const Ledger& ledger) const {
  for (const auto& [id, waiter] : waiters_) {
    if (waiter.run == 0) continue;
    require(ledger.open().contains(waiter.run),
            "a run that has closed still stands in line or sleeps: waiter " + std::to_string(id));
  }
}

// Timers that sleep for a pool and still run, as history has it, though no row of the pool says so;
// some were woken by the very commit that began them.
void LineCheck::note_buffered_wakes(const Ledger& ledger, Time now) {
  std::set<std::pair<std::int64_t, std::string>> asleep;
  for (const auto& [id, waiter] : waiters_) {
    if (sleeps(waiter)) asleep.emplace(waiter.run, waiter.timer_id);
  }
  decltype(buffered_wakes_) wakes;
  for (const std::int64_t number : ledger.open()) {
    for (const auto& [timer_id, timer] : ledger.runs().at(number).timers) {
      const auto key = std::pair(number, timer_id);
      if (timer.wake_on_pool.empty() || asleep.contains(key)) continue;
      const auto known = buffered_wakes_.find(key);
      wakes[key] = {timer.wake_on_pool,
                    known == buffered_wakes_.end() ? now : known->second.second};
    }
  }
  buffered_wakes_ = std::move(wakes);
}

bool LineCheck::wake_is_buffered(const PoolName& pool, const Ledger& ledger, Time now) const {
  return std::any_of(buffered_wakes_.begin(), buffered_wakes_.end(), [&](const auto& wake) {
    const auto& [woken_pool, at] = wake.second;
    const RunTrace& run = ledger.runs().at(wake.first.first);
    return woken_pool == pool && at + std::chrono::seconds(1) > now &&
           (run.task_started || run.task_failed);
  });
}

std::set<SlotName> LineCheck::grantable(const PoolName& name, const Ledger& ledger) const {
  std::set<SlotName> free;
  const service::PoolSettings& pool = pools_.at(name);
  if (pool.drained) return free;
  for (const service::SlotSetting& slot : pool.slots) {
    if (!slot.drained) free.insert(slot.slot);
  }
  for (const std::int64_t number : ledger.open()) {
    const RunTrace& run = ledger.runs().at(number);
    if (run.is_permit() && run.grant->pool == name) free.erase(run.grant->slot);
  }
  return free;
}

// Nobody in line could be granted anything; sleepers only sleep while no slot is free for them.
void LineCheck::check_rest(const Ledger& ledger, Time now) const {
  std::map<PoolName, std::vector<const Waiter*>> lines;
  std::map<PoolName, std::size_t> asleep;
  for (const auto& [id, waiter] : waiters_) {
    if (sleeps(waiter)) ++asleep[waiter.request.pool];
    if (in_line(waiter)) lines[waiter.request.pool].push_back(&waiter);
  }
  for (const auto& [name, pool] : pools_) {
    if (pool.rate) continue;
    std::set<SlotName> free = grantable(name, ledger);
    auto& line = lines[name];
    std::sort(line.begin(), line.end(), [](const Waiter* a, const Waiter* b) {
      return WaitingLine::key_of(*a) < WaitingLine::key_of(*b);
    });
    for (const Waiter* waiter : line) {
      std::set<SlotName> could;
      for (const SlotName& slot : candidates(*waiter)) {
        if (free.contains(slot)) could.insert(slot);
      }
      require(could.size() < static_cast<std::size_t>(waiter->request.count),
              "waiter " + std::to_string(waiter->id) + " of pool " + name.value +
                  " waits although its slots are free");
      if (waiter->order != PermitOrder::fair) continue;
      for (const SlotName& slot : candidates(*waiter)) free.erase(slot);
    }
    require(free.empty() || asleep[name] == 0 || ledger.open().empty() ||
                ledger.awake(name, now) > 0 || wake_is_buffered(name, ledger, now) || restarted_ ||
                is_changing(name),
            "a run sleeps for pool " + name.value + " although a slot is free and nobody is awake");
  }
}

// --- Rate ---

// An operator who repeats the settings and a server that starts again fill no bucket.
void LineCheck::check_rate(const Ledger& ledger) {
  for (const auto& [name, pool] : pools_) {
    if (!pool.rate) continue;
    const auto [bucket, is_new] = buckets_.try_emplace(name, Bucket{pool.rate->burst, {}});
    if (is_new) continue;  // grants of this very batch may have come before the rate
    auto& [tokens, at] = bucket->second;
    for (const RunTrace* grant : ledger.new_grants()) {
      if (grant->grant->pool != name) continue;
      const double elapsed = static_cast<double>((grant->started - at).count()) / 1e6;
      tokens = std::min(pool.rate->burst, tokens + elapsed * pool.rate->per_second) - 1;
      at = grant->started;
      require(tokens > -1e-6, "pool " + name.value + " grants faster than its rate");
    }
  }
}

// --- Renewal ---

// A deadline only moves forward, and one that has passed does not move.
void LineCheck::check_renewals(store::Store& store, const Ledger& ledger, Time now) {
  std::map<std::string, Time> deadlines;
  if (!open_permits_) {
    open_permits_ =
        std::make_unique<store::Statement>(store.database(),
                                           "SELECT run_id, deadline FROM runs INDEXED BY runs_open "
                                           "WHERE pool IS NOT NULL AND status = 1");
  }
  for (auto row = open_permits_->bind(); row.step();) {
    const Time deadline{Duration(row.i64(1))};
    const std::string run_id(row.text(0));
    const auto before = deadlines_.find(run_id);
    if (before != deadlines_.end()) {
      require(deadline >= before->second, "a renewal shortened the lease of " + run_id);
      if (deadline > before->second) sometimes("a lease is renewed");
      require(deadline == before->second || before->second > now,
              "a late renewal revived " + run_id);
    }
    const RunTrace* permit = ledger.find(RunId(run_id));
    require(permit == nullptr || deadline <= ledger.deadline_max(*permit),
            "the lease of " + run_id + " is longer than anybody has asked for");
    deadlines[run_id] = deadline;
  }
  deadlines_ = std::move(deadlines);
}

// --- The ledger ---

void LineCheck::check_counts(store::Store& store, const Ledger& ledger) {
  std::map<std::string, std::int64_t> grants;
  std::map<std::string, std::int64_t> ended;
  store::Statement counts(store.database(), "SELECT pool, slot, outcome, holds FROM hold_counts");
  for (auto row = counts.bind(); row.step();) {
    const std::string id = "permit:" + std::string(row.text(0)) + ":" + std::string(row.text(1));
    (row.i64(2) == 0 ? grants : ended)[id] += row.i64(3);
  }
  std::map<std::string, std::int64_t> granted;
  std::map<std::string, std::int64_t> held;
  for (const auto& [number, run] : ledger.runs()) {
    if (!run.is_permit()) continue;
    ++granted[run.workflow_id.value];
    if (run.open) ++held[run.workflow_id.value];
  }
  require(grants == granted, "the counts of grants are not those of the histories");
  for (const auto& [id, count] : granted) {
    require(ended[id] + held[id] == count, "outcomes and held do not add up to grants for " + id);
  }
  store::Statement open_holds(store.database(), "SELECT count(*) FROM holds WHERE outcome IS NULL");
  std::int64_t open = 0;
  for (const auto& [id, count] : held) open += count;
  auto row = open_holds.bind();
  require(row.step() && row.i64(0) == open, "the open holds are not the open permits");
}

}  // namespace permit::simulation
