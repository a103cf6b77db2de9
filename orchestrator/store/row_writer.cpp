#include "orchestrator/store/row_writer.h"

#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>

#include "orchestrator/protocol/ensure.h"
#include "orchestrator/store/courtesy.h"
#include "orchestrator/store/packed_events.h"
#include "orchestrator/store/row_values.h"

namespace permit::store {

namespace {

std::int64_t place_of(RunNumber run, std::int64_t event_id) {
  ENSURE(event_id > 0 && event_id < places_of_a_run);
  return first_place(run) + event_id;
}

std::optional<std::int64_t> ended_outcome(const RunRow& row) {
  if (row.outcome == Outcome::unspecified) return std::nullopt;
  return static_cast<std::int64_t>(row.outcome);
}

// What a row of commits comes to, row by row.
struct Sum {
  struct Run {
    bool is_new = false;
    RunRow row;
  };
  struct Hold {
    std::optional<HoldRow> opened;
    std::optional<CloseHold> closed;
    Time late_release{};
  };
  struct Events {  // of one run, one after the other
    RunNumber run;
    std::int64_t first_event_id = 0;
    std::int64_t commit_seq = 0;
    std::string text;
  };
  using CountOf = std::tuple<PoolName, SlotName, Outcome, std::string>;

  std::map<std::int64_t, Run> runs;
  std::set<std::int64_t> deleted_runs;
  std::vector<Events> events;
  std::unordered_map<std::int64_t, std::size_t> events_of;  // a run's last ones, among `events`
  std::map<std::int64_t, std::map<std::int64_t, std::optional<ActivityRow>>> activities;
  std::set<std::int64_t> activities_cleared;  // before those
  std::map<PoolName, std::optional<std::string>> pools;
  std::map<std::int64_t, std::optional<WaiterRow>> waiters;
  std::map<std::int64_t, Hold> holds;
  std::map<CountOf, std::int64_t> counts;
  std::vector<TrimHolds> trims;
  std::map<std::int64_t, std::optional<ApiKeyRow>> api_keys;
  std::int64_t commit_seq = 0;  // of the record that is being added
  Counters counters;

  void add(InsertRun& change) {
    const std::int64_t number = change.row.number.value;
    runs[number] = {true, std::move(change.row)};
  }
  void add(UpdateRun& change) { runs[change.row.number.value].row = std::move(change.row); }
  void add(DeleteRun& change) {
    runs.erase(change.run.value);
    deleted_runs.insert(change.run.value);
  }
  void add(AppendHistory& change) {
    constexpr std::size_t joined_bytes_max = 16 << 10;  // who reads a part unpacks the whole of it
    const auto [known, is_new] = events_of.try_emplace(change.run.value, events.size());
    if (!is_new) {
      std::string& text = events[known->second].text;
      if (text.size() + change.batch.events.size() < joined_bytes_max) {
        append_batch(text, change.batch);
        return;
      }
      known->second = events.size();
    }
    events.push_back(
        {change.run, change.batch.first_event_id, commit_seq, std::move(change.batch.events)});
  }
  void add(PutActivity& change) {
    activities[change.run.value][change.row.scheduled_event_id] = std::move(change.row);
  }
  void add(DeleteActivity& change) {
    activities[change.run.value][change.scheduled_event_id].reset();
  }
  void add(DeleteActivities& change) {
    activities.erase(change.run.value);
    activities_cleared.insert(change.run.value);
  }
  void add(PutPool& change) { pools[change.name] = std::move(change.settings_json); }
  void add(DeletePool& change) { pools[change.name].reset(); }
  void add(PutWaiter& change) { waiters[change.row.id] = std::move(change.row); }
  void add(DeleteWaiter& change) { waiters[change.id].reset(); }
  void add(OpenHold& change) {
    const PermitGrant& grant = change.row.grant;
    ++counts[{grant.pool, grant.slot, Outcome::unspecified, ""}];
    holds[grant.fence.value].opened = std::move(change.row);
  }
  void add(CloseHold& change) {
    ++counts[{change.pool, change.slot, change.outcome, change.cause}];
    holds[change.fence.value].closed = std::move(change);
  }
  void add(NoteLateRelease& change) {
    Time& noted = holds[change.fence.value].late_release;
    if (!is_set(noted)) noted = change.at;
  }
  void add(TrimHolds& change) { trims.push_back(std::move(change)); }
  void add(PutApiKey& change) { api_keys[change.row.id] = std::move(change.row); }
  void add(RemoveApiKey& change) { api_keys[change.id].reset(); }
  void add(SetCounters& change) { counters = change.counters; }
};

Sum sum_of(const CommitRecords& records, std::int64_t commit_seq, Courtesy& courtesy) {
  Sum sum;
  for (const auto& record : records) {
    sum.commit_seq = ++commit_seq;
    for (std::string_view left = *record; !left.empty();) {
      courtesy.step();
      RowChange change = take_change(left);
      std::visit([&](auto& one) { sum.add(one); }, change);
    }
    ENSURE(sum.counters.commit_seq == commit_seq);
  }
  return sum;
}

}  // namespace

struct RowWriter::Statements {
  explicit Statements(Database& db) : database(db) {}
  Database& database;
  EventPacker packer;
  Courtesy courtesy;

  Statement counters{database, "SELECT commit_seq, arrival FROM server"};
  Statement put_counters{database,
                         "UPDATE server SET commit_seq = ?, fence = ?, arrival = ?, run = ?, "
                         "time_max = ? WHERE epoch = ?"};
  Statement insert_run{database, "INSERT INTO runs (" RUN_COLUMNS
                                 ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, "
                                 "?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"};
  // SQLite rewrites the index entries of every column that is set, even to what it was: while a run
  // is open, what only its close changes is left alone.
  Statement update_run{database,
                       "UPDATE runs SET next_event_id = ?, history_bytes = ?, next_due = ?, "
                       "offered_on = ?, volatile = ?, deadline = ? WHERE number = ?"};
  Statement close_run{database,
                      "UPDATE runs SET status = ?, close_time = ?, next_event_id = ?, "
                      "history_bytes = ?, next_due = ?, offered_on = ?, volatile = ?, "
                      "deadline = ?, outcome = ?, cause = ? WHERE number = ?"};
  Statement delete_run{database, "DELETE FROM runs WHERE number = ? AND status <> 1"};
  Statement delete_history{database, "DELETE FROM history WHERE place > ? AND place < ?"};
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
                      "reason, granted_at, requested_at, closed_at, outcome, cause) "
                      "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"};
  Statement close_hold{database,
                       "UPDATE holds SET closed_at = ?, outcome = ?, cause = ? WHERE fence = ?"};
  Statement note_late_release{database,
                              "UPDATE holds SET late_release_at = ? "
                              "WHERE fence = ? AND late_release_at IS NULL"};
  Statement count_holds{database,
                        "INSERT INTO hold_counts VALUES (?, ?, ?, ?, ?) "
                        "ON CONFLICT DO UPDATE SET holds = holds + excluded.holds"};
  Statement trim_holds{database,
                       "DELETE FROM holds INDEXED BY holds_by_slot WHERE pool = ?1 AND slot = ?2 "
                       "AND outcome IS NOT NULL "
                       "AND fence <= (SELECT fence FROM holds INDEXED BY holds_by_slot "
                       "WHERE pool = ?1 AND slot = ?2 "
                       "ORDER BY fence DESC LIMIT 1 OFFSET ?3)"};
  Statement put_api_key{database,
                        "INSERT OR REPLACE INTO api_keys VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"};
  Statement remove_api_key{database, "DELETE FROM api_keys WHERE id = ?"};

  void write_runs(const Sum& sum);
  void insert(const RunRow& row);
  void update(const RunRow& row);
  void write_histories(const Sum& sum);
  void write_activities(const Sum& sum);
  void write_pools(const Sum& sum, std::int64_t arrival_before);
  void write_holds(const Sum& sum);
  void write_api_keys(const Sum& sum);
};

// First what closes, then what opens under the same id.
void RowWriter::Statements::write_runs(const Sum& sum) {
  for (const std::int64_t run : sum.deleted_runs) {
    courtesy.step();
    ENSURE(delete_run.run(run) == 1);
    delete_history.run(first_place(RunNumber{run}), end_of_places(RunNumber{run}));
  }
  for (const auto& [number, run] : sum.runs) {
    courtesy.step();
    if (!run.is_new) update(run.row);
  }
  for (const auto& [number, run] : sum.runs) {
    courtesy.step();
    if (run.is_new) insert(run.row);
  }
}

void RowWriter::Statements::insert(const RunRow& row) {
  const auto& permit = row.permit;
  using Text = std::optional<std::string_view>;
  using Number = std::optional<std::int64_t>;
  insert_run.run(
      row.number.value, row.namespace_, row.workflow_id.value, row.run_id.value,
      static_cast<int>(row.status), row.workflow_type, row.task_queue,
      row.parent ? Text(row.parent->workflow_id.value) : Text(),
      row.parent ? Text(row.parent->run_id.value) : Text(), to_us(row.start_time),
      optional_us(row.close_time), row.next_event_id, row.history_bytes, optional_us(row.next_due),
      row.offered_on, row.volatile_json, permit ? Text(permit->pool.value) : Text(),
      permit ? Text(permit->slot.value) : Text(), permit ? Number(permit->fence.value) : Number(),
      permit ? Number(to_us(permit->deadline)) : Number(), ended_outcome(row),
      ended_outcome(row) ? Text(row.cause) : Text());
}

void RowWriter::Statements::update(const RunRow& row) {
  using Number = std::optional<std::int64_t>;
  const Number deadline = row.permit ? Number(to_us(row.permit->deadline)) : Number();
  if (row.is_open()) {
    ENSURE(update_run.run(row.next_event_id, row.history_bytes, optional_us(row.next_due),
                          row.offered_on, row.volatile_json, deadline, row.number.value) == 1);
    return;
  }
  ENSURE(
      close_run.run(static_cast<int>(row.status), optional_us(row.close_time), row.next_event_id,
                    row.history_bytes, optional_us(row.next_due), row.offered_on, row.volatile_json,
                    deadline, ended_outcome(row),
                    ended_outcome(row) ? std::optional<std::string_view>(row.cause) : std::nullopt,
                    row.number.value) == 1);
}

void RowWriter::Statements::write_histories(const Sum& sum) {
  for (const Sum::Events& events : sum.events) {
    courtesy.step();
    if (sum.deleted_runs.contains(events.run.value)) continue;
    append_history.run(place_of(events.run, events.first_event_id), events.commit_seq,
                       Blob{packer.pack(events.text)});
  }
}

void RowWriter::Statements::write_activities(const Sum& sum) {
  for (const std::int64_t run : sum.activities_cleared) delete_activities.run(run);
  for (const auto& [run, rows] : sum.activities) {
    for (const auto& [id, row] : rows) {
      courtesy.step();
      if (row) {
        put_activity.run(run, id, row->offered_on, row->attempt_json);
      } else {
        delete_activity.run(run, id);
      }
    }
  }
}

// A ticket that has come and gone since the last time was never in the table.
void RowWriter::Statements::write_pools(const Sum& sum, std::int64_t arrival_before) {
  for (const auto& [name, settings] : sum.pools) {
    if (settings) {
      put_pool.run(name.value, *settings);
    } else {
      delete_pool.run(name.value);
    }
  }
  for (const auto& [id, row] : sum.waiters) {
    courtesy.step();
    if (row) {
      put_waiter.run(id, row->pool.value, row->waiter_json);
    } else if (id <= arrival_before) {
      delete_waiter.run(id);
    }
  }
}

void RowWriter::Statements::write_holds(const Sum& sum) {
  using Text = std::optional<std::string_view>;
  using Number = std::optional<std::int64_t>;
  for (const auto& [fence, hold] : sum.holds) {
    courtesy.step();
    const auto& closed = hold.closed;
    const Number closed_at = closed ? Number(to_us(closed->closed_at)) : Number();
    const Number outcome = closed ? Number(static_cast<std::int64_t>(closed->outcome)) : Number();
    const Text cause = closed ? Text(closed->cause) : Text();
    if (hold.opened) {
      const HoldRow& row = *hold.opened;
      open_hold.run(
          fence, row.grant.pool.value, row.grant.slot.value, row.run.value, row.run_id.value,
          row.holder, row.holder_run_id ? Text(row.holder_run_id->value) : Text(), row.reason,
          to_us(row.granted_at), optional_us(row.grant.requested_at), closed_at, outcome, cause);
    } else if (closed) {
      ENSURE(close_hold.run(closed_at, outcome, cause, fence) == 1);
    }
    if (is_set(hold.late_release)) note_late_release.run(to_us(hold.late_release), fence);
  }
  for (const auto& [of, count] : sum.counts) {
    const auto& [pool, slot, outcome, cause] = of;
    count_holds.run(pool.value, slot.value, static_cast<int>(outcome), cause, count);
  }
  for (const TrimHolds& trim : sum.trims) {
    trim_holds.run(trim.pool.value, trim.slot.value, trim.holds_kept);
  }
}

void RowWriter::Statements::write_api_keys(const Sum& sum) {
  for (const auto& [id, row] : sum.api_keys) {
    if (row) {
      put_api_key.run(id, row->name, Blob{row->digest}, static_cast<std::int32_t>(row->role),
                      row->namespace_, to_us(row->created_at), row->created_by,
                      optional_us(row->expires_at), optional_us(row->revoked_at), row->revoked_by);
    } else {
      remove_api_key.run(id);
    }
  }
}

RowWriter::RowWriter(Database& database)
    : database_(database), sql_(std::make_unique<Statements>(database)) {}
RowWriter::~RowWriter() = default;

void RowWriter::write(const CommitRecords& records, std::int64_t epoch) {
  std::int64_t commit_seq = 0;
  std::int64_t arrival = 0;
  {
    auto row = sql_->counters.bind();
    ENSURE(row.step());
    commit_seq = row.i64(0);
    arrival = row.i64(1);
  }
  const Sum sum = sum_of(records, commit_seq, sql_->courtesy);
  Transaction transaction(database_);
  const Counters& counters = sum.counters;
  const std::int64_t owned =
      sql_->put_counters.run(counters.commit_seq, counters.fence, counters.arrival, counters.run,
                             to_us(counters.time_max), epoch);
  if (owned != 1) throw OwnershipLost("another server has taken this database");
  sql_->write_runs(sum);
  sql_->write_histories(sum);
  sql_->write_activities(sum);
  sql_->write_pools(sum, arrival);
  sql_->write_holds(sum);
  sql_->write_api_keys(sum);
  transaction.commit();
}

}  // namespace permit::store
