// Keeps a database to one process. The lock is the kernel's (flock), so it ends with its holder,
// however that dies; the text in the file only says who holds it. The file stays when the lock
// ends: to delete it would let two processes hold two files of one name.
#pragma once

#include <chrono>
#include <stdexcept>
#include <string>

namespace permit::store {

// Somebody else holds the lock; what() is a sentence that says who.
class StoreLocked : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The database is on a file system whose locks and syncs cannot be trusted.
class UnsafeFileSystem : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class LockFile {
 public:
  // Locks `<database_path>.lock`, made if missing, without waiting. Links are resolved first, so
  // that two names of one database meet. Then the database itself, made if missing, for those who
  // come by another name all the same: a hard link, a file mounted elsewhere. `now` is what others
  // are told as the start time. Throws StoreLocked, UnsafeFileSystem or, if a file cannot be opened
  // or written, std::system_error.
  //
  // Has to outlive every connection to the database: when a process closes any descriptor of a
  // file, it loses all the locks that SQLite has on it.
  LockFile(const std::string& database_path, std::chrono::system_clock::time_point now);
  ~LockFile();
  LockFile(const LockFile&) = delete;
  LockFile& operator=(const LockFile&) = delete;

  const std::string& path() const { return path_; }

 private:
  bool try_lock();  // false: the file was replaced while we locked it
  void lock_database(const std::string& database);
  void write_holder(std::chrono::system_clock::time_point now) const;

  std::string path_;
  int descriptor_ = -1;
  int database_ = -1;
};

// The name of the network file system with this statfs() f_type, or null if it is local. FUSE
// counts as local: it is, as often as not.
const char* network_file_system(unsigned long type);

}  // namespace permit::store
