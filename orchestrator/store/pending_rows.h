// What commits have changed and the tables do not say yet: what Store reads is the tables, and this
// on top. A change stays until the generation it came in is in the tables (settled); what a later
// generation has changed again stays longer.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "orchestrator/store/commit_record.h"

namespace permit::store {

class PendingRows {
 public:
  struct Run {
    std::int64_t generation = 0;  // of its last change
    bool has_row = false;         // else only histories or activities have changed
    bool is_new = false;          // it is not in the tables
    bool is_deleted = false;
    RunRow row;
    struct Events {
      std::int64_t generation = 0;
      std::int64_t first_event_id = 0;
      RecordPart events;

      HistoryBatch batch() const { return {first_event_id, std::string(events.text())}; }
    };
    std::vector<Events> history;
    std::optional<std::int64_t> activities_cleared;  // in this generation
    struct Activity {
      std::int64_t generation = 0;
      std::optional<ActivityRow> row;  // absent: deleted
    };
    std::map<std::int64_t, Activity> activities;  // by event
  };
  template <class Row>
  struct Versioned {
    std::int64_t generation = 0;
    std::optional<Row> row;  // absent: deleted
  };
  using HoldCounts = std::map<std::pair<Outcome, std::string>, std::int64_t>;

  // --- Changes, of the youngest generation ---
  void add(InsertRun&& change);
  void add(UpdateRun&& change);
  void add(const DeleteRun& change);
  void add(PutActivity change);
  void add(const DeleteActivity& change);
  void add(const DeleteActivities& change);
  void add(PutPool change);
  void add(const DeletePool& change);
  void add(PutWaiter change);
  void add(const DeleteWaiter& change);
  void add(const OpenHold& change);
  void add(const CloseHold& change);
  void add(const NoteLateRelease& change);
  void add(const TrimHolds&) {}
  void add(PutApiKey change);
  void add(const RemoveApiKey& change);
  void add(const SetCounters&) {}
  void add_history(RunNumber run, std::int64_t first_event_id, RecordPart events);
  void add_record(const CommitRecord& record);

  // What comes from now on belongs to another generation.
  void begin_generation() { generations_.emplace_back(); }
  // The oldest one is in the tables.
  void settle_oldest();
  void clear() { *this = PendingRows(); }

  // --- Looking ---
  const Run* run(RunNumber number) const;
  // If there is any: the newest run of the id that is not in the tables; and all, newest last.
  const RunRow* newest_of(const std::string& namespace_, const WorkflowId& id) const;
  std::vector<RunNumber> new_runs_of(const std::string& namespace_, const WorkflowId& id) const;
  std::optional<RunNumber> new_run_by_id(const RunId& run_id) const;
  const std::unordered_map<std::int64_t, Run>& runs() const { return runs_; }
  const std::set<std::pair<Time, std::int64_t>>& due() const { return due_; }
  const std::map<PoolName, Versioned<std::string>>& pools() const { return pools_; }
  const std::map<std::int64_t, Versioned<WaiterRow>>& waiters() const { return waiters_; }
  const std::map<std::int64_t, Versioned<ApiKeyRow>>& api_keys() const { return api_keys_; }
  Time late_release_of(Fence fence) const;
  // To be added to what the tables have.
  HoldCounts hold_counts(const PoolName& pool) const;
  std::map<PoolName, HoldCounts> hold_counts() const;

 private:
  struct Generation {
    std::vector<std::int64_t> runs;
    std::map<PoolName, HoldCounts> counts;
    std::vector<PoolName> pools;
    std::vector<std::int64_t> waiters, api_keys, late_releases;
  };
  using RunKey = std::pair<std::string, std::string>;  // namespace, workflow id
  struct KeyHash {
    std::size_t operator()(const RunKey& key) const { return std::hash<std::string>()(key.second); }
  };

  std::int64_t generation() const {
    return settled_ + static_cast<std::int64_t>(generations_.size());
  }
  Generation& youngest() { return generations_.back(); }
  Run& touch(RunNumber number);
  void put_row(Run& run, RunRow&& row);
  void forget_row(Run& run);
  void settle_run(std::int64_t number, std::int64_t generation);

  std::int64_t settled_ = 0;  // generations that are gone
  std::deque<Generation> generations_ = std::deque<Generation>(1);
  std::unordered_map<std::int64_t, Run> runs_;
  std::unordered_map<RunKey, std::vector<std::int64_t>, KeyHash> new_by_key_;
  std::unordered_map<std::string, std::int64_t> new_by_run_id_;
  std::set<std::pair<Time, std::int64_t>> due_;  // of those that have a row
  std::map<PoolName, Versioned<std::string>> pools_;
  std::map<std::int64_t, Versioned<WaiterRow>> waiters_;
  std::map<std::int64_t, Versioned<ApiKeyRow>> api_keys_;
  std::unordered_map<std::int64_t, Time> late_releases_;  // by fence
};

}  // namespace permit::store
