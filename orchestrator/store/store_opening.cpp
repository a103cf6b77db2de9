// What a start looks at, and refuses, before the store is in use.
#include <chrono>

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

// Before anything is written: whether this is the database that it should be, and whole.
void Store::examine(const Opening& opening) {
  const int version = database_.user_version();
  if (looks_only_ && version != schema_version) {
    throw StartRefused(file_ + " has schema version " + std::to_string(version) + ", not " +
                       std::to_string(schema_version) + ": a server's start brings it there");
  }
  if (!file_.empty() && version >= sealed_version) database_.require_sealed();
  const auto acknowledged = mark_ ? mark_->read() : std::nullopt;
  if (acknowledged && !opening.fence_epoch) {
    const std::int64_t found = version == 0 ? 0 : last_commit(database_);
    if (found < *acknowledged)
      throw StartRefused(lost_commits(file_, found, *acknowledged, version));
  }
  if (opening.page_check_max.count() == 0) return;
  const auto end = std::chrono::steady_clock::now() + opening.page_check_max;
  const auto judge = version == schema_version ? opening.judge : [] {};
  const PageGuard::Scan scan =
      database_.check_pages([end] { return std::chrono::steady_clock::now() >= end; }, judge);
  has_all_seals_ = scan.complete;
}

void Store::take_ownership(const Opening& opening) {
  load_counters();
  std::int64_t fence = counters_.fence;
  if (opening.fence_epoch) {
    if (*opening.fence_epoch <= fence_epoch() || *opening.fence_epoch > fence_epoch_max) {
      throw StartRefused(epoch_refusal(file_, *opening.fence_epoch, fence_epoch()));
    }
    fence = *opening.fence_epoch << fence_epoch_shift;
  }
  Statement own(database_,
                "UPDATE server SET epoch = epoch + 1, fence = ?1, listed_run = run, "
                "listed_fence = ?1");
  Transaction transaction(database_);
  put_on_lists();
  own.run(fence);
  transaction.commit();
}

}  // namespace permit::store
