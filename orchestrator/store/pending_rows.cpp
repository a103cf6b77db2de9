#include "orchestrator/store/pending_rows.h"

#include <algorithm>
#include <type_traits>
#include <variant>

#include "orchestrator/protocol/ensure.h"

namespace permit::store {

// --- Runs ---

PendingRows::Run& PendingRows::touch(RunNumber number) {
  Run& run = runs_[number.value];
  if (run.generation != generation()) {
    run.generation = generation();
    youngest().runs.push_back(number.value);
  }
  return run;
}

void PendingRows::put_row(Run& run, RunRow&& row) {
  if (run.has_row && run.row.next_due == row.next_due) {
    run.row = std::move(row);
    return;
  }
  forget_row(run);
  run.row = std::move(row);
  run.has_row = true;
  if (run.row.next_due != never) due_.emplace(run.row.next_due, run.row.number.value);
}

void PendingRows::forget_row(Run& run) {
  if (run.has_row && run.row.next_due != never) {
    due_.erase({run.row.next_due, run.row.number.value});
  }
  run.has_row = false;
}

void PendingRows::add(InsertRun&& change) {
  Run& run = touch(change.row.number);
  run.is_new = true;
  put_row(run, std::move(change.row));
  new_by_key_[{run.row.namespace_, run.row.workflow_id.value}].push_back(run.row.number.value);
  new_by_run_id_[run.row.run_id.value] = run.row.number.value;
}

void PendingRows::add(UpdateRun&& change) {
  Run& run = touch(change.row.number);
  put_row(run, std::move(change.row));
}

void PendingRows::add(const DeleteRun& change) {
  Run& run = touch(change.run);
  ENSURE(!run.has_row);
  run.is_deleted = true;
}

void PendingRows::add_history(RunNumber run, std::int64_t first_event_id, RecordPart events) {
  touch(run).history.push_back({generation(), first_event_id, std::move(events)});
}

void PendingRows::add(PutActivity change) {
  Run& run = touch(change.run);
  const std::int64_t id = change.row.scheduled_event_id;
  run.activities[id] = {generation(), std::move(change.row)};
}

void PendingRows::add(const DeleteActivity& change) {
  Run& run = touch(change.run);
  run.activities[change.scheduled_event_id] = {generation(), std::nullopt};
}

void PendingRows::add(const DeleteActivities& change) {
  Run& run = touch(change.run);
  run.activities.clear();
  run.activities_cleared = generation();
}

// --- All else ---

void PendingRows::add(PutPool change) {
  youngest().pools.push_back(change.name);
  pools_[change.name] = {generation(), std::move(change.settings_json)};
}

void PendingRows::add(const DeletePool& change) {
  youngest().pools.push_back(change.name);
  pools_[change.name] = {generation(), std::nullopt};
}

void PendingRows::add(PutWaiter change) {
  const std::int64_t id = change.row.id;
  youngest().waiters.push_back(id);
  waiters_[id] = {generation(), std::move(change.row)};
}

void PendingRows::add(const DeleteWaiter& change) {
  youngest().waiters.push_back(change.id);
  waiters_[change.id] = {generation(), std::nullopt};
}

void PendingRows::add(const OpenHold& change) {
  ++youngest().counts[change.row.grant.pool][{Outcome::unspecified, ""}];
}

void PendingRows::add(const CloseHold& change) {
  ++youngest().counts[change.pool][{change.outcome, change.cause}];
}

// The first time counts, here as in the table.
void PendingRows::add(const NoteLateRelease& change) {
  if (late_releases_.emplace(change.fence.value, change.at).second) {
    youngest().late_releases.push_back(change.fence.value);
  }
}

void PendingRows::add(PutApiKey change) {
  const std::int64_t id = change.row.id;
  youngest().api_keys.push_back(id);
  api_keys_[id] = {generation(), std::move(change.row)};
}

void PendingRows::add(const RemoveApiKey& change) {
  youngest().api_keys.push_back(change.id);
  api_keys_[change.id] = {generation(), std::nullopt};
}

void PendingRows::add_record(const CommitRecord& record) {
  for (std::string_view left = *record; !left.empty();) {
    RowChange change = take_change(left);
    std::visit(
        [&]<class Change>(Change& one) {
          if constexpr (std::is_same_v<Change, AppendHistory>) {
            const std::size_t size = one.batch.events.size();  // which are its last bytes
            add_history(one.run, one.batch.first_event_id,
                        {record, record->size() - left.size() - size, size});
          } else {
            add(std::move(one));
          }
        },
        change);
  }
}

// --- Settling ---

void PendingRows::settle_run(std::int64_t number, std::int64_t generation) {
  const auto found = runs_.find(number);
  if (found == runs_.end()) return;
  Run& run = found->second;
  if (run.is_new) {
    run.is_new = false;
    const auto key = new_by_key_.find({run.row.namespace_, run.row.workflow_id.value});
    std::erase(key->second, number);
    if (key->second.empty()) new_by_key_.erase(key);
    new_by_run_id_.erase(run.row.run_id.value);
  }
  if (run.generation == generation) {
    forget_row(run);
    runs_.erase(found);
    return;
  }
  std::erase_if(run.history,
                [&](const Run::Events& events) { return events.generation <= generation; });
  if (run.activities_cleared == generation) run.activities_cleared.reset();
  std::erase_if(run.activities,
                [&](const auto& activity) { return activity.second.generation <= generation; });
}

void PendingRows::settle_oldest() {
  ENSURE(generations_.size() > 1);
  const Generation settled = std::move(generations_.front());
  const std::int64_t generation = settled_ + 1;
  for (const std::int64_t run : settled.runs) settle_run(run, generation);
  const auto forget = [&](auto& rows, const auto& keys) {
    for (const auto& key : keys) {
      const auto row = rows.find(key);
      if (row != rows.end() && row->second.generation == generation) rows.erase(row);
    }
  };
  forget(pools_, settled.pools);
  forget(waiters_, settled.waiters);
  forget(api_keys_, settled.api_keys);
  for (const std::int64_t fence : settled.late_releases) late_releases_.erase(fence);
  generations_.pop_front();
  ++settled_;
}

// --- Looking ---

const PendingRows::Run* PendingRows::run(RunNumber number) const {
  const auto found = runs_.find(number.value);
  return found == runs_.end() ? nullptr : &found->second;
}

const RunRow* PendingRows::newest_of(const std::string& namespace_, const WorkflowId& id) const {
  const auto found = new_by_key_.find({namespace_, id.value});
  return found == new_by_key_.end() ? nullptr : &runs_.at(found->second.back()).row;
}

std::vector<RunNumber> PendingRows::new_runs_of(const std::string& namespace_,
                                                const WorkflowId& id) const {
  std::vector<RunNumber> runs;
  const auto found = new_by_key_.find({namespace_, id.value});
  if (found == new_by_key_.end()) return runs;
  for (const std::int64_t number : found->second) runs.push_back(RunNumber{number});
  return runs;
}

std::optional<RunNumber> PendingRows::new_run_by_id(const RunId& run_id) const {
  const auto found = new_by_run_id_.find(run_id.value);
  if (found == new_by_run_id_.end()) return std::nullopt;
  return RunNumber{found->second};
}

Time PendingRows::late_release_of(Fence fence) const {
  const auto found = late_releases_.find(fence.value);
  return found == late_releases_.end() ? Time{} : found->second;
}

PendingRows::HoldCounts PendingRows::hold_counts(const PoolName& pool) const {
  HoldCounts sum;
  for (const Generation& generation : generations_) {
    const auto found = generation.counts.find(pool);
    if (found == generation.counts.end()) continue;
    for (const auto& [of, count] : found->second) sum[of] += count;
  }
  return sum;
}

std::map<PoolName, PendingRows::HoldCounts> PendingRows::hold_counts() const {
  std::map<PoolName, HoldCounts> sum;
  for (const Generation& generation : generations_) {
    for (const auto& [pool, counts] : generation.counts) {
      for (const auto& [of, count] : counts) sum[pool][of] += count;
    }
  }
  return sum;
}

}  // namespace permit::store
