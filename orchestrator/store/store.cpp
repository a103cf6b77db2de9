#include "orchestrator/store/store.h"

#include <sqlite3.h>

#include <algorithm>
#include <filesystem>

#include "orchestrator/protocol/ensure.h"
#include "orchestrator/store/disk_space.h"

namespace permit::store {

namespace {

std::int64_t to_us(Time time) { return time.time_since_epoch().count(); }
Time from_us(std::int64_t us) { return Time(Duration(us)); }

std::optional<std::int64_t> optional_us(Time time) {
  if (!is_set(time) || time == never) return std::nullopt;
  return to_us(time);
}

std::optional<std::int64_t> ended_outcome(const RunRow& row) {
  if (row.outcome == Outcome::unspecified) return std::nullopt;
  return static_cast<std::int64_t>(row.outcome);
}

// Where in the table of histories a run's begins: before its first event.
constexpr std::int64_t places_of_a_run = std::int64_t{1} << 20;
std::int64_t first_place(RunNumber run) { return run.value * places_of_a_run; }
std::int64_t end_of_places(RunNumber run) { return first_place(run) + places_of_a_run; }

std::int64_t place_of(RunNumber run, std::int64_t event_id) {
  ENSURE(event_id > 0 && event_id < places_of_a_run);
  return first_place(run) + event_id;
}

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

}  // namespace

#define RUN_COLUMNS                                                                           \
  "number, namespace, workflow_id, run_id, status, workflow_type, task_queue, "               \
  "parent_workflow_id, parent_run_id, start_time, close_time, next_event_id, history_bytes, " \
  "next_due, offered_on, volatile, pool, slot, fence, deadline, outcome, cause"

// Of runs_open. A permit is in the namespace of its holder, and there is only this one.
#define OPEN_PERMITS                                                                               \
  "namespace = 'default' AND workflow_id >= 'permit:' AND workflow_id < 'permit;' AND status = 1 " \
  "AND pool IS NOT NULL"

struct Store::Statements {
  explicit Statements(Database& db) : database(db) {}
  Database& database;

  Statement counters{database,
                     "SELECT epoch, commit_seq, fence, arrival, run, time_max, listed_run, "
                     "listed_fence FROM server"};
  Statement put_counters{database,
                         "UPDATE server SET commit_seq = ?, fence = ?, arrival = ?, run = ?, "
                         "time_max = ?, listed_run = ?, listed_fence = ? WHERE epoch = ?"};

  Statement run{database, "SELECT " RUN_COLUMNS " FROM runs WHERE number = ?"};
  Statement history{database,
                    "SELECT first_event_id, events FROM history "
                    "WHERE place > ? AND place < ? ORDER BY place"};
  Statement history_part{database,
                         "SELECT first_event_id, events FROM history "
                         "WHERE place >= coalesce((SELECT max(place) FROM history "
                         "WHERE place > ?1 AND place <= ?2), ?1) "
                         "AND place < ?3 "
                         "ORDER BY place"};
  Statement activities{database,
                       "SELECT scheduled_event_id, offered_on, attempt FROM activities "
                       "WHERE run = ?"};
  Statement open_run{database,
                     "SELECT number FROM runs "
                     "WHERE namespace = ? AND workflow_id = ? AND status = 1"};
  Statement recent_runs{database,
                        "SELECT number FROM runs INDEXED BY runs_workflow_id "
                        "WHERE listed IS NOT NULL AND namespace = ? AND workflow_id = ? "
                        "ORDER BY number DESC LIMIT ?"};
  Statement unlisted_runs{database,
                          "SELECT number FROM runs NOT INDEXED "
                          "WHERE listed IS NULL AND number > ? AND namespace = ? "
                          "AND workflow_id = ? ORDER BY number DESC LIMIT ?"};
  Statement list_runs{database, "UPDATE runs SET listed = 1 WHERE listed IS NULL AND number > ?"};
  Statement list_holds{database, "UPDATE holds SET listed = 1 WHERE listed IS NULL AND fence > ?"};
  Statement late_release_of{database, "SELECT late_release_at FROM holds WHERE fence = ?"};
  Statement note_late_release{database,
                              "UPDATE holds SET late_release_at = ? "
                              "WHERE fence = ? AND late_release_at IS NULL"};
  Statement run_by_id{database, "SELECT number FROM runs WHERE run_id = ?"};
  Statement due{database,
                "SELECT number FROM runs INDEXED BY runs_due WHERE next_due IS NOT NULL "
                "AND next_due <= ? ORDER BY next_due, number LIMIT ?"};
  Statement next_due{database,
                     "SELECT next_due FROM runs INDEXED BY runs_due WHERE next_due IS NOT NULL "
                     "ORDER BY next_due LIMIT 1"};
  Statement offered_workflow_tasks{database,
                                   "SELECT number, offered_on FROM runs INDEXED BY runs_offered "
                                   "WHERE offered_on IS NOT NULL ORDER BY number"};
  Statement offered_activities{database,
                               "SELECT run, scheduled_event_id, offered_on FROM activities "
                               "WHERE offered_on IS NOT NULL ORDER BY run, scheduled_event_id"};
  Statement pools{database, "SELECT name, settings FROM pools"};
  Statement waiters{database, "SELECT id, pool, waiter FROM waiters ORDER BY id"};
  Statement open_permits{database,
                         "SELECT number FROM runs INDEXED BY runs_open WHERE " OPEN_PERMITS};
  Statement open_permits_by_pool{database,
                                 "SELECT pool, number, start_time FROM runs "
                                 "INDEXED BY runs_open WHERE " OPEN_PERMITS};
  Statement due_run_count{database,
                          "SELECT count(*) FROM runs INDEXED BY runs_due "
                          "WHERE next_due IS NOT NULL"};
  Statement open_run_count{database,
                           "SELECT count(*) FROM runs INDEXED BY runs_open WHERE status = 1"};

  Statement memory_bytes{database,
                         "SELECT page_count * page_size "
                         "FROM pragma_page_count, pragma_page_size"};
  Statement hold_counts{database,
                        "SELECT outcome, cause, sum(holds) FROM hold_counts WHERE pool = ? "
                        "GROUP BY outcome, cause ORDER BY outcome, cause"};
  Statement all_hold_counts{database,
                            "SELECT pool, outcome, cause, sum(holds) FROM hold_counts "
                            "GROUP BY pool, outcome, cause ORDER BY pool, outcome, cause"};

  Statement insert_run{database, "INSERT INTO runs (" RUN_COLUMNS
                                 ", listed) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, "
                                 "?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"};
  // SQLite rewrites the index entries of every column that is set, even to what it was: while a run
  // is open, what only its close changes is left alone.
  Statement update_run{database,
                       "UPDATE runs SET next_event_id = ?, history_bytes = ?, next_due = ?, "
                       "offered_on = ?, volatile = ?, deadline = ? WHERE number = ?"};
  Statement close_run{database,
                      "UPDATE runs SET status = ?, close_time = ?, next_event_id = ?, "
                      "history_bytes = ?, next_due = ?, offered_on = ?, volatile = ?, "
                      "deadline = ?, outcome = ?, cause = ? WHERE number = ?"};
  Statement append_history{database,
                           "INSERT INTO history (place, commit_seq, events) VALUES (?, ?, ?)"};
  Statement put_activity{database, "INSERT OR REPLACE INTO activities VALUES (?, ?, ?, ?)"};
  Statement delete_activity{database,
                            "DELETE FROM activities WHERE run = ? AND scheduled_event_id = ?"};
  Statement delete_activities{database, "DELETE FROM activities WHERE run = ?"};
  Statement put_pool{database, "INSERT OR REPLACE INTO pools VALUES (?, ?)"};
  Statement delete_pool{database, "DELETE FROM pools WHERE name = ?"};
  Statement put_waiter{database, "INSERT OR REPLACE INTO waiters VALUES (?, ?, ?)"};
  Statement delete_waiter{database, "DELETE FROM waiters WHERE id = ?"};
  Statement open_hold{database,
                      "INSERT INTO holds (fence, pool, slot, run, run_id, holder, holder_run_id, "
                      "reason, granted_at, requested_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"};
  Statement close_hold{database,
                       "UPDATE holds SET closed_at = ?, outcome = ?, cause = ? WHERE fence = ?"};
  Statement count_hold{database,
                       "INSERT INTO hold_counts VALUES (?, ?, ?, ?, 1) "
                       "ON CONFLICT DO UPDATE SET holds = holds + 1"};
  Statement closed_before{database,
                          "SELECT number FROM runs WHERE close_time IS NOT NULL "
                          "AND close_time < ? ORDER BY close_time LIMIT ?"};
  Statement delete_run{database, "DELETE FROM runs WHERE number = ? AND status <> 1"};
  Statement delete_history{database, "DELETE FROM history WHERE place > ? AND place < ?"};
  Statement trim_holds{database,
                       "DELETE FROM holds INDEXED BY holds_by_slot WHERE listed IS NOT NULL "
                       "AND pool = ?1 AND slot = ?2 AND outcome IS NOT NULL "
                       "AND fence <= (SELECT fence FROM holds INDEXED BY holds_by_slot "
                       "WHERE listed IS NOT NULL AND pool = ?1 AND slot = ?2 "
                       "ORDER BY fence DESC LIMIT 1 OFFSET ?3)"};
};

Store::Store(const Database::Options& options, const Opening& opening)
    : file_(options.mode == Database::Mode::in_memory ? "" : options.path),
      mark_(opening.mark.empty() ? nullptr : std::make_unique<CommitMark>(opening.mark)),
      ballast_(opening.ballast.empty() ? nullptr : std::make_unique<Ballast>(opening.ballast)),
      looks_only_(options.mode == Database::Mode::read_only),
      database_(with_version(options)) {
  try {
    examine(opening);
    if (!looks_only_) migrate(database_, !file_.empty());
  } catch (...) {
    database_.leave_as_it_is();
    throw;
  }
  sql_ = std::make_unique<Statements>(database_);
  api_keys_ = std::make_unique<ApiKeyTable>(database_);
  if (!looks_only_) take_ownership(opening);
  load_counters();
  if (mark_) mark_->note(counters_.commit_seq);
}

Store::~Store() = default;

void Store::load_counters() {
  auto row = sql_->counters.bind();
  if (!row.step()) throw StartRefused(file_ + ": " + no_counters);
  counters_ = {row.i64(0), row.i64(1),          row.i64(2), row.i64(3),
               row.i64(4), from_us(row.i64(5)), row.i64(6), row.i64(7)};
  committed_ = counters_;
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
  auto row = sql_->run.bind(number.value);
  if (!row.step()) return std::nullopt;
  return read_run(row);
}

std::vector<HistoryBatch> Store::history(RunNumber number) {
  return read_history(sql_->history.bind(first_place(number), end_of_places(number)), number);
}

std::vector<HistoryBatch> Store::history(RunNumber number, std::int64_t from_event_id,
                                         std::int64_t to_event_id) {
  const auto place = [number](std::int64_t event_id) {
    return first_place(number) + std::clamp(event_id, std::int64_t{0}, places_of_a_run);
  };
  return read_history(
      sql_->history_part.bind(first_place(number), place(from_event_id), place(to_event_id)),
      number);
}

std::vector<HistoryBatch> Store::read_history(Statement::Cursor rows, RunNumber number) {
  std::vector<HistoryBatch> batches;
  while (rows.step()) {
    std::optional<std::string> events = unpack_events(rows.blob(1));
    if (!events || events->find('\0') != std::string::npos) {
      throw Damaged(SQLITE_CORRUPT, "the events of run " + std::to_string(number.value) +
                                        " are not as they were written: the disk has lost a part");
    }
    batches.push_back({rows.i64(0), std::move(*events)});
  }
  return batches;
}

std::vector<ActivityRow> Store::activities(RunNumber number) {
  std::vector<ActivityRow> rows;
  for (auto row = sql_->activities.bind(number.value); row.step();) {
    std::optional<std::string> offered_on;
    if (!row.is_null(1)) offered_on = std::string(row.text(1));
    rows.push_back({row.i64(0), std::move(offered_on), std::string(row.text(2))});
  }
  return rows;
}

std::optional<RunNumber> Store::open_run(const std::string& namespace_, const WorkflowId& id) {
  auto row = sql_->open_run.bind(namespace_, id.value);
  if (!row.step()) return std::nullopt;
  return RunNumber{row.i64(0)};
}

std::optional<RunNumber> Store::latest_run(const std::string& namespace_, const WorkflowId& id) {
  const std::vector<RunNumber> runs = recent_runs(namespace_, id, 1);
  if (runs.empty()) return std::nullopt;
  return runs.front();
}

std::optional<RunNumber> Store::run_by_id(const RunId& run_id) {
  auto row = sql_->run_by_id.bind(run_id.value);
  if (!row.step()) return std::nullopt;
  return RunNumber{row.i64(0)};
}

std::vector<RunNumber> Store::recent_runs(const std::string& namespace_, const WorkflowId& id,
                                          int count_max) {
  std::vector<RunNumber> runs;
  const bool may_be_unlisted = id.value.starts_with("permit:");
  if (may_be_unlisted && counters_.listed_fence < counters_.fence) {
    for (auto row = sql_->unlisted_runs.bind(counters_.listed_run, namespace_, id.value, count_max);
         row.step();) {
      runs.push_back(RunNumber{row.i64(0)});
    }
  }
  const auto missing = static_cast<std::int64_t>(count_max) - std::ssize(runs);
  if (missing <= 0) return runs;
  for (auto row = sql_->recent_runs.bind(namespace_, id.value, missing); row.step();) {
    runs.push_back(RunNumber{row.i64(0)});
  }
  return runs;
}

Time Store::late_release_of(Fence fence) {
  auto row = sql_->late_release_of.bind(fence.value);
  return row.step() ? from_us(row.optional_i64(0).value_or(0)) : Time{};
}

void Store::note_late_release(Fence fence, Time at) {
  sql_->note_late_release.run(to_us(at), fence.value);
}

std::vector<RunNumber> Store::due(Time now, int count_max) {
  std::vector<RunNumber> runs;
  for (auto row = sql_->due.bind(to_us(now), count_max); row.step();) {
    runs.push_back(RunNumber{row.i64(0)});
  }
  return runs;
}

Time Store::next_due() {
  auto row = sql_->next_due.bind();
  return row.step() ? from_us(row.i64(0)) : never;
}

std::vector<OfferedTask> Store::offered_workflow_tasks() {
  std::vector<OfferedTask> tasks;
  for (auto row = sql_->offered_workflow_tasks.bind(); row.step();) {
    tasks.push_back({RunNumber{row.i64(0)}, 0, std::string(row.text(1))});
  }
  return tasks;
}

std::vector<OfferedTask> Store::offered_activities() {
  std::vector<OfferedTask> tasks;
  for (auto row = sql_->offered_activities.bind(); row.step();) {
    tasks.push_back({RunNumber{row.i64(0)}, row.i64(1), std::string(row.text(2))});
  }
  return tasks;
}

std::map<PoolName, std::string> Store::pools() {
  std::map<PoolName, std::string> pools;
  for (auto row = sql_->pools.bind(); row.step();) {
    pools.emplace(PoolName(row.text(0)), std::string(row.text(1)));
  }
  return pools;
}

std::vector<WaiterRow> Store::waiters() {
  std::vector<WaiterRow> waiters;
  for (auto row = sql_->waiters.bind(); row.step();) {
    waiters.push_back({row.i64(0), PoolName(row.text(1)), std::string(row.text(2))});
  }
  return waiters;
}

std::vector<RunNumber> Store::open_permits() {
  std::vector<RunNumber> runs;
  for (auto row = sql_->open_permits.bind(); row.step();) runs.push_back(RunNumber{row.i64(0)});
  return runs;
}

std::vector<Store::OpenPermit> Store::open_permits_by_pool() {
  std::vector<OpenPermit> permits;
  for (auto row = sql_->open_permits_by_pool.bind(); row.step();) {
    permits.push_back({PoolName(row.text(0)), RunNumber{row.i64(1)}, from_us(row.i64(2))});
  }
  return permits;
}

std::int64_t Store::due_run_count() {
  auto row = sql_->due_run_count.bind();
  ENSURE(row.step());
  return row.i64(0);
}

std::int64_t Store::open_run_count() {
  auto row = sql_->open_run_count.bind();
  ENSURE(row.step());
  return row.i64(0);
}

std::int64_t Store::bytes() {
  if (!file_.empty()) return file_bytes(file_);
  auto row = sql_->memory_bytes.bind();
  return row.step() ? row.i64(0) : 0;
}

std::int64_t Store::wal_bytes() const { return file_.empty() ? 0 : file_bytes(file_ + "-wal"); }

std::vector<OutcomeCount> Store::hold_counts(const PoolName& pool) {
  std::vector<OutcomeCount> counts;
  for (auto row = sql_->hold_counts.bind(pool.value); row.step();) {
    counts.push_back(
        {static_cast<Outcome>(row.i32(0)), std::string(row.text(1)), Count{row.i64(2)}});
  }
  return counts;
}

std::map<PoolName, std::vector<OutcomeCount>> Store::hold_counts() {
  std::map<PoolName, std::vector<OutcomeCount>> counts;
  for (auto row = sql_->all_hold_counts.bind(); row.step();) {
    counts[PoolName(row.text(0))].push_back(
        {static_cast<Outcome>(row.i32(1)), std::string(row.text(2)), Count{row.i64(3)}});
  }
  return counts;
}

// --- Writing ---

void Store::begin() {
  ENSURE(!batch_);
  batch_.emplace(database_);
}

void Store::insert_run(const RunRow& row) {
  const auto& permit = row.permit;
  using Text = std::optional<std::string_view>;
  using Number = std::optional<std::int64_t>;
  sql_->insert_run.run(
      row.number.value, row.namespace_, row.workflow_id.value, row.run_id.value,
      static_cast<int>(row.status), row.workflow_type, row.task_queue,
      row.parent ? Text(row.parent->workflow_id.value) : Text(),
      row.parent ? Text(row.parent->run_id.value) : Text(), to_us(row.start_time),
      optional_us(row.close_time), row.next_event_id, row.history_bytes, optional_us(row.next_due),
      row.offered_on, row.volatile_json, permit ? Text(permit->pool.value) : Text(),
      permit ? Text(permit->slot.value) : Text(), permit ? Number(permit->fence.value) : Number(),
      permit ? Number(to_us(permit->deadline)) : Number(), ended_outcome(row),
      ended_outcome(row) ? Text(row.cause) : Text(), permit ? Number() : Number(1));
}

void Store::update_run(const RunRow& row) {
  using Number = std::optional<std::int64_t>;
  if (row.status == WorkflowExecutionStatus::running) {
    const std::int64_t changed = sql_->update_run.run(
        row.next_event_id, row.history_bytes, optional_us(row.next_due), row.offered_on,
        row.volatile_json, row.permit ? Number(to_us(row.permit->deadline)) : Number(),
        row.number.value);
    ENSURE(changed == 1);
    return;
  }
  const std::int64_t changed = sql_->close_run.run(
      static_cast<int>(row.status), optional_us(row.close_time), row.next_event_id,
      row.history_bytes, optional_us(row.next_due), row.offered_on, row.volatile_json,
      row.permit ? Number(to_us(row.permit->deadline)) : Number(), ended_outcome(row),
      ended_outcome(row) ? std::optional<std::string_view>(row.cause) : std::nullopt,
      row.number.value);
  ENSURE(changed == 1);
}

void Store::append_history(RunNumber run, const HistoryBatch& batch) {
  sql_->append_history.run(place_of(run, batch.first_event_id), counters_.commit_seq + 1,
                           Blob{packer_.pack(batch.events)});
}

void Store::put_activity(RunNumber run, const ActivityRow& row) {
  sql_->put_activity.run(run.value, row.scheduled_event_id, row.offered_on, row.attempt_json);
}

void Store::delete_activity(RunNumber run, std::int64_t scheduled_event_id) {
  sql_->delete_activity.run(run.value, scheduled_event_id);
}

void Store::delete_activities(RunNumber run) { sql_->delete_activities.run(run.value); }

void Store::put_pool(const PoolName& name, const std::string& settings_json) {
  sql_->put_pool.run(name.value, settings_json);
}

void Store::delete_pool(const PoolName& name) { sql_->delete_pool.run(name.value); }

void Store::put_waiter(const WaiterRow& row) {
  sql_->put_waiter.run(row.id, row.pool.value, row.waiter_json);
}

void Store::delete_waiter(std::int64_t id) { sql_->delete_waiter.run(id); }

void Store::open_hold(const HoldRow& row) {
  using Text = std::optional<std::string_view>;
  const PermitGrant& grant = row.grant;
  sql_->open_hold.run(grant.fence.value, grant.pool.value, grant.slot.value, row.run.value,
                      row.run_id.value, row.holder,
                      row.holder_run_id ? Text(row.holder_run_id->value) : Text(), row.reason,
                      to_us(row.granted_at), optional_us(grant.requested_at));
  sql_->count_hold.run(grant.pool.value, grant.slot.value, 0, "");
}

void Store::close_hold(const PermitGrant& grant, Time closed_at, Outcome outcome,
                       const std::string& cause) {
  const std::int64_t changed =
      sql_->close_hold.run(to_us(closed_at), static_cast<int>(outcome), cause, grant.fence.value);
  ENSURE(changed == 1);
  sql_->count_hold.run(grant.pool.value, grant.slot.value, static_cast<int>(outcome), cause);
}

void Store::put_on_lists() {
  if (counters_.listed_fence < counters_.fence) {
    sql_->list_runs.run(counters_.listed_run);
    sql_->list_holds.run(counters_.listed_fence);
  }
  counters_.listed_run = counters_.run;
  counters_.listed_fence = counters_.fence;
}

// Whoever reads the indexes looks through what is not listed, so that is kept short, in permits and
// in runs of all kinds.
bool Store::may_list_later() const {
  constexpr std::int64_t permits_max = 500;
  constexpr std::int64_t runs_max = 5'000;
  const std::int64_t permits = counters_.fence - counters_.listed_fence;
  return permits > 0 && permits < permits_max && counters_.run - counters_.listed_run < runs_max;
}

void Store::commit(Time now) {
  ENSURE(batch_);
  if (!may_list_later()) put_on_lists();
  ++counters_.commit_seq;
  counters_.time_max = std::max(counters_.time_max, now);
  const std::int64_t owned = sql_->put_counters.run(
      counters_.commit_seq, counters_.fence, counters_.arrival, counters_.run,
      to_us(counters_.time_max), counters_.listed_run, counters_.listed_fence, counters_.epoch);
  if (owned != 1) throw OwnershipLost("another server has taken this database");
  batch_->commit();
  batch_.reset();
  committed_ = counters_;
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

void Store::roll_back() {
  batch_.reset();
  counters_ = committed_;
}

std::vector<RunNumber> Store::delete_closed_before(Time before, int count_max) {
  std::vector<RunNumber> runs;
  for (auto row = sql_->closed_before.bind(to_us(before), count_max); row.step();) {
    runs.push_back(RunNumber{row.i64(0)});
  }
  for (const RunNumber run : runs) {
    ENSURE(sql_->delete_run.run(run.value) == 1);
    sql_->delete_history.run(first_place(run), end_of_places(run));
  }
  return runs;
}

void Store::trim_holds(const PoolName& pool, const SlotName& slot, int holds_kept) {
  sql_->trim_holds.run(pool.value, slot.value, holds_kept);
}

}  // namespace permit::store
