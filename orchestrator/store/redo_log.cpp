#include "orchestrator/store/redo_log.h"

#include <sqlite3.h>

#include <algorithm>
#include <cstring>

#include "orchestrator/protocol/ensure.h"
#include "orchestrator/store/checksum.h"
#include "orchestrator/store/errors.h"

namespace permit::store {

namespace {

// In front of each record: its checksum, what it is and how long, whose it is, and which commit.
constexpr std::uint64_t magic = 0x316c7270;  // "prl1", in the lower half of its word
constexpr std::size_t head_bytes = 32;
constexpr int files_of_an_owner = 2;
constexpr std::size_t piece_bytes = 65536;  // SQLite's own VFS takes less than 128 KiB at once

const Byte* bytes_of(std::string_view text) { return reinterpret_cast<const Byte*>(text.data()); }

void append_word(std::string& out, std::uint64_t word) {
  std::array<Byte, sizeof word> bytes{};
  put_word(bytes.data(), word);
  out.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

// Of all but the sum itself.
std::uint64_t checksum_of(std::string_view frame, std::int64_t commit_seq) {
  return checksum(bytes_of(frame) + 8, frame.size() - 8, commit_seq);
}

constexpr std::size_t padded(std::size_t size) { return (size + 7) / 8 * 8; }

sqlite3_vfs* find_vfs(const std::string& name) {
  sqlite3_vfs* vfs = sqlite3_vfs_find(name.empty() ? nullptr : name.c_str());
  if (vfs == nullptr) throw StoreFailed(SQLITE_CANTOPEN, "SQLite has no VFS " + name);
  return vfs;
}

std::string full_name(sqlite3_vfs* vfs, const std::string& path) {
  std::string full(static_cast<std::size_t>(vfs->mxPathname) + 1, '\0');
  const int code = vfs->xFullPathname(vfs, path.c_str(), vfs->mxPathname + 1, full.data());
  if (code != SQLITE_OK && code != SQLITE_OK_SYMLINK) throw StoreFailed(code, "open " + path);
  full.resize(std::strlen(full.c_str()));
  return full;
}

// Beside the database, and not beside what links to it.
std::string path_of(sqlite3_vfs* vfs, const std::string& database, std::int64_t epoch, int file) {
  const std::string beside = full_name(vfs, database).c_str();
  return beside + "-redo" + std::to_string(epoch) + (file == 0 ? "a" : "b");
}

bool exists(sqlite3_vfs* vfs, const std::string& path) {
  int found = 0;
  const int code = vfs->xAccess(vfs, path.c_str(), SQLITE_ACCESS_EXISTS, &found);
  if (code != SQLITE_OK) throw StoreFailed(code, "look for " + path);
  return found != 0;
}

}  // namespace

class RedoLog::File {
 public:
  enum class For { reading, writing };

  File(sqlite3_vfs* vfs, const std::string& path, For use)
      : name_(path + std::string(3, '\0')), memory_(static_cast<std::size_t>(vfs->szOsFile)) {
    const int flags =
        SQLITE_OPEN_MAIN_JOURNAL |  // with the database's mode and owner
        (use == For::reading ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
    const int code = vfs->xOpen(vfs, name_.c_str(), get(), flags, nullptr);
    if (code == SQLITE_OK) return;
    close();
    fail(code, "open");
  }
  ~File() { close(); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  std::string content() {
    sqlite3_int64 size = 0;
    require(get()->pMethods->xFileSize(get(), &size), "size");
    ENSURE(size < std::int64_t{1} << 31U);
    std::string bytes(static_cast<std::size_t>(size), '\0');
    for (std::size_t at = 0; at < bytes.size(); at += piece_bytes) {
      const auto piece = static_cast<int>(std::min(piece_bytes, bytes.size() - at));
      const auto from = static_cast<sqlite3_int64>(at);
      require(get()->pMethods->xRead(get(), bytes.data() + at, piece, from), "read");
    }
    return bytes;
  }
  void write(std::string_view bytes, std::int64_t at) {
    while (!bytes.empty()) {
      const std::string_view piece = bytes.substr(0, piece_bytes);
      const auto size = static_cast<int>(piece.size());
      require(get()->pMethods->xWrite(get(), piece.data(), size, at), "write");
      bytes.remove_prefix(piece.size());
      at += size;
    }
  }
  void sync() {
    require(get()->pMethods->xSync(get(), SQLITE_SYNC_NORMAL | SQLITE_SYNC_DATAONLY), "sync");
  }

 private:
  sqlite3_file* get() { return reinterpret_cast<sqlite3_file*>(memory_.data()); }
  // As the interface has it: with methods, a file is closed also if it could not be opened.
  void close() {
    if (get()->pMethods != nullptr) get()->pMethods->xClose(get());
  }
  void require(int code, const char* action) {
    if (code != SQLITE_OK) fail(code, action);
  }
  std::string message(int code, const char* action) const {
    return std::string(action) + " " + name_.c_str() + ": " + sqlite3_errstr(code) + " (SQLite " +
           std::to_string(code) + ")";
  }
  [[noreturn]] void fail(int code, const char* action) {
    if ((code & 0xff) == SQLITE_FULL) throw DiskFull(message(code, action));
    throw StoreFailed(code, message(code, action));
  }

  const std::string name_;  // as SQLite wants it: with an empty list of parameters behind it
  std::vector<char> memory_;
};

RedoLog::RedoLog(const std::string& database, const std::string& vfs_name, std::int64_t epoch)
    : epoch_(epoch) {
  sqlite3_vfs* vfs = find_vfs(vfs_name);
  for (std::size_t i = 0; i < files_.size(); ++i) {
    const std::string path = path_of(vfs, database, epoch, static_cast<int>(i));
    files_[i] = std::make_unique<File>(vfs, path, File::For::writing);
  }
}
RedoLog::~RedoLog() = default;

void RedoLog::append(std::int64_t commit_seq, std::string_view record) {
  ENSURE(record.size() < std::size_t{1} << 31U);
  frame_.assign(sizeof(std::uint64_t), '\0');
  append_word(frame_, magic | record.size() << 32U);
  append_word(frame_, static_cast<std::uint64_t>(epoch_));
  append_word(frame_, static_cast<std::uint64_t>(commit_seq));
  frame_ += record;
  frame_.resize(padded(frame_.size()));
  put_word(reinterpret_cast<Byte*>(frame_.data()), checksum_of(frame_, commit_seq));
  File& log = *files_[current_];
  log.write(frame_, at_);
  log.sync();
  at_ += static_cast<std::int64_t>(frame_.size());
}

void RedoLog::turn() {
  current_ = 1 - current_;
  at_ = 0;
}

namespace {

void read_commits(std::string_view bytes, std::vector<LoggedCommit>& commits) {
  std::optional<std::int64_t> before;
  std::uint64_t owner = 0;
  while (bytes.size() >= head_bytes) {
    const std::uint64_t sum = word_at(bytes_of(bytes));
    const std::uint64_t kind = word_at(bytes_of(bytes) + 8);
    const std::uint64_t epoch = word_at(bytes_of(bytes) + 16);
    const auto commit_seq = static_cast<std::int64_t>(word_at(bytes_of(bytes) + 24));
    const std::size_t length = kind >> 32U;
    if ((kind & 0xffffffffU) != magic || padded(length) > bytes.size() - head_bytes) return;
    const std::string_view frame = bytes.substr(0, head_bytes + padded(length));
    if (sum != checksum_of(frame, commit_seq)) return;
    if (before && (commit_seq != *before + 1 || epoch != owner)) return;
    commits.push_back({commit_seq, std::string(frame.substr(head_bytes, length))});
    before = commit_seq;
    owner = epoch;
    bytes.remove_prefix(frame.size());
  }
}

}  // namespace

std::vector<LoggedCommit> RedoLog::read(const std::string& database, const std::string& vfs_name,
                                        std::int64_t epoch) {
  sqlite3_vfs* vfs = find_vfs(vfs_name);
  std::vector<LoggedCommit> commits;
  for (const std::int64_t owner : {epoch - 1, epoch}) {
    for (int i = 0; i < files_of_an_owner; ++i) {
      const std::string path = path_of(vfs, database, owner, i);
      if (!exists(vfs, path)) continue;
      read_commits(File(vfs, path, File::For::reading).content(), commits);
    }
  }
  std::stable_sort(
      commits.begin(), commits.end(),
      [](const LoggedCommit& a, const LoggedCommit& b) { return a.commit_seq < b.commit_seq; });
  return commits;
}

CommitRecords records_behind(std::int64_t commit_seq, const std::vector<LoggedCommit>& commits) {
  CommitRecords records;
  for (const LoggedCommit& commit : commits) {
    if (commit.commit_seq != commit_seq + 1) continue;
    records.push_back(std::make_shared<const std::string>(commit.record));
    ++commit_seq;
  }
  return records;
}

void RedoLog::remove(const std::string& database, const std::string& vfs_name, std::int64_t epoch) {
  sqlite3_vfs* vfs = find_vfs(vfs_name);
  for (std::int64_t owner = std::max(std::int64_t{0}, epoch - 5); owner <= epoch; ++owner) {
    for (int i = 0; i < files_of_an_owner; ++i) {
      const std::string path = path_of(vfs, database, owner, i);
      const int code = vfs->xDelete(vfs, path.c_str(), 0);
      if (code != SQLITE_OK && code != SQLITE_IOERR_DELETE_NOENT) {
        throw StoreFailed(code, "delete " + path);
      }
    }
  }
}

}  // namespace permit::store
