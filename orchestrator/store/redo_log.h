// The commits that the tables do not have yet, on disk: what a commit waits for is one write and
// one sync here, and not the pages of all the tables that it changes. Two files, used in turn:
// while the commits of one are brought into the tables, the next ones go to the other, and then the
// first is written over from its beginning. A file that does not grow syncs faster than one that
// does.
//
// Each owner of the database has files of its own, <database>-redo<epoch>a and b: whoever has lost
// the database without knowing it harms nobody's log. They go through SQLite's VFS, like all else
// that has to survive.
//
//   file    record*
//   record  checksum (8), magic (4), length (4), epoch (8), commit_seq (8), the commit,
//           and zeros up to a multiple of 8; little-endian
//
// A file ends where the next record is not whole, or is not the next one.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "orchestrator/store/commit_record.h"

struct sqlite3_file;
struct sqlite3_vfs;

namespace permit::store {

struct LoggedCommit {
  std::int64_t commit_seq = 0;
  std::string record;
};

// Of these, which are in order, those that go on without a gap behind a commit.
CommitRecords records_behind(std::int64_t commit_seq, const std::vector<LoggedCommit>& commits);

class RedoLog {
 public:
  // Of one owner. Makes both files, so that no commit needs a descriptor more. `vfs`: as in
  // Database::Options.
  RedoLog(const std::string& database, const std::string& vfs, std::int64_t epoch);
  ~RedoLog();
  RedoLog(const RedoLog&) = delete;
  RedoLog& operator=(const RedoLog&) = delete;

  // Durable when it returns. Throws DiskFull, after which the log ends where it did before;
  // StoreFailed, after which nobody knows.
  void append(std::int64_t commit_seq, std::string_view record);
  // What comes next goes to the other file, from its beginning: its commits are in the tables.
  void turn();
  std::int64_t bytes() const { return at_; }  // in the file that is in use

  // All commits of whoever owned the database in this epoch or the one before, in order; also those
  // that have come into the tables since.
  static std::vector<LoggedCommit> read(const std::string& database, const std::string& vfs,
                                        std::int64_t epoch);
  // All of them are in the tables: the files of these owners go, and of those whose takers have
  // crashed before they came to that.
  static void remove(const std::string& database, const std::string& vfs, std::int64_t epoch);

 private:
  class File;

  const std::int64_t epoch_;
  std::array<std::unique_ptr<File>, 2> files_;
  std::size_t current_ = 0;
  std::int64_t at_ = 0;
  std::string frame_;  // scratch
};

}  // namespace permit::store
