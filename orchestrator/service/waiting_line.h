// Who waits for a pool, in what order: `fair` before `any`, then by priority, then by arrival.
// Pure; rows of it are in the store as JSON.
#pragma once

#include <compare>
#include <map>
#include <set>

#include "orchestrator/protocol/command.h"
#include "orchestrator/protocol/pools.h"

namespace permit::service {

// One request that stands in line, or (granted not empty) a holder that is not a workflow and whose
// request may be repeated; or (timer_id not empty) a run that sleeps and may be woken early.
struct Waiter {
  std::int64_t id = 0;  // the place by arrival; unique in the database
  PermitOrder order = PermitOrder::any;
  std::int32_t priority = 3;
  PermitRequest request;
  Time since{};
  Time expires{};  // zero: waits for ever

  // A workflow: the run and the event that asked.
  std::int64_t run = 0;
  std::int64_t initiated_event_id = 0;
  std::int64_t workflow_task_completed_event_id = 0;
  std::optional<WorkflowExecution> parent;
  std::optional<WorkflowExecution> root;
  std::optional<command::StartChildWorkflowExecution> attributes;
  std::string timer_id;
  std::int32_t probes = 0;  // how often it was refused before

  // A ticket: a holder that is not a workflow.
  std::string request_id;
  std::string holder;
  std::vector<std::int64_t> granted;  // run numbers of its permits that are open
};
BOOST_DESCRIBE_STRUCT(Waiter, (),
                      (id, order, priority, request, since, expires, run, initiated_event_id,
                       workflow_task_completed_event_id, parent, root, attributes, timer_id, probes,
                       request_id, holder, granted))

class WaitingLine {
 public:
  struct Key {
    PermitOrder order = PermitOrder::any;
    std::int32_t priority = 3;
    std::int64_t id = 0;
    // `fair` goes first, and its enumerator is the larger.
    auto operator<=>(const Key& other) const {
      if (order != other.order) {
        return order == PermitOrder::fair ? std::strong_ordering::less
                                          : std::strong_ordering::greater;
      }
      if (order == PermitOrder::any) return id <=> other.id;
      if (priority != other.priority) return priority <=> other.priority;
      return id <=> other.id;
    }
    bool operator==(const Key& other) const { return id == other.id; }
  };

  static Key key_of(const Waiter& waiter) { return {waiter.order, waiter.priority, waiter.id}; }

  Waiter& insert(Waiter waiter);
  void erase(std::int64_t id) { take(id); }
  Waiter take(std::int64_t id);  // out of the line
  Waiter* find(std::int64_t id);
  Waiter* find_by_run(std::int64_t run, std::int64_t initiated_event_id);
  std::size_t size() const { return by_key_.size(); }
  bool empty() const { return by_key_.empty(); }
  // Who has waited longest; nullptr: nobody waits.
  const Waiter* oldest() const {
    return by_id_.empty() ? nullptr : &by_key_.at(by_id_.begin()->second);
  }
  // 1 for the next; 0 if it is not there.
  std::int32_t position(std::int64_t id) const;

  // When the first of them gives up; `never` if none does.
  Time next_expiry() const;
  // Those whose time is up.
  std::vector<std::int64_t> expired(Time now) const;
  void set_expiry(std::int64_t id, Time expires);

  auto begin() { return by_key_.begin(); }
  auto end() { return by_key_.end(); }
  auto begin() const { return by_key_.begin(); }
  auto end() const { return by_key_.end(); }

 private:
  std::map<Key, Waiter> by_key_;
  std::map<std::int64_t, Key> by_id_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> by_run_;
  std::set<std::pair<Time, std::int64_t>> expiries_;
};

}  // namespace permit::service
