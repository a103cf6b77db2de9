// What a start looks at, and refuses, before the store is in use.
#include <chrono>
#include <iterator>

#include "orchestrator/store/store.h"

namespace permit::store {

namespace {

// Since this version a file's pages have checksums.
constexpr int sealed_version = 3;

std::string lost_commits(const std::string& file, std::int64_t found, std::int64_t acknowledged,
                         int version) {
  return file + (version == 0 ? " is empty" : " ends with commit " + std::to_string(found)) +
         ", but commit " + std::to_string(acknowledged) +
         " was acknowledged: the file or its log has lost its end, or an older copy has taken its "
         "place. For a copy, start with --fence-epoch N, so that what it grants is above what was "
         "granted since; N is above the epoch that `permit server status` showed (" +
         file + ".commit remembers the commit)";
}

std::string epoch_refusal(const std::string& file, std::int64_t asked, std::int64_t current) {
  if (asked > fence_epoch_max) {
    return "--fence-epoch: at most " + std::to_string(fence_epoch_max);
  }
  return "--fence-epoch " + std::to_string(asked) + " is not above that of " +
         (file.empty() ? "the database" : file) + ", which is " + std::to_string(current) +
         ": the next free one is " + std::to_string(current + 1) +
         ". It is given once, at the first start of a copy; to go on with the same database, start "
         "without it";
}

}  // namespace

std::int64_t Store::last_commit(Database& database) {
  Statement last(database, "SELECT commit_seq FROM server");
  auto row = last.bind();
  if (!row.step()) throw StartRefused(no_counters);
  return row.i64(0);
}

std::int64_t Store::epoch_of(Database& database) {
  Statement epoch(database, "SELECT epoch FROM server");
  auto row = epoch.bind();
  if (!row.step()) throw StartRefused(no_counters);
  return row.i64(0);
}

// Before anything is written: whether this is the database that it should be, and whole.
void Store::examine(const Opening& opening) {
  const int version = database_.user_version();
  if (looks_only_ && version != schema_version) {
    throw StartRefused(file_ + " has schema version " + std::to_string(version) + ", not " +
                       std::to_string(schema_version) + ": a server's start brings it there");
  }
  if (!file_.empty() && version >= sealed_version) database_.require_sealed();
  last_logged_ = version == 0 ? 0 : last_commit(database_);
  if (version == schema_version) last_logged_ += std::ssize(logged_commits());
  const auto acknowledged = mark_ ? mark_->read() : std::nullopt;
  if (acknowledged && !opening.fence_epoch && last_logged_ < *acknowledged) {
    throw StartRefused(lost_commits(file_, last_logged_, *acknowledged, version));
  }
  if (opening.page_check_max.count() == 0) return;
  const auto end = std::chrono::steady_clock::now() + opening.page_check_max;
  const auto judge = version == schema_version ? opening.judge : [] {};
  const PageGuard::Scan scan =
      database_.check_pages([end] { return std::chrono::steady_clock::now() >= end; }, judge);
  has_all_seals_ = scan.complete;
}

// What the redo log of the last owner has beyond the tables.
CommitRecords Store::logged_commits() {
  if (file_.empty()) return {};
  return records_behind(last_commit(database_),
                        RedoLog::read(options_.path, options_.vfs, epoch_of(database_)));
}

std::vector<LoggedCommit> Store::logged_beside(const Database::Options& options) {
  Database database(options);
  if (database.user_version() != schema_version) return {};
  return RedoLog::read(options.path, options.vfs, epoch_of(database));
}

void Store::bring_up(const Database::Options& copy, const std::vector<LoggedCommit>& logged) {
  Database database(copy);
  if (database.user_version() != schema_version) return;
  const CommitRecords records = records_behind(last_commit(database), logged);
  if (!records.empty()) RowWriter(database).write(records, epoch_of(database));
}

// On a full disk with what the ballast leaves.
void Store::replay() {
  const CommitRecords records = logged_commits();
  if (records.empty()) return;
  const std::int64_t epoch = epoch_of(database_);
  try {
    return writer_->write(records, epoch);
  } catch (const DiskFull&) {
    use_reserve();
  }
  try {
    writer_->write(records, epoch);
  } catch (const DiskFull&) {
    throw StartRefused(file_ +
                       ": the disk is full, and what the redo log beside it has does not "
                       "fit into the file. Make as much room as the log takes, " +
                       file_ + "-redo*, and start again: nothing is lost");
  }
}

void Store::load_counters() {
  Statement counters(database_,
                     "SELECT epoch, commit_seq, fence, arrival, run, time_max FROM server");
  auto row = counters.bind();
  if (!row.step()) throw StartRefused(file_ + ": " + no_counters);
  counters_ = {row.i64(0), row.i64(1), row.i64(2),
               row.i64(3), row.i64(4), Time(Duration(row.i64(5)))};
  committed_ = counters_;
}

// Whoever owned the database before, and does not know yet that it has lost it, answers nobody once
// the epoch has gone up. What it has logged until then is replayed the second time.
void Store::take_ownership(const Opening& opening) {
  replay();
  load_counters();
  std::int64_t fence = counters_.fence;
  if (opening.fence_epoch) {
    if (*opening.fence_epoch <= fence_epoch() || *opening.fence_epoch > fence_epoch_max) {
      throw StartRefused(epoch_refusal(file_, *opening.fence_epoch, fence_epoch()));
    }
    fence = *opening.fence_epoch << fence_epoch_shift;
  }
  Statement own(database_, "UPDATE server SET epoch = epoch + 1, fence = ?");
  Transaction transaction(database_);
  own.run(fence);
  transaction.commit();
  if (file_.empty()) return;
  replay();
  RedoLog::remove(options_.path, options_.vfs, epoch_of(database_));
}

void Store::open_log(const Opening& opening) {
  log_ = std::make_unique<RedoLog>(options_.path, options_.vfs, counters_.epoch);
  settle_bytes_ = opening.settle_bytes;
  if (opening.post) {
    Database::Options reading = options_;
    reading.mode = Database::Mode::read_only;
    reading.expects_seals = has_all_seals_;
    own_reading_ = std::make_unique<Database>(reading);
    own_watch_ = std::make_unique<Database>(reading);
    reading_ = own_reading_.get();
    settler_ = std::make_unique<Settler>(opening.post);
  }
  owner_ =
      std::make_unique<Statement>(own_watch_ ? *own_watch_ : database_, "SELECT epoch FROM server");
}

}  // namespace permit::store
