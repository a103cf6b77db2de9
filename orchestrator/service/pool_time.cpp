// What time and waking do to pools: sleepers, rates, waits that run out.
#include <algorithm>
#include <cmath>

#include "orchestrator/protocol/ensure.h"
#include "orchestrator/service/pools.h"
#include "orchestrator/service/slot_choice.h"

namespace permit::service {

namespace {

constexpr double token_error = 1e-9;  // of sums of fractions

double tokens_at(const PoolSettings& settings, Time now) {
  const double elapsed = static_cast<double>((now - settings.tokens_at).count()) / 1e6;
  return std::min(settings.rate->burst, settings.tokens + elapsed * settings.rate->per_second);
}

}  // namespace

// --- Sleepers ---

void Pools::sleeper_changed(Change& change, const PoolName& name, const core::RunState& run) {
  if (find(name) == nullptr) create(change, name, {});
  Pool& pool = this->pool(name);
  std::set<std::string> asleep;
  if (run.is_open()) {
    for (const auto& [timer_id, timer] : run.timers) {
      if (timer.wake_on_pool == name && !timer.fired) asleep.insert(timer_id);
    }
  }
  for (auto it = pool.sleepers.begin(); it != pool.sleepers.end();) {
    const bool ours = it->second.run == run.number;
    if (!ours || asleep.erase(it->second.timer_id) > 0) {
      ++it;
      continue;
    }
    erase_row(change, it->first);
    it = pool.sleepers.erase(it);
  }
  for (const std::string& timer_id : asleep) {
    Sleeper sleeper;
    sleeper.id = change.next_arrival();
    sleeper.run = run.number;
    sleeper.timer_id = timer_id;
    sleeper.execution = run.execution();
    sleeper.since = change.now();
    sleeper.until = run.timers.at(timer_id).fire_time;
    sleeper.request.pool = name;
    sleeper.request.count = 1;
    const auto backing_off = run.backing_off.find(name);
    if (backing_off != run.backing_off.end()) {
      sleeper.request = backing_off->second.request;
      sleeper.probes = backing_off->second.probes;
    }
    save(change, pool, as_waiter(sleeper));
    pool_of_waiter_[sleeper.id] = name;
    pool.sleepers[sleeper.id] = std::move(sleeper);
  }
  if (!run.is_open()) pool.woken.erase(run.number);
  serve(change, pool);
}

Waiter Pools::as_waiter(const Sleeper& sleeper) {
  Waiter waiter;
  waiter.id = sleeper.id;
  waiter.request = sleeper.request;
  waiter.since = sleeper.since;
  waiter.expires = sleeper.until;
  waiter.run = sleeper.run.value;
  waiter.parent = sleeper.execution;
  waiter.timer_id = sleeper.timer_id;
  waiter.probes = sleeper.probes;
  return waiter;
}

Pools::Sleeper Pools::as_sleeper(const Waiter& row) {
  Sleeper sleeper;
  sleeper.id = row.id;
  sleeper.run = RunNumber{row.run};
  sleeper.timer_id = row.timer_id;
  if (row.parent) sleeper.execution = *row.parent;
  sleeper.request = row.request;
  sleeper.probes = row.probes;
  sleeper.since = row.since;
  sleeper.until = row.expires;
  return sleeper;
}

// The one that sleeps longest, of runs that are not awake already.
const Pools::Sleeper* Pools::sleeper_to_wake(const Pool& pool) const {
  for (const auto& [id, sleeper] : pool.sleepers) {
    if (!pool.woken.contains(sleeper.run)) return &sleeper;
  }
  return nullptr;
}

// Level-triggered: as many are awake as there are slots to try for, no more.
void Pools::wake_sleepers(Change& change, Pool& pool, std::size_t free) {
  pool.woken_known = true;
  std::erase_if(pool.woken, [&](const auto& wake) { return wake.second <= change.now(); });
  if (pool.settings.rate) {
    const double tokens = tokens_at(pool.settings, change.now()) + token_error;
    free = std::min(free, static_cast<std::size_t>(tokens));
  }
  while (free > pool.woken.size()) {
    const Sleeper* next = sleeper_to_wake(pool);
    if (next == nullptr) return;
    const Sleeper sleeper = *next;
    pool.sleepers.erase(sleeper.id);
    erase_row(change, sleeper.id);
    core::RunState& run = change.run(sleeper.run);
    const auto timer = run.timers.find(sleeper.timer_id);
    // Canceled by this very change; the message that says so is on its way.
    if (timer == run.timers.end() || timer->second.fired) continue;
    pool.woken[sleeper.run] = change.now() + std::chrono::seconds(1);
    woken_in_[sleeper.run].insert(pool.name);
    const std::int64_t started_event_id = timer->second.started_event_id;
    change.step(run, [&](core::Transition& t) {
      t.receive(event::TimerFired{sleeper.timer_id, started_event_id});
    });
  }
}

void Pools::task_closed(Change& change, RunNumber run) {
  const auto pools = woken_in_.extract(run);
  if (pools.empty()) return;
  for (const PoolName& name : pools.mapped()) {
    if (find(name) == nullptr) continue;
    Pool& pool = this->pool(name);
    if (pool.woken.erase(run) > 0) serve(change, pool);
  }
}

// --- Rate ---

// A first rate starts with its burst. After that, what was spent stays spent, or whoever repeats
// the settings would give out tokens.
void Pools::set_rate(Pool& pool, const PoolRate& rate, Time now) {
  PoolSettings& settings = pool.settings;
  const double tokens = settings.rate ? tokens_at(settings, now) : rate.burst;
  settings.tokens = std::min(tokens, rate.burst);
  settings.tokens_at = now;
  settings.rate = rate;
}

// Spent in the granting commit, never while waiting.
bool Pools::take_tokens(Change& change, Pool& pool, std::size_t count) {
  PoolSettings& settings = pool.settings;
  if (!settings.rate) return true;
  const double tokens = tokens_at(settings, change.now());
  if (tokens + token_error < static_cast<double>(count)) return false;
  settings.tokens = std::max(tokens - static_cast<double>(count), 0.0);
  settings.tokens_at = change.now();
  write_row(change, pool);
  return true;
}

// When the rate alone will let somebody have what they ask for: who has the slots and lacks tokens.
Time Pools::next_token(const Pool& pool) const {
  const PoolSettings& settings = pool.settings;
  if (!settings.rate) return never;
  Unclaimed free(pool.free);
  double need = 0;
  for (const auto& [key, waiter] : pool.line) {
    const auto count = static_cast<double>(waiter.request.count);
    if (has_slots(waiter, free)) {
      need = need == 0 ? count : std::min(need, count);
      if (key.order == PermitOrder::fair) break;
    } else if (key.order == PermitOrder::fair) {
      claim(waiter, free);
    }
  }
  if (need == 0 && free.size() > pool.woken.size() && sleeper_to_wake(pool) != nullptr) {
    need = static_cast<double>(pool.woken.size() + 1);
  }
  if (need == 0 || need > settings.rate->burst) return never;
  const double missing = need - settings.tokens;
  if (missing <= 0) return never;
  const double wait = missing / settings.rate->per_second * 1e6;
  return settings.tokens_at + Duration(static_cast<std::int64_t>(std::ceil(wait)));
}

// --- Time ---

// When it leaves the line unserved; zero: never.
Time Pools::expiry_of(const Waiter& waiter) const {
  Time expiry = never;
  if (waiter.request.wait_timeout.count() > 0) expiry = waiter.since + waiter.request.wait_timeout;
  if (!waiter.request_id.empty()) {
    const auto callers = callers_.find(waiter.id);
    const bool known = callers != callers_.end();
    const Time left = known ? callers->second.left : started_over_;
    if (!known || callers->second.waiting == 0) expiry = std::min(expiry, left + ticket_patience);
  }
  return expiry == never ? Time{} : expiry;
}

void Pools::schedule(Pool& pool) {
  Time due = std::min(pool.line.next_expiry(), next_token(pool));
  if (!pool.sleepers.empty()) {
    if (!pool.woken_known) due = Time{};
    for (const auto& [run, lapses] : pool.woken) due = std::min(due, lapses);
  }
  set_due(pool, due);
}

void Pools::set_due(Pool& pool, Time due) {
  if (pool.due == due) return;
  due_.erase({pool.due, pool.name});
  pool.due = due;
  if (due != never) due_.emplace(due, pool.name);
}

Time Pools::next_due() {
  load();
  return due_.empty() ? never : due_.begin()->first;
}

void Pools::fire_due(Change& change) {
  load();
  std::vector<PoolName> names;
  for (const auto& [due, name] : due_) {
    if (due > change.now()) break;
    names.push_back(name);
  }
  for (const PoolName& name : names) {
    Pool& pool = this->pool(name);
    for (const std::int64_t id : pool.line.expired(change.now())) {
      const Waiter waiter = *pool.line.find(id);
      const Duration patience = waiter.request.wait_timeout;
      if (patience.count() > 0 && waiter.since + patience <= change.now()) {
        ++tallies_[name].timeouts;  // else its callers have gone
      }
      drop(change, pool, id);
      refuse(change, waiter,
             PermitFailure{PermitFailureKind::wait_timed_out,
                           "no slot of pool " + name.value + " came free within the wait timeout"});
    }
    serve(change, pool);
  }
}

}  // namespace permit::service
