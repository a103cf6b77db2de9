// A disk in memory that loses power, and an SQLite VFS on it. What a file's xSync has not covered
// is a list of changes; crash() decides which of them reached the disk. Locks and shared memory
// work between the connections of one process, from any thread. Time does not pass: a busy timeout
// ends at once.
//
//   CrashVfs vfs;
//   { Database database({.path = "/permit.db", .vfs = vfs.name()}); ... vfs.crash(choose, mode); }
//   Database recovered({.path = "/permit.db", .vfs = vfs.name()});
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace permit::test {

enum class CrashMode {
  drop_all,       // nothing unsynced survives
  keep_all,       // as kill -9: all of it does
  keep_prefix,    // the first n changes, over all files
  random_subset,  // each change for itself, so later ones without earlier ones
  torn_sector,    // each 512-byte sector of each write for itself
};

// Returns a number in [0, n): the test's seeded generator.
using Choose = std::function<std::uint32_t(std::uint32_t n)>;

// The files, as the live process sees them and as they would be found after a power loss. A value:
// copy it to try several outcomes of one moment.
class Disk {
 public:
  enum class Directory {
    durable_at_once,  // a file made or deleted stays so
    needs_sync,       // until the directory is synced, either may be undone
  };

  explicit Disk(Directory directory = Directory::durable_at_once) : directory_(directory) {}

  // Whole files, for tests: put() is durable at once.
  void put(const std::string& name, std::string bytes);
  std::optional<std::string> get(const std::string& name) const;

  std::optional<int> find(const std::string& name) const;
  int create(const std::string& name);
  int create_unnamed();  // a temporary file: a crash takes it, no change is kept of it
  void remove(const std::string& name);

  void write(int inode, std::size_t offset, std::string_view bytes);
  void truncate(int inode, std::size_t size);
  const std::string& content(int inode) const { return inodes_.at(inode).live; }
  std::size_t size() const;

  void sync(int inode);
  void sync_directory();
  std::size_t unsynced_bytes() const;
  std::size_t unsynced_changes() const { return unsynced_.size(); }

  void lose_power(const Choose& choose, CrashMode mode);

 private:
  enum class Kind { write, truncate, link, unlink };
  struct Change {
    Kind kind;
    int inode;
    std::size_t offset = 0;  // of a write; the size of a truncate
    std::string bytes = {};
    std::string name = {};  // of a link or unlink
  };
  struct Inode {
    std::string live = {};
    std::string durable = {};
    bool named = false;
  };

  void change(Change change);
  void make_durable(const Change& change);
  void keep_sectors(const Choose& choose, const Change& change);

  Directory directory_;
  std::map<std::string, int> names_;
  std::map<std::string, int> names_durable_;
  std::map<int, Inode> inodes_;
  std::vector<Change> unsynced_;
  int inode_next_ = 1;
};

enum class Fault { once, from_then_on };
enum class SyncEdge { before, after };

class CrashVfs {
 public:
  explicit CrashVfs(Disk disk = Disk());
  ~CrashVfs();  // after every connection on it
  CrashVfs(const CrashVfs&) = delete;
  CrashVfs& operator=(const CrashVfs&) = delete;

  const std::string& name() const;  // what SQLite calls this VFS; unique in the process
  Disk copy() const;

  // Power loss: unsynced changes survive as `mode` and `choose` say, shared memory is gone. A
  // connection that is still open gets SQLITE_IOERR from whatever it does, and may be closed at any
  // time. Faults and the limit stay set.
  void crash(const Choose& choose, CrashMode mode);

  // Called around every sync, numbered from 1, with no lock held: it may copy() or crash().
  void on_sync(std::function<void(std::size_t sync, SyncEdge edge)> hook);

  std::size_t syncs() const;  // that succeeded
  std::size_t unsynced_bytes() const;

  // SQLITE_IOERR; what the failed sync should have covered stays unsynced.
  void fail_next_sync(Fault fault = Fault::once);
  // The same answer, and all is on disk: who retries or forgets is wrong.
  void lie_next_sync();
  // The write after the next `writes` ones.
  void fail_write_after(std::size_t writes, Fault fault = Fault::once);
  // The read after the next `reads` ones; nullopt: none.
  void fail_read_after(std::optional<std::size_t> reads);
  void clear_faults();
  // SQLITE_FULL for a write that would make all files together larger than this.
  void disk_limit(std::optional<std::size_t> bytes);
  std::size_t disk_size() const;

  struct State;

 private:
  std::unique_ptr<State> state_;
};

}  // namespace permit::test
