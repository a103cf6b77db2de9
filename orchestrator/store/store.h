// Every SQL statement of the product. Belongs to the engine thread; a Reader (store/reader) has a
// connection of its own for lists. Nothing here decides: rows in, rows out.
//
// Writes happen inside a batch: begin(), any number of writes, commit(). What commit() returned
// from is on disk. After any exception between the two call roll_back(), then forget what memory
// knows and load it again.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "orchestrator/protocol/pools.h"
#include "orchestrator/store/api_key_table.h"
#include "orchestrator/store/ballast.h"
#include "orchestrator/store/commit_mark.h"
#include "orchestrator/store/database.h"
#include "orchestrator/store/packed_events.h"
#include "orchestrator/store/schema.h"

namespace permit::store {

// Fences are (epoch << 40) + count. The epoch goes up by hand, when a copy takes the place of a
// database that has gone on since: what it grants is then above all that was granted before.
inline constexpr int fence_epoch_shift = 40;
inline constexpr std::int64_t fence_epoch_max = (1 << 13) - 1;  // a fence is below 2^53

// How a server opens its database.
struct Opening {
  std::string mark{};                          // the file of its CommitMark; empty: none
  std::optional<std::int64_t> fence_epoch{};   // begin this one
  std::chrono::milliseconds page_check_max{};  // look at all pages for so long
  std::function<void()> judge = [] {};         // see Database::check_pages()
  std::string ballast{};                       // the file of its Ballast; empty: none
};

// The database is not what this server should go on with; what() says why and what to do.
class StartRefused : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct RunRow {
  RunNumber number;
  std::string namespace_;
  WorkflowId workflow_id;
  RunId run_id;
  WorkflowExecutionStatus status = WorkflowExecutionStatus::running;
  std::string workflow_type;
  std::string task_queue;
  std::optional<WorkflowExecution> parent;
  Time start_time{};
  Time close_time{};
  std::int64_t next_event_id = 1;
  std::int64_t history_bytes = 0;
  Time next_due = never;
  std::optional<std::string> offered_on;
  std::string volatile_json;
  std::optional<PermitGrant> permit;  // its deadline is the current one
  Outcome outcome = Outcome::unspecified;
  std::string cause;
};

struct HistoryBatch {
  std::int64_t first_event_id = 0;
  std::string events;  // JSON objects, separated by commas
};

struct ActivityRow {
  std::int64_t scheduled_event_id = 0;
  std::optional<std::string> offered_on;
  std::string attempt_json;
};

struct OfferedTask {
  RunNumber run;
  std::int64_t scheduled_event_id = 0;  // of an activity; 0 for a workflow task
  std::string queue;
};

struct HoldRow {
  PermitGrant grant;
  RunNumber run;
  RunId run_id;
  std::string holder;
  std::optional<RunId> holder_run_id;
  std::string reason;
  Time granted_at{};
};

struct WaiterRow {
  std::int64_t id = 0;
  PoolName pool;
  std::string waiter_json;
};

// The counters of the `server` row; a batch that changed any writes them with its commit.
struct Counters {
  std::int64_t epoch = 0;
  std::int64_t commit_seq = 0;
  std::int64_t fence = 0;
  std::int64_t arrival = 0;
  std::int64_t run = 0;
  Time time_max{};
  std::int64_t listed_run = 0;
  std::int64_t listed_fence = 0;
};

class Store {
 public:
  // Opens or creates the database and takes ownership: the epoch goes up by one, durably. Read
  // only, it takes nothing, and the file must be of this schema. Throws StartRefused, StoreFailed.
  explicit Store(const Database::Options& options, const Opening& opening = {});
  ~Store();

  const Counters& counters() const { return counters_; }
  std::int64_t fence_epoch() const { return counters_.fence >> fence_epoch_shift; }

  // --- Reading; sees the open batch ---
  std::optional<RunRow> run(RunNumber number);
  std::vector<HistoryBatch> history(RunNumber number);
  std::vector<HistoryBatch> history(RunNumber number, std::int64_t from_event_id,
                                    std::int64_t to_event_id);
  std::vector<ActivityRow> activities(RunNumber number);
  std::optional<RunNumber> open_run(const std::string& namespace_, const WorkflowId& id);
  std::optional<RunNumber> latest_run(const std::string& namespace_, const WorkflowId& id);
  std::optional<RunNumber> run_by_id(const RunId& run_id);
  // The last ones of this id, newest first.
  std::vector<RunNumber> recent_runs(const std::string& namespace_, const WorkflowId& id,
                                     int count_max);
  Time late_release_of(Fence fence);  // of a hold in the ledger; zero: none
  // Runs with something due, in the order of due time, then number.
  std::vector<RunNumber> due(Time now, int count_max);
  Time next_due();
  std::vector<OfferedTask> offered_workflow_tasks();
  std::vector<OfferedTask> offered_activities();
  std::map<PoolName, std::string> pools();
  std::vector<WaiterRow> waiters();
  std::vector<RunNumber> open_permits();
  // Which permits are open, and since when.
  struct OpenPermit {
    PoolName pool;
    RunNumber run;
    Time since{};
  };
  std::vector<OpenPermit> open_permits_by_pool();
  std::int64_t open_run_count();
  std::int64_t due_run_count();  // that time will do something to
  // Of all time: how the pool's holds have ended, and with an unspecified outcome how many began.
  std::vector<OutcomeCount> hold_counts(const PoolName& pool);
  std::map<PoolName, std::vector<OutcomeCount>> hold_counts();
  // Of the file and of its log; of memory if there is no file.
  std::int64_t bytes();
  std::int64_t wal_bytes() const;

  // --- Writing ---
  void begin();
  bool in_batch() const { return batch_.has_value(); }
  void insert_run(const RunRow& row);
  void update_run(const RunRow& row);
  void append_history(RunNumber run, const HistoryBatch& batch);
  void put_activity(RunNumber run, const ActivityRow& row);
  void delete_activity(RunNumber run, std::int64_t scheduled_event_id);
  void delete_activities(RunNumber run);
  void put_pool(const PoolName& name, const std::string& settings_json);
  void delete_pool(const PoolName& name);
  void put_waiter(const WaiterRow& row);
  void delete_waiter(std::int64_t id);
  void open_hold(const HoldRow& row);
  void close_hold(const PermitGrant& grant, Time closed_at, Outcome outcome,
                  const std::string& cause);
  // That a holder has given back what it had lost. The first time counts.
  void note_late_release(Fence fence, Time at);
  void set_fence(std::int64_t fence) { counters_.fence = fence; }
  RunNumber next_run_number() { return RunNumber{++counters_.run}; }
  void set_arrival(std::int64_t arrival) { counters_.arrival = arrival; }
  // Durable when it returns. Throws DiskFull or StoreFailed; throws OwnershipLost, and the process
  // must stop without answering, if another server has taken the file.
  void commit(Time now);
  void roll_back();

  // What came lately enters the indexes that lists go by: many at once, so that a page of an index
  // is written for many of them. A commit does it by itself from some hundreds on.
  void put_on_lists();
  // Deletes closed runs older than `before`, at most count_max of them, and says which. Inside a
  // batch, like trim_holds(), which keeps the last of a slot's listed holds.
  std::vector<RunNumber> delete_closed_before(Time before, int count_max);
  void trim_holds(const PoolName& pool, const SlotName& slot, int holds_kept);

  ApiKeyTable& api_keys() { return *api_keys_; }
  Database& database() { return database_; }
  bool has_all_seals() const { return has_all_seals_; }  // of its file's pages, from now on
  // Why nothing can be written, as far as the disk says; see disk_space.h.
  std::string obstacle() const;
  // The disk is full: its ballast goes, and until it is back nothing new should be begun.
  void use_reserve() noexcept;
  void restore_reserve() noexcept;  // if there is space again
  bool reserve_used() const { return reserve_used_; }

 private:
  struct Statements;

  // In store_opening.cpp.
  static std::int64_t last_commit(Database& database);
  void examine(const Opening& opening);
  void take_ownership(const Opening& opening);
  void load_counters();
  static constexpr const char* no_counters = "the database has no row in its table \"server\"";
  bool may_list_later() const;
  RunRow read_run(Statement::Cursor& row);
  std::vector<HistoryBatch> read_history(Statement::Cursor rows, RunNumber number);

  const std::string file_;  // empty: in memory
  std::unique_ptr<CommitMark> mark_;
  std::unique_ptr<Ballast> ballast_;
  bool reserve_used_ = false;
  const bool looks_only_;
  bool has_all_seals_ = false;
  Database database_;
  std::unique_ptr<Statements> sql_;
  std::unique_ptr<ApiKeyTable> api_keys_;
  EventPacker packer_;
  std::optional<Transaction> batch_;
  Counters counters_;
  Counters committed_;
};

class OwnershipLost : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace permit::store
