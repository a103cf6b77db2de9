#include "orchestrator/store/store.h"

#include <sqlite3.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <set>

#include "orchestrator/protocol/ensure.h"
#include "orchestrator/store/disk_space.h"
#include "orchestrator/store/row_values.h"
#include "orchestrator/store/store_statements.h"

namespace permit::store {

namespace {

// 0 if there is none.
std::int64_t file_bytes(const std::string& path) {
  std::error_code missing;
  const auto bytes = std::filesystem::file_size(path, missing);
  return missing ? 0 : static_cast<std::int64_t>(bytes);
}

Database::Options with_version(Database::Options options) {
  options.user_version_max = schema_version;
  return options;
}

// A thread that settles checkpoints by itself.
Database::Options with_own_checkpoints(Database::Options options, const Opening& opening) {
  if (opening.logs && opening.post) options.autocheckpoint_pages_min = 0;
  return options;
}

bool is_due(const RunRow& row) { return row.next_due != never; }
bool is_open(const RunRow& row) { return row.is_open(); }
bool is_held_permit(const RunRow& row) {
  return row.is_open() && row.permit && row.workflow_id.value.starts_with("permit:");
}

}  // namespace

Store::Store(const Database::Options& options, const Opening& opening)
    : options_(with_version(options)),
      file_(options.mode == Database::Mode::in_memory ? "" : options.path),
      mark_(opening.mark.empty() ? nullptr : std::make_unique<CommitMark>(opening.mark)),
      ballast_(opening.ballast.empty() ? nullptr : std::make_unique<Ballast>(opening.ballast)),
      looks_only_(options.mode == Database::Mode::read_only),
      database_(with_own_checkpoints(options_, opening)) {
  try {
    examine(opening);
    if (!looks_only_) migrate(database_, !file_.empty());
  } catch (...) {
    database_.leave_as_it_is();
    throw;
  }
  if (!looks_only_) {
    writer_ = std::make_unique<RowWriter>(database_);
    take_ownership(opening);
  }
  load_counters();
  if (opening.logs && !file_.empty()) open_log(opening);
  sql_ = std::make_unique<Statements>(*reading_);
  if (own_reading_) take_snapshot();
  if (mark_) mark_->note(counters_.commit_seq);
}

Store::~Store() {
  waiting_.clear();  // whoever they were has gone
  if (log_ && !failed_ && !in_batch_) {
    try {
      settle();
      log_.reset();
      RedoLog::remove(options_.path, options_.vfs, counters_.epoch);
    } catch (const std::exception&) {
      // It is in the log: the next start settles it.
    }
  }
  settler_.reset();
}

bool Store::is_deleted(RunNumber number) const {
  const PendingRows::Run* run = pending_.run(number);
  return run != nullptr && run->is_deleted;
}

// What the tables do not say yet.
const RunRow* Store::pending_row(RunNumber number) const {
  const PendingRows::Run* run = pending_.run(number);
  return run != nullptr && run->has_row ? &run->row : nullptr;
}

// --- Reading ---

RunRow Store::read_run(Statement::Cursor& row) {
  RunRow run;
  run.number = RunNumber{row.i64(0)};
  run.namespace_ = row.text(1);
  run.workflow_id = WorkflowId(row.text(2));
  run.run_id = RunId(row.text(3));
  run.status = static_cast<WorkflowExecutionStatus>(row.i32(4));
  run.workflow_type = row.text(5);
  run.task_queue = row.text(6);
  if (!row.is_null(7)) {
    run.parent = WorkflowExecution{WorkflowId(row.text(7)), RunId(row.text(8))};
  }
  run.start_time = from_us(row.i64(9));
  run.close_time = from_us(row.optional_i64(10).value_or(0));
  run.next_event_id = row.i64(11);
  run.history_bytes = row.i64(12);
  if (!row.is_null(13)) run.next_due = from_us(row.i64(13));
  if (!row.is_null(14)) run.offered_on = std::string(row.text(14));
  run.volatile_json = row.text(15);
  if (!row.is_null(16)) {
    run.permit = PermitGrant{PoolName(row.text(16)), SlotName(row.text(17)), Fence{row.i64(18)},
                             from_us(row.i64(19))};
  }
  run.outcome = static_cast<Outcome>(row.optional_i64(20).value_or(0));
  run.cause = row.optional_text(21).value_or("");
  return run;
}

std::optional<RunRow> Store::run(RunNumber number) {
  if (const RunRow* row = pending_row(number)) return *row;
  if (is_deleted(number)) return std::nullopt;
  auto row = sql_->run.bind(number.value);
  if (!row.step()) return std::nullopt;
  return read_run(row);
}

std::vector<HistoryBatch> Store::history(RunNumber number) {
  const PendingRows::Run* pending = pending_.run(number);
  std::vector<HistoryBatch> batches;
  if (pending == nullptr || (!pending->is_new && !pending->is_deleted)) {
    batches = sql_->history.of(number);
  }
  if (pending == nullptr) return batches;
  for (const auto& added : pending->history) batches.push_back(added.batch());
  return batches;
}

HistoryTable& Store::history_table() { return sql_->history; }

std::vector<PendingRows::Run::Events> Store::pending_history(RunNumber number, std::int64_t from,
                                                             std::int64_t to) const {
  std::vector<PendingRows::Run::Events> part;
  const PendingRows::Run* pending = pending_.run(number);
  if (pending == nullptr) return part;
  // A batch that begins before may reach into the part, unless the next begins before, too.
  const auto& added = pending->history;
  for (auto batch = added.begin(); batch != added.end(); ++batch) {
    if (batch->first_event_id >= to) break;
    const auto next = std::next(batch);
    if (next != added.end() && next->first_event_id <= from) continue;
    part.push_back(*batch);
  }
  return part;
}

std::vector<ActivityRow> Store::activities(RunNumber number) {
  const PendingRows::Run* pending = pending_.run(number);
  std::map<std::int64_t, ActivityRow> rows;
  if (pending == nullptr || (!pending->is_new && !pending->activities_cleared)) {
    for (auto row = sql_->activities.bind(number.value); row.step();) {
      std::optional<std::string> offered_on;
      if (!row.is_null(1)) offered_on = std::string(row.text(1));
      rows[row.i64(0)] = {row.i64(0), std::move(offered_on), std::string(row.text(2))};
    }
  }
  if (pending != nullptr) {
    for (const auto& [id, activity] : pending->activities) {
      if (activity.row) {
        rows[id] = *activity.row;
      } else {
        rows.erase(id);
      }
    }
  }
  std::vector<ActivityRow> list;
  list.reserve(rows.size());
  for (auto& [id, row] : rows) list.push_back(std::move(row));
  return list;
}

// Of an id that has new runs only the newest can be open.
std::optional<RunNumber> Store::open_run(const std::string& namespace_, const WorkflowId& id) {
  if (const RunRow* newest = pending_.newest_of(namespace_, id)) {
    return newest->is_open() ? std::optional(newest->number) : std::nullopt;
  }
  auto row = sql_->open_run.bind(namespace_, id.value);
  if (!row.step()) return std::nullopt;
  const RunNumber number{row.i64(0)};
  const RunRow* changed = pending_row(number);
  if (changed != nullptr && !changed->is_open()) return std::nullopt;
  return number;
}

std::optional<RunNumber> Store::latest_run(const std::string& namespace_, const WorkflowId& id) {
  const std::vector<RunNumber> runs = recent_runs(namespace_, id, 1);
  if (runs.empty()) return std::nullopt;
  return runs.front();
}

std::optional<RunNumber> Store::run_by_id(const RunId& run_id) {
  if (const auto number = pending_.new_run_by_id(run_id)) return number;
  auto row = sql_->run_by_id.bind(run_id.value);
  if (!row.step() || is_deleted(RunNumber{row.i64(0)})) return std::nullopt;
  return RunNumber{row.i64(0)};
}

std::vector<RunNumber> Store::recent_runs(const std::string& namespace_, const WorkflowId& id,
                                          int count_max) {
  std::vector<RunNumber> runs = pending_.new_runs_of(namespace_, id);
  std::reverse(runs.begin(), runs.end());
  const auto wanted = static_cast<std::size_t>(count_max);
  if (runs.size() > wanted) runs.resize(wanted);
  if (runs.size() == wanted) return runs;
  constexpr std::int64_t all = -1;
  for (auto row = sql_->recent_runs.bind(namespace_, id.value, all);
       runs.size() < wanted && row.step();) {
    const RunNumber number{row.i64(0)};
    if (!is_deleted(number)) runs.push_back(number);
  }
  return runs;
}

Time Store::late_release_of(Fence fence) {
  auto row = sql_->late_release_of.bind(fence.value);
  const Time settled = row.step() ? from_us(row.optional_i64(0).value_or(0)) : Time{};
  return is_set(settled) ? settled : pending_.late_release_of(fence);
}

std::vector<RunNumber> Store::due(Time now, int count_max) {
  const auto wanted = static_cast<std::size_t>(count_max);
  std::vector<std::pair<Time, std::int64_t>> due;
  for_each_due(now, [&](Time time, std::int64_t number) {
    due.emplace_back(time, number);
    return due.size() < wanted;
  });
  std::size_t added = 0;
  for (const auto& [time, number] : pending_.due()) {
    if (time > now || added++ == wanted) break;
    due.emplace_back(time, number);
  }
  std::sort(due.begin(), due.end());
  std::vector<RunNumber> runs;
  for (const auto& [time, number] : due) {
    if (runs.size() < wanted) runs.push_back(RunNumber{number});
  }
  return runs;
}

Time Store::next_due() {
  Time next = pending_.due().empty() ? never : pending_.due().begin()->first;
  for_each_due(next, [&](Time time, std::int64_t) {
    next = std::min(next, time);
    return false;
  });
  return next;
}

// Of those that nothing has changed since. The first ones have often been dealt with, and are
// passed over once for each state of the tables.
template <class Visit>
void Store::for_each_due(Time until, const Visit& visit) {
  bool passes_over = true;
  for (auto row = sql_->due.bind(to_us(due_from_.first), due_from_.second, to_us(until));
       row.step();) {
    const std::pair at(from_us(row.i64(0)), row.i64(1));
    const bool is_changed = pending_row(RunNumber{at.second}) != nullptr;
    passes_over = passes_over && is_changed;
    if (passes_over) due_from_ = at;
    if (!is_changed && !visit(at.first, at.second)) return;
  }
}

std::vector<OfferedTask> Store::offered_workflow_tasks() {
  std::map<std::int64_t, std::string> offers;
  for (auto row = sql_->offered_workflow_tasks.bind(); row.step();) {
    if (pending_row(RunNumber{row.i64(0)}) == nullptr) offers.emplace(row.i64(0), row.text(1));
  }
  for (const auto& [number, run] : pending_.runs()) {
    if (run.has_row && run.row.offered_on) offers.emplace(number, *run.row.offered_on);
  }
  std::vector<OfferedTask> tasks;
  tasks.reserve(offers.size());
  for (auto& [number, queue] : offers) tasks.push_back({RunNumber{number}, 0, std::move(queue)});
  return tasks;
}

std::vector<OfferedTask> Store::offered_activities() {
  std::map<std::pair<std::int64_t, std::int64_t>, std::string> offers;
  for (auto row = sql_->offered_activities.bind(); row.step();) {
    const PendingRows::Run* run = pending_.run(RunNumber{row.i64(0)});
    const bool changed =
        run != nullptr && (run->activities_cleared || run->activities.contains(row.i64(1)));
    if (!changed) offers.emplace(std::pair(row.i64(0), row.i64(1)), row.text(2));
  }
  for (const auto& [number, run] : pending_.runs()) {
    for (const auto& [id, activity] : run.activities) {
      if (!activity.row || !activity.row->offered_on) continue;
      offers.emplace(std::pair(number, id), *activity.row->offered_on);
    }
  }
  std::vector<OfferedTask> tasks;
  tasks.reserve(offers.size());
  for (auto& [of, queue] : offers) {
    tasks.push_back({RunNumber{of.first}, of.second, std::move(queue)});
  }
  return tasks;
}

namespace {

// The rows of a table by their key, with what is not in there yet.
template <class Rows, class Pending>
void put_over(Rows& rows, const Pending& pending) {
  for (const auto& [key, changed] : pending) {
    if (changed.row) {
      rows.insert_or_assign(key, *changed.row);
    } else {
      rows.erase(key);
    }
  }
}

template <class Key, class Row>
std::vector<Row> values_of(std::map<Key, Row> rows) {
  std::vector<Row> values;
  values.reserve(rows.size());
  for (auto& [key, row] : rows) values.push_back(std::move(row));
  return values;
}

Role role_of(std::int32_t number) {
  ENSURE(number >= static_cast<int>(Role::read) && number <= static_cast<int>(Role::admin));
  return static_cast<Role>(number);
}

}  // namespace

std::map<PoolName, std::string> Store::pools() {
  std::map<PoolName, std::string> pools;
  for (auto row = sql_->pools.bind(); row.step();) {
    pools.emplace(PoolName(row.text(0)), std::string(row.text(1)));
  }
  put_over(pools, pending_.pools());
  return pools;
}

std::vector<WaiterRow> Store::waiters() {
  std::map<std::int64_t, WaiterRow> waiters;
  for (auto row = sql_->waiters.bind(); row.step();) {
    waiters[row.i64(0)] = {row.i64(0), PoolName(row.text(1)), std::string(row.text(2))};
  }
  put_over(waiters, pending_.waiters());
  return values_of(std::move(waiters));
}

std::vector<ApiKeyRow> Store::api_keys() {
  std::map<std::int64_t, ApiKeyRow> keys;
  const auto time = [](std::optional<std::int64_t> us, Time otherwise) {
    return us ? from_us(*us) : otherwise;
  };
  for (auto row = sql_->api_keys.bind(); row.step();) {
    keys[row.i64(0)] = {row.i64(0),
                        std::string(row.text(1)),
                        std::string(row.blob(2)),
                        role_of(row.i32(3)),
                        std::string(row.text(4)),
                        from_us(row.i64(5)),
                        std::string(row.text(6)),
                        time(row.optional_i64(7), never),
                        time(row.optional_i64(8), {}),
                        std::string(row.text(9))};
  }
  put_over(keys, pending_.api_keys());
  return values_of(std::move(keys));
}

std::vector<RunNumber> Store::open_permits() {
  std::set<RunNumber> runs;
  for (auto row = sql_->open_permits.bind(); row.step();) {
    const RunNumber number{row.i64(0)};
    if (pending_row(number) == nullptr) runs.insert(number);
  }
  for (const auto& [number, run] : pending_.runs()) {
    if (run.has_row && is_held_permit(run.row)) runs.insert(RunNumber{number});
  }
  return {runs.begin(), runs.end()};
}

std::vector<Store::OpenPermit> Store::open_permits_by_pool() {
  std::vector<OpenPermit> permits;
  for (auto row = sql_->open_permits_by_pool.bind(); row.step();) {
    const RunNumber number{row.i64(1)};
    if (pending_row(number) != nullptr) continue;
    permits.push_back({PoolName(row.text(0)), number, from_us(row.i64(2))});
  }
  for (const auto& [number, run] : pending_.runs()) {
    if (!run.has_row || !is_held_permit(run.row)) continue;
    permits.push_back({run.row.permit->pool, RunNumber{number}, run.row.start_time});
  }
  return permits;
}

// By how much the number of such runs in the tables is behind.
std::int64_t Store::change_of(bool (*counts)(const RunRow&)) {
  std::int64_t change = 0;
  for (const auto& [number, run] : pending_.runs()) {
    if (run.has_row && counts(run.row)) ++change;
    if (!run.has_row && !run.is_deleted) continue;
    RunRow settled;
    auto row = sql_->status.bind(number);
    if (!row.step()) continue;
    settled.status = static_cast<WorkflowExecutionStatus>(row.i32(0));
    if (!row.is_null(1)) settled.next_due = from_us(row.i64(1));
    if (counts(settled)) --change;
  }
  return change;
}

std::int64_t Store::due_run_count() {
  auto row = sql_->due_run_count.bind();
  ENSURE(row.step());
  return row.i64(0) + change_of(is_due);
}

std::int64_t Store::open_run_count() {
  auto row = sql_->open_run_count.bind();
  ENSURE(row.step());
  return row.i64(0) + change_of(is_open);
}

std::int64_t Store::bytes() {
  if (!file_.empty()) return file_bytes(file_);
  auto row = sql_->memory_bytes.bind();
  return row.step() ? row.i64(0) : 0;
}

std::int64_t Store::wal_bytes() const { return file_.empty() ? 0 : file_bytes(file_ + "-wal"); }

namespace {

std::vector<OutcomeCount> list_of(const PendingRows::HoldCounts& counts) {
  std::vector<OutcomeCount> list;
  list.reserve(counts.size());
  for (const auto& [of, count] : counts) list.push_back({of.first, of.second, Count{count}});
  return list;
}

}  // namespace

std::vector<OutcomeCount> Store::hold_counts(const PoolName& pool) {
  PendingRows::HoldCounts counts = pending_.hold_counts(pool);
  for (auto row = sql_->hold_counts.bind(pool.value); row.step();) {
    counts[{static_cast<Outcome>(row.i32(0)), std::string(row.text(1))}] += row.i64(2);
  }
  return list_of(counts);
}

std::map<PoolName, std::vector<OutcomeCount>> Store::hold_counts() {
  std::map<PoolName, PendingRows::HoldCounts> counts = pending_.hold_counts();
  for (auto row = sql_->all_hold_counts.bind(); row.step();) {
    counts[PoolName(row.text(0))][{static_cast<Outcome>(row.i32(1)), std::string(row.text(2))}] +=
        row.i64(3);
  }
  std::map<PoolName, std::vector<OutcomeCount>> lists;
  for (const auto& [pool, of_pool] : counts) lists[pool] = list_of(of_pool);
  return lists;
}

// --- Writing ---

void Store::begin() {
  ENSURE(!in_batch_);
  if (looks_only_) throw BadStatement("the store was opened to look only");
  in_batch_ = true;
  const std::size_t usual_size = record_->size();
  record_ = std::make_shared<std::string>();  // the last one may still be settled, and read
  record_->reserve(usual_size);
}

template <class Change>
void Store::write(Change&& change) {
  ENSURE(in_batch_);
  append_change(*record_, change);
  pending_.add(std::forward<Change>(change));
}

void Store::insert_run(RunRow row) { write(InsertRun{std::move(row)}); }
void Store::update_run(RunRow row) { write(UpdateRun{std::move(row)}); }
void Store::append_history(RunNumber run, std::int64_t first_event_id, std::string_view events) {
  ENSURE(in_batch_);
  append_history_change(*record_, run, first_event_id, events);
  pending_.add_history(run, first_event_id,
                       {record_, record_->size() - events.size(), events.size()});
}
void Store::put_activity(RunNumber run, ActivityRow row) {
  write(PutActivity{run, std::move(row)});
}
void Store::delete_activity(RunNumber run, std::int64_t scheduled_event_id) {
  write(DeleteActivity{run, scheduled_event_id});
}
void Store::delete_activities(RunNumber run) { write(DeleteActivities{run}); }
void Store::put_pool(const PoolName& name, std::string settings_json) {
  write(PutPool{name, std::move(settings_json)});
}
void Store::delete_pool(const PoolName& name) { write(DeletePool{name}); }
void Store::put_waiter(WaiterRow row) { write(PutWaiter{std::move(row)}); }
void Store::delete_waiter(std::int64_t id) { write(DeleteWaiter{id}); }
void Store::open_hold(HoldRow row) { write(OpenHold{std::move(row)}); }
void Store::close_hold(const PermitGrant& grant, Time closed_at, Outcome outcome,
                       const std::string& cause) {
  write(CloseHold{grant.pool, grant.slot, grant.fence, closed_at, outcome, cause});
}
void Store::note_late_release(Fence fence, Time at) { write(NoteLateRelease{fence, at}); }
void Store::put_api_key(ApiKeyRow row) { write(PutApiKey{std::move(row)}); }
void Store::remove_api_key(std::int64_t id) { write(RemoveApiKey{id}); }

std::vector<RunNumber> Store::delete_closed_before(Time before, int count_max) {
  std::vector<RunNumber> runs;
  for (auto row = sql_->closed_before.bind(to_us(before));
       std::ssize(runs) < count_max && row.step();) {
    const RunNumber number{row.i64(0)};
    if (pending_.run(number) == nullptr) runs.push_back(number);
  }
  for (const RunNumber run : runs) write(DeleteRun{run});
  return runs;
}

void Store::trim_holds(const PoolName& pool, const SlotName& slot, int holds_kept) {
  write(TrimHolds{pool, slot, holds_kept});
}

void Store::commit(Time now) {
  ENSURE(in_batch_);
  ++counters_.commit_seq;
  counters_.time_max = std::max(counters_.time_max, now);
  write(SetCounters{counters_});
  if (log_) {
    commit_to_log();
  } else {
    commit_to_tables();
  }
  in_batch_ = false;
  committed_ = counters_;
  last_logged_ = counters_.commit_seq;
  if (mark_) mark_->note(counters_.commit_seq);
}

std::string Store::obstacle() const {
  if (reserve_used_) return "the disk of the database is full, and its reserve is in use";
  return file_.empty() ? "" : disk_obstacle(file_);
}

void Store::use_reserve() noexcept {
  if (ballast_ && ballast_->drop()) reserve_used_ = true;
}

void Store::restore_reserve() noexcept {
  if (reserve_used_ && ballast_->make()) reserve_used_ = false;
}

}  // namespace permit::store
