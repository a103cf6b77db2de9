// Beside a database, the number of the last commit that was acknowledged. A log that has lost its
// end is, to SQLite, a log that ends sooner; so is an older copy of the file. The mark tells.
//
// It is written after the commit is durable and is itself not synced: after a power loss it may be
// behind, never ahead.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace permit::store {

class CommitMark {
 public:
  // Makes the file if it is missing. Throws std::system_error if it cannot be opened.
  explicit CommitMark(std::string path);
  ~CommitMark();
  CommitMark(const CommitMark&) = delete;
  CommitMark& operator=(const CommitMark&) = delete;

  const std::string& path() const { return path_; }
  // Nothing if it is new, or cannot be read: then it is no witness.
  std::optional<std::int64_t> read() const;
  // The same of a file that may be another process's. Nothing if it is missing.
  static std::optional<std::int64_t> read(const std::string& path);
  // What cannot be written stays behind.
  void note(std::int64_t commit) noexcept;

 private:
  const std::string path_;
  int descriptor_ = -1;
};

}  // namespace permit::store
