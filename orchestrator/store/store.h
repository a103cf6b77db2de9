// The rows of a database. Belongs to the engine thread; a Reader (store/reader) has a connection of
// its own for lists. Nothing here decides: rows in, rows out.
//
// Writes happen inside a batch: begin(), any number of writes, commit(). What commit() returned
// from is on disk. After any exception between the two call roll_back(), then forget what memory
// knows and load it again.
//
// With a redo log (Opening::logs), a commit is one write and one sync to that (redo_log.h), and the
// tables come later, many commits at once: they are *settled*. Until then what is read here is the
// tables and PendingRows on top of them; who reads the tables otherwise asks when_settled() first.
// Without one, or in memory, each commit writes the tables and is durable by them.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "orchestrator/store/ballast.h"
#include "orchestrator/store/commit_mark.h"
#include "orchestrator/store/database.h"
#include "orchestrator/store/history_table.h"
#include "orchestrator/store/pending_rows.h"
#include "orchestrator/store/redo_log.h"
#include "orchestrator/store/row_writer.h"
#include "orchestrator/store/schema.h"
#include "orchestrator/store/settler.h"

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
  bool logs = false;                           // commits go to a redo log first
  std::int64_t settle_bytes = 4 << 20;         // of the log, from which on its commits are settled
  // Runs something on the engine thread, soon; from any thread. With it the tables are written by a
  // thread of their own. Without: by the commit that fills the log.
  Settler::Post post{};
};

// The database is not what this server should go on with; what() says why and what to do.
class StartRefused : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct OfferedTask {
  RunNumber run;
  std::int64_t scheduled_event_id = 0;  // of an activity; 0 for a workflow task
  std::string queue;
};

class Store {
 public:
  // Opens or creates the database and takes ownership: the epoch goes up by one, durably, and what
  // a redo log has beyond the tables comes into them. Read only, it takes nothing, leaves the log
  // alone, and the file must be of this schema. Throws StartRefused, StoreFailed.
  explicit Store(const Database::Options& options, const Opening& opening = {});
  ~Store();  // settles, unless something has failed

  const Counters& counters() const { return counters_; }
  std::int64_t fence_epoch() const { return counters_.fence >> fence_epoch_shift; }
  // The last commit, in the tables or in the log.
  std::int64_t last_logged() const { return last_logged_; }

  // What has been logged beside a database, for a copy of it that was made afterwards; and brings
  // such a copy up to what was acknowledged when that was read.
  static std::vector<LoggedCommit> logged_beside(const Database::Options& options);
  static void bring_up(const Database::Options& copy, const std::vector<LoggedCommit>& logged);

  // --- Reading; sees the open batch ---
  std::optional<RunRow> run(RunNumber number);
  std::vector<HistoryBatch> history(RunNumber number);
  // Of events [from, to): what commits have added, and what the tables had before; see HistoryPart.
  std::vector<PendingRows::Run::Events> pending_history(RunNumber number, std::int64_t from,
                                                        std::int64_t to) const;
  HistoryTable& history_table();
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
  std::vector<ApiKeyRow> api_keys();  // by id
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
  bool in_batch() const { return in_batch_; }
  void insert_run(RunRow row);
  void update_run(RunRow row);
  void append_history(RunNumber run, std::int64_t first_event_id, std::string_view events);
  void put_activity(RunNumber run, ActivityRow row);
  void delete_activity(RunNumber run, std::int64_t scheduled_event_id);
  void delete_activities(RunNumber run);
  void put_pool(const PoolName& name, std::string settings_json);
  void delete_pool(const PoolName& name);
  void put_waiter(WaiterRow row);
  void delete_waiter(std::int64_t id);
  void open_hold(HoldRow row);
  void close_hold(const PermitGrant& grant, Time closed_at, Outcome outcome,
                  const std::string& cause);
  // That a holder has given back what it had lost. The first time counts.
  void note_late_release(Fence fence, Time at);
  void put_api_key(ApiKeyRow row);
  void remove_api_key(std::int64_t id);
  void set_fence(std::int64_t fence) { counters_.fence = fence; }
  RunNumber next_run_number() { return RunNumber{++counters_.run}; }
  void set_arrival(std::int64_t arrival) { counters_.arrival = arrival; }
  // Durable when it returns. Throws DiskFull or StoreFailed; throws OwnershipLost, and the process
  // must stop without answering, if another server has taken the file.
  void commit(Time now);
  void roll_back();

  // Deletes closed runs older than `before`, at most count_max of them, and says which. Inside a
  // batch, like trim_holds(), which keeps the last of a slot's holds.
  std::vector<RunNumber> delete_closed_before(Time before, int count_max);
  void trim_holds(const PoolName& pool, const SlotName& slot, int holds_kept);

  // --- The log and the tables; between batches ---
  bool is_settled() const { return unsettled_.empty() && settling_.empty(); }
  // When the tables have all that is committed now: at once, or from the engine thread later. Also
  // if the disk has no room for it.
  void when_settled(std::function<void()> then);
  // When settle_some() has something to do although nobody commits.
  std::optional<std::chrono::steady_clock::time_point> settling_due() const;
  void settle_some(std::chrono::steady_clock::time_point now);
  // Returns when all of it is in the tables. Throws DiskFull, StoreFailed, OwnershipLost.
  void settle();

  // The tables, as they were settled last.
  Database& database() { return *reading_; }
  bool has_all_seals() const { return has_all_seals_; }  // of its file's pages, from now on
  // Why nothing can be written, as far as the disk says; see disk_space.h.
  std::string obstacle() const;
  // The disk is full: its ballast goes, and until it is back nothing new should be begun.
  void use_reserve() noexcept;
  void restore_reserve() noexcept;  // if there is space again
  bool reserve_used() const { return reserve_used_; }

 private:
  struct Statements;
  using SteadyTime = std::chrono::steady_clock::time_point;

  // In store_opening.cpp.
  static std::int64_t last_commit(Database& database);
  static std::int64_t epoch_of(Database& database);
  void examine(const Opening& opening);
  CommitRecords logged_commits();
  void replay();
  void take_ownership(const Opening& opening);
  void load_counters();
  void open_log(const Opening& opening);
  static constexpr const char* no_counters = "the database has no row in its table \"server\"";

  // In settling.cpp.
  void commit_to_log();
  void commit_to_tables();
  void begin_settling();
  void end_settling(const std::exception_ptr& result);
  void shorten_wal();
  void take_snapshot();
  void call_waiting(std::int64_t settled);

  template <class Change>
  void write(Change&& change);
  template <class Visit>
  void for_each_due(Time until, const Visit& visit);
  RunRow read_run(Statement::Cursor& row);
  bool is_deleted(RunNumber number) const;
  const RunRow* pending_row(RunNumber number) const;
  std::int64_t change_of(bool (*counts)(const RunRow&));

  const Database::Options options_;
  const std::string file_;  // empty: in memory
  std::unique_ptr<CommitMark> mark_;
  std::unique_ptr<Ballast> ballast_;
  bool reserve_used_ = false;
  const bool looks_only_;
  bool has_all_seals_ = false;

  Database database_;  // while a thread settles, that thread's
  std::unique_ptr<RowWriter> writer_;
  // What the engine thread reads by: database_ itself or, with a thread that settles, a connection
  // of its own, which sees the tables as they were when it heard of the last settling.
  std::unique_ptr<Database> own_reading_;
  Database* reading_ = &database_;
  std::optional<Transaction> snapshot_;
  std::unique_ptr<Statements> sql_;

  std::unique_ptr<RedoLog> log_;  // none: each commit goes to the tables
  std::unique_ptr<Database> own_watch_;
  std::unique_ptr<Statement> owner_;  // with a log: who owns the tables at this moment
  std::int64_t settle_bytes_ = 0;
  bool failed_ = false;  // nothing more is written, not at the end either
  bool in_batch_ = false;
  std::shared_ptr<std::string> record_ = std::make_shared<std::string>();  // of the open batch
  PendingRows pending_;
  std::pair<Time, std::int64_t> due_from_{};  // no row of the tables before this one is as it was
  CommitRecords unsettled_;                   // behind settling_
  CommitRecords settling_;                    // on their way into the tables
  std::int64_t settling_end_ = 0;             // the last commit of those
  SteadyTime unsettled_since_{};
  bool has_no_room_ = false;  // the disk, for the last settling
  SteadyTime retry_at_{};
  std::vector<std::pair<std::int64_t, std::function<void()>>> waiting_;  // and for which commit
  Counters counters_;
  Counters committed_;
  std::int64_t last_logged_ = 0;
  std::unique_ptr<Settler> settler_;  // the last: its thread uses what is above
};

}  // namespace permit::store
