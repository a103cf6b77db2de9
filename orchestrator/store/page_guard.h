// A checksum on every page of a database file: an SQLite VFS between SQLite and another one. It
// seals a page when it goes into the file and checks the seal when it is read, whatever the page
// holds, rows or indexes. Pages that are read from the log are held against the log's own
// checksums, which SQLite looks at only when it recovers.
//
// The seal is the last 8 bytes of a page, which a file keeps free if its header says so (byte 20).
// To SQLite they are always zero, so a page that other programs bring from the log into the file
// has no seal, and counts as unsealed, not as damaged, until expect_seals(). What others change and
// write is damaged.
//
// A guard belongs to one connection and its thread, and outlives it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

struct sqlite3_file;

namespace permit::store {

inline constexpr int seal_bytes = 8;

class PageGuard {
 public:
  explicit PageGuard(const std::string& below);  // the VFS that does the work; empty: the default
  ~PageGuard();
  PageGuard(const PageGuard&) = delete;
  PageGuard& operator=(const PageGuard&) = delete;

  const std::string& name() const;    // what SQLite calls this VFS; unique in the process
  const std::string& damage() const;  // what was found first, as a sentence; empty: nothing
  // Pages of the file, from 1, that were read and are not as they were written; 1,000 at most.
  const std::vector<std::int64_t>& damaged_pages() const;
  // Off while one transaction may write a page to the log twice: its checksums are put right later.
  void check_log(bool on);
  // From now on a page without a seal is one that the disk has lost: all have one.
  void expect_seals();
  // A file that is new from now on will be a copy of this one: sealed from its first page, in
  // whatever order its pages are written.
  void expect_copy_of(sqlite3_file* file);

  // Of a database file that was opened through a guard.
  static bool is_sealed(sqlite3_file* file);  // its pages have room for seals
  struct Scan {
    std::int64_t pages = 0;
    std::int64_t unsealed = 0;  // so far; but for empty ones
    std::int64_t empty = 0;     // never written, or lost; without a seal
    bool complete = false;
  };
  // Checks all pages, while the log is empty, and, if it `seals`, seals in place those that are
  // not: for the writer. Stops at the first that is damaged, see damage(), and when `give_up` says
  // so.
  Scan scan(sqlite3_file* file, bool seals, const std::function<bool()>& give_up);

  struct State;

 private:
  std::unique_ptr<State> state_;
};

// The seal of a page: `bytes` are all of it. Never 0.
std::uint64_t seal_of(const unsigned char* bytes, std::size_t page_size, std::int64_t page);

}  // namespace permit::store
