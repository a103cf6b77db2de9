// Pools, their slots and their lines: the one gate that every start of a permit passes. All of it
// is memory over the store's rows, but for who waits for a ticket; forget() drops it after a failed
// change and the next use loads it.
//
// The line is always at rest between requests: nobody in it could be granted anything. So whatever
// changes a pool (a slot frees, capacity or a drain changes, somebody joins) calls serve(), which
// grants from the head until nothing more fits, in the same commit.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "orchestrator/core/decision.h"
#include "orchestrator/protocol/error.h"
#include "orchestrator/protocol/pools.h"
#include "orchestrator/service/change.h"
#include "orchestrator/service/free_slots.h"
#include "orchestrator/service/identifiers.h"
#include "orchestrator/service/news.h"
#include "orchestrator/service/waiting_line.h"

namespace permit::service {

struct SlotSetting {
  SlotName slot;
  bool drained = false;
  std::string device;
};
BOOST_DESCRIBE_STRUCT(SlotSetting, (), (slot, drained, device))

struct PoolSettings {
  std::vector<SlotSetting> slots;  // registered, in order
  bool configured = false;         // by an operator; callers' beliefs no longer matter
  bool drained = false;
  PermitOrder order = PermitOrder::unspecified;  // overrides the callers'
  std::optional<PoolRate> rate;
  double tokens = 0;
  Time tokens_at{};
  std::optional<BeliefAlert> alert;
  std::vector<PoolChange> changes;  // newest first

  SlotSetting* find(const SlotName& slot);
  const SlotSetting* find(const SlotName& slot) const;
};
BOOST_DESCRIBE_STRUCT(PoolSettings, (),
                      (slots, configured, drained, order, rate, tokens, tokens_at, alert, changes))

// A ticket that nobody has asked for this long leaves the line.
inline constexpr Duration ticket_patience = std::chrono::seconds(15);

class Pools {
 public:
  struct Sleeper {
    std::int64_t id = 0;  // of its row; the longest sleeping has the lowest
    RunNumber run;
    std::string timer_id;
    WorkflowExecution execution;
    PermitRequest request;  // its last one, as far as it is known
    std::int32_t probes = 0;
    Time since{};
    Time until{};
  };
  struct Pool {
    PoolName name;
    PoolSettings settings;
    std::map<SlotName, RunNumber> holders;  // registered or not (then their last)
    // Of the above; refresh() makes them anew.
    std::map<SlotName, std::size_t> places;  // in settings.slots
    FreeSlots free;
    WaitingLine line;
    std::map<std::string, std::int64_t> tickets;  // by request id; in line, or granted
    std::map<std::int64_t, Sleeper> sleepers;     // by row id
    std::map<RunNumber, Time> woken;              // outstanding wakes and when they lapse
    bool woken_known = false;                     // not yet: the next batch looks whom to wake
    Time due = never;                             // as in due_
  };

  Pools(store::Store& store, std::uint64_t seed);

  // --- From runs, by message ---
  void request(Change& change, const core::StartChild& message);
  // Somebody asked and got nothing at once.
  void note_conflict(const PoolName& name) { ++tallies_[name].conflicts; }
  // A stock SDK's plain start of permit:<pool>:<slot>. Fills in the grant, or says why not.
  std::optional<PermitFailure> admit_plain(Change& change, NewRun& run);
  void granted_plain(Change& change, const core::RunState& permit);
  void ended(Change& change, const core::RunState& permit);
  void leave(Change& change, const core::LeaveLine& message);
  void withdraw(Change& change, RunNumber run, std::int64_t initiated_event_id);
  void sleeper_changed(Change& change, const PoolName& name, const core::RunState& run);
  void task_closed(Change& change, RunNumber run);

  // --- From holders that are not workflows ---
  // The ticket of this request id, made if need be; it waits or has its grants.
  Waiter& acquire(Change& change, const AcquireRequest& request);
  Waiter* ticket(const PoolName& name, const std::string& request_id);
  // Which ticket a permit was granted to, if to one.
  const Waiter* ticket_of(RunNumber permit) const;
  // That a call waits for this ticket, which stands in line, and that it does no more. Known to
  // this process only: no change writes it and none undoes it.
  void caller_waits(std::int64_t ticket);
  void caller_left(std::int64_t ticket, Time now);
  void remove_waiter(Change& change, std::int64_t id);

  // --- From operators; the pool remembers what they did ---
  void remove_waiter(Change& change, const RemoveWaiterRequest& request);
  void set(Change& change, const SetPoolRequest& request);
  void remove(Change& change, const PoolName& name);
  enum class Drain { on, off };
  void drain(Change& change, const DrainRequest& request, Drain drain);

  // --- Time ---
  Time next_due();
  void fire_due(Change& change);

  // --- Looking ---
  const Pool* find(const PoolName& name);
  std::optional<RunNumber> holder(const PoolName& pool, const SlotName& slot);
  const std::map<PoolName, Pool>& all();
  Error unknown(const PoolName& name);
  std::int32_t waiting(const Pool& pool) const;
  // The waiter of this id and its pool. Throws Error (not_found).
  std::pair<const Pool*, const Waiter*> waiter(std::int64_t id);
  // The same for one that is described only: a sleeper too, as if it stood in line.
  std::pair<const Pool*, Waiter> waiter_or_sleeper(std::int64_t id);
  static Waiter as_waiter(const Sleeper& sleeper);  // its row, too
  // Why the waiter waits, in a word of WhyResponse, and the slots it could use that are held.
  struct Why {
    std::string reason;
    std::vector<RunNumber> blocked_by;
  };
  Why why(const Pool& pool, const Waiter& waiter) const;
  WaiterInfo describe(const Pool& pool, const Waiter& waiter, std::int32_t position) const;

  // Tickets that were granted or refused since the last call, for those who wait for an answer; a
  // refusal says why.
  struct Settled {
    std::int64_t ticket = 0;
    std::optional<PermitFailure> refusal;
  };
  std::vector<Settled> take_settled();
  // Which pools have changed since the last call, and in what.
  std::map<PoolName, PoolNews> take_news() { return std::exchange(news_, {}); }
  std::map<PoolName, PoolTally> take_tallies() { return std::exchange(tallies_, {}); }

  // After a failed change, if it touched pools.
  void forget();
  // At the start and after a failed batch: callers who got no grant get the time to ask again.
  void start_over(Time now);
  // The change that dirtied us is in the batch.
  void written() { dirty_ = false; }

 private:
  void load();
  Pool& pool(const PoolName& name);
  Pool& create(Change& change, const PoolName& name, const std::vector<SlotName>& slots);
  Pool* line_of(std::int64_t waiter);
  Waiter* ticket(Pool& pool, std::int64_t id);
  const Sleeper* find_sleeper(std::int64_t id) const;
  static Sleeper as_sleeper(const Waiter& row);
  Time expiry_of(const Waiter& waiter) const;
  void set_expiry(std::int64_t ticket);
  void save(Change& change, const Pool& pool);
  static void write_row(Change& change, const Pool& pool);
  void save(Change& change, const Pool& pool, const Waiter& waiter);
  void erase_row(Change& change, std::int64_t id);

  std::optional<PermitFailure> check_belief(Change& change, Pool& pool, const Waiter& waiter);
  std::optional<PermitFailure> check_possible(Change& change, const Pool& pool,
                                              const Waiter& waiter);
  static void refresh(Pool& pool);
  static void hold(Pool& pool, const SlotName& slot, RunNumber permit);
  static void let_go(Pool& pool, const SlotName& slot);
  std::size_t own_holds(Change& change, const Pool& pool, const Waiter& waiter);
  void serve(Change& change, Pool& pool);
  Unclaimed serve_line(Change& change, Pool& pool);
  bool serve_one(Change& change, Pool& pool, std::int64_t id, const Unclaimed& free);
  std::optional<std::vector<SlotName>> slots_for(Change& change, Pool& pool, const Waiter& waiter,
                                                 const Unclaimed& free);
  void join(Change& change, Pool& pool, Waiter waiter);
  void wake_sleepers(Change& change, Pool& pool, std::size_t free);
  void grant(Change& change, Pool& pool, Waiter waiter, const std::vector<SlotName>& slots);
  const core::RunState& grant_slot(Change& change, Pool& pool, const Waiter& waiter,
                                   const SlotName& slot);
  void refuse(Change& change, const Waiter& waiter, PermitFailure why);
  void drop(Change& change, Pool& pool, std::int64_t id);
  void refuse_impossible(Change& change, Pool& pool);
  static void set_slots(Pool& pool, const std::vector<SlotName>& names);
  static void set_devices(Pool& pool, const std::map<std::string, std::string>& devices);
  // `removed`: who was taken out of the line, if that was it.
  void record(const Change& change, Pool& pool, PoolChange done, const std::string& removed = "");
  const Sleeper* sleeper_to_wake(const Pool& pool) const;
  void schedule(Pool& pool);
  void set_due(Pool& pool, Time due);
  void set_rate(Pool& pool, const PoolRate& rate, Time now);
  bool take_tokens(Change& change, Pool& pool, std::size_t count);
  Time next_token(const Pool& pool) const;

  store::Store& store_;
  Random random_;
  bool loaded_ = false;
  bool dirty_ = false;
  std::map<PoolName, Pool> pools_;
  std::map<std::int64_t, Waiter> holding_;  // tickets that have been granted
  std::map<RunNumber, std::int64_t> ticket_of_permit_;
  std::map<std::int64_t, PoolName> pool_of_waiter_;
  std::set<std::pair<Time, PoolName>> due_;
  std::map<RunNumber, std::set<PoolName>> woken_in_;  // pools that may have it in `woken`
  std::vector<Settled> settled_;
  std::map<PoolName, PoolNews> news_;
  std::map<PoolName, PoolTally> tallies_;
  struct Callers {
    int waiting = 0;
    Time left{};  // when the last one did
  };
  std::map<std::int64_t, Callers> callers_;  // of tickets in line; absent: none since started_over_
  Time started_over_{};
};

}  // namespace permit::service
