// What must be true of pools and their lines between two commits: the order of grants, a line at
// rest, the rate, no ghosts, and a ledger that adds up.
#pragma once

#include <map>
#include <set>

#include "orchestrator/service/pools.h"
#include "tests/simulation/ledger.h"

namespace permit::simulation {

class LineCheck {
 public:
  explicit LineCheck(Totals& totals) : totals_(totals) {}

  // After a commit that ledger has read. `quiet`: nothing is overdue, so the line must be at rest.
  void check(store::Store& store, const Ledger& ledger, Time now, bool quiet);
  // An operator is changing the pool: in which batch is known only once it is answered, and what
  // rules held during that one is not.
  void pool_asked(const PoolName& name) { ++asked_[name]; }
  void pool_answered(const PoolName& name) {
    --asked_[name];
    changed_.insert(name);
  }
  // The server was started again: tickets may have left, what was known of wakes is gone.
  void restarted() {
    restarted_ = true;
    for (const auto& [name, count] : asked_) {
      if (count > 0) changed_.insert(name);  // or not: nobody was told
    }
    asked_.clear();
  }
  // The store is about to be closed.
  void let_go() { open_permits_.reset(); }
  // Σ outcomes + held = grants, for every slot.
  void check_counts(store::Store& store, const Ledger& ledger);

  const std::map<std::int64_t, service::Waiter>& waiters() const { return waiters_; }
  const std::map<PoolName, service::PoolSettings>& pools() const { return pools_; }

 private:
  using Waiters = std::map<std::int64_t, service::Waiter>;
  struct Bucket {
    double tokens = 0;
    Time at{};  // of the last grant
  };

  void load(store::Store& store);
  bool is_changing(const PoolName& name) const {
    const auto asked = asked_.find(name);
    return changed_.contains(name) || (asked != asked_.end() && asked->second > 0);
  }
  void check_order(const Ledger& ledger, const Waiters& before);
  void check_grant(const RunTrace& grant, const Ledger& ledger, const Waiters& before);
  void check_slots(const RunTrace& grant,
                   const std::map<PoolName, service::PoolSettings>& before) const;
  void note_buffered_wakes(const Ledger& ledger, Time now);
  bool wake_is_buffered(const PoolName& pool, const Ledger& ledger, Time now) const;
  void check_ghosts(const Ledger& ledger) const;
  void check_rest(const Ledger& ledger, Time now) const;
  void check_rate(const Ledger& ledger);
  void check_renewals(store::Store& store, const Ledger& ledger, Time now);
  std::set<SlotName> candidates(const service::Waiter& waiter) const;
  std::set<SlotName> grantable(const PoolName& name, const Ledger& ledger) const;

  Totals& totals_;
  std::unique_ptr<store::Statement> open_permits_;
  std::map<std::int64_t, std::string> texts_;
  std::map<PoolName, std::string> pool_texts_;
  Waiters waiters_;
  std::map<PoolName, service::PoolSettings> pools_;
  std::map<PoolName, Bucket> buckets_;
  std::map<PoolName, int> asked_;  // changes that have no answer yet
  std::set<PoolName> changed_;
  std::map<std::string, Time> deadlines_;  // of open permits, by run id
  // Wakes that are not in a history yet, since its run's worker has a task: run, timer.
  std::map<std::pair<std::int64_t, std::string>, std::pair<PoolName, Time>> buffered_wakes_;
  bool restarted_ = false;
};

}  // namespace permit::simulation
