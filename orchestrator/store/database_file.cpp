// What a Database does with its file as a whole: checksums, rebuilding, copying.
#include <sqlite3.h>

#include <filesystem>

#include "orchestrator/protocol/ensure.h"
#include "orchestrator/store/database.h"

namespace permit::store {

namespace {

constexpr int pages_a_step = 64;  // half a megabyte

// Bringing the log into the file must not take the room that the next commit needs in the log.
bool has_room_for_log(const std::string& path) {
  std::error_code unknown;
  const auto log = std::filesystem::file_size(path + "-wal", unknown);
  if (unknown) return true;
  const auto disk = std::filesystem::space(path, unknown);
  return unknown || disk.available > log;
}

}  // namespace

sqlite3_file* Database::file() {
  sqlite3_file* file = nullptr;
  sqlite3_file_control(connection_.get(), "main", SQLITE_FCNTL_FILE_POINTER, &file);
  ENSURE(guard_ != nullptr && file != nullptr);
  return file;
}

bool Database::is_sealed() { return guard_ != nullptr && PageGuard::is_sealed(file()); }

void Database::require_sealed() {
  if (is_sealed()) return;
  const std::string what =
      options_.path +
      " has no room for checksums, which a file of its version must have: byte 20 of it has been "
      "changed, or another program has rebuilt it";
  remember_failure(SQLITE_CORRUPT, what);
  throw Damaged(SQLITE_CORRUPT, what);
}

void Database::rebuild_sealed() {
  ENSURE(guard_ != nullptr && !in_transaction_);
  const std::string report = integrity_check();
  if (report != "ok") {
    leave_as_it_is();
    throw Damaged(SQLITE_CORRUPT, options_.path + " is damaged: " + report);
  }
  // The whole file in one transaction: more than memory may hold.
  guard_->check_log(false);
  execute("PRAGMA cache_spill = ON; PRAGMA temp_store = FILE;");
  execute("VACUUM;");  // takes the room that configure_writer() has asked for
  execute("PRAGMA cache_spill = OFF; PRAGMA temp_store = MEMORY;");
  guard_->check_log(true);
  const int code = sqlite3_wal_checkpoint_v2(connection_.get(), "main", SQLITE_CHECKPOINT_TRUNCATE,
                                             nullptr, nullptr);
  if (code != SQLITE_OK) fail(code, "checkpoint after VACUUM");
  ENSURE(is_sealed());
}

PageGuard::Scan Database::check_pages(const std::function<bool()>& give_up,
                                      const std::function<void()>& judge) {
  if (!guard_ || !has_room_for_log(options_.path)) return {};
  require_ready();
  const int code = sqlite3_wal_checkpoint_v2(connection_.get(), "main", SQLITE_CHECKPOINT_TRUNCATE,
                                             nullptr, nullptr);
  const int primary = code & 0xff;
  if (primary == SQLITE_BUSY || primary == SQLITE_LOCKED || primary == SQLITE_FULL) return {};
  if (code != SQLITE_OK) fail(code, "checkpoint");
  const auto scan = [this](bool seals, const std::function<bool()>& stop) {
    const PageGuard::Scan found = guard_->scan(file(), seals, stop);
    if (!guard_->damage().empty()) fail(SQLITE_IOERR_DATA, "check of all pages");
    return found;
  };
  PageGuard::Scan found = scan(false, give_up);
  if (found.unsealed + found.empty > 0) {
    judge();
    found = scan(true, [] { return false; });
  }
  if (found.complete) guard_->expect_seals();
  return found;
}

void Database::copy_to(const std::string& path,
                       const std::function<void(int left, int all)>& step) {
  ENSURE(guard_ != nullptr &&
         in_transaction_);  // one snapshot, else it would begin again and again
  execute("SELECT count(*) FROM sqlite_schema;");  // begins the snapshot
  guard_->expect_copy_of(file());
  sqlite3* raw = nullptr;
  const int opened = sqlite3_open_v2(
      path.c_str(), &raw,
      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE,
      guard_->name().c_str());
  const std::unique_ptr<sqlite3, int (*)(sqlite3*)> copy(raw, sqlite3_close_v2);
  const auto require = [&](int code) {
    if (code == SQLITE_OK) return;
    if (!guard_->damage().empty()) fail(SQLITE_IOERR_DATA, "copy to " + path);
    const std::string text = std::string("copy to ") + path + ": " + sqlite3_errstr(code);
    if ((code & 0xff) == SQLITE_FULL) throw DiskFull(text);
    throw StoreFailed(code, text);
  };
  require(opened);
  // A copy that fails is thrown away, so it needs no journal; who asked for it syncs it.
  require(sqlite3_exec(raw, "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;", nullptr,
                       nullptr, nullptr));
  std::unique_ptr<sqlite3_backup, int (*)(sqlite3_backup*)> backup(
      sqlite3_backup_init(raw, "main", connection_.get(), "main"), sqlite3_backup_finish);
  if (!backup) require(sqlite3_extended_errcode(raw));
  for (int code = SQLITE_OK; code != SQLITE_DONE;) {
    code = sqlite3_backup_step(backup.get(), pages_a_step);
    if (code != SQLITE_DONE) require(code);
    step(sqlite3_backup_remaining(backup.get()), sqlite3_backup_pagecount(backup.get()));
  }
  require(sqlite3_backup_finish(backup.release()));
}

}  // namespace permit::store
