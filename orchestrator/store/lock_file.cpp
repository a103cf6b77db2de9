#include "orchestrator/store/lock_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <ctime>
#include <filesystem>
#include <string_view>
#include <system_error>

namespace permit::store {

namespace {

constexpr int replaced_attempts_max = 10;

[[noreturn]] void fail(const std::string& action) {
  throw std::system_error(errno, std::generic_category(), action);
}

void refuse_network_file_system(const std::filesystem::path& database) {
  struct statfs status = {};
  const std::string directory = database.parent_path().string();
  if (::statfs(directory.c_str(), &status) != 0) fail("look at the file system of " + directory);
  const char* name = network_file_system(static_cast<unsigned long>(status.f_type));
  if (name == nullptr) return;
  throw UnsafeFileSystem(database.string() + " is on " + name +
                         ", a network file system, whose locks and syncs cannot keep permits "
                         "safe; put the database on a local disk");
}

std::string host_name() {
  std::array<char, 256> name = {};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "unknown";
  std::string host = name.data();
  for (char& c : host) {
    if (c == '"' || c == '\\' || static_cast<unsigned char>(c) < ' ') c = '?';
  }
  return host;
}

std::string utc(std::chrono::system_clock::time_point time) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(time);
  std::tm parts = {};
  std::array<char, 32> text = {};
  ::gmtime_r(&seconds, &parts);
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text.data();
}

// The value of `key` in the one line that write_holder() writes; empty if it is not there.
std::string_view field(std::string_view line, const std::string& key) {
  const std::string start = "\"" + key + "\":";
  const std::size_t found = line.find(start);
  if (found == line.npos) return {};
  line.remove_prefix(found + start.size());
  if (line.starts_with('"')) return line.substr(1, line.find('"', 1) - 1);
  return line.substr(0, line.find_first_of(",}"));
}

std::string read_line(int descriptor) {
  std::array<char, 1024> text = {};
  const ssize_t size = ::pread(descriptor, text.data(), text.size(), 0);
  return size > 0 ? std::string(text.data(), static_cast<std::size_t>(size)) : std::string();
}

std::string held_by(const std::string& path, std::string_view line) {
  const std::string_view pid = field(line, "pid");
  std::string holder = "another process";
  if (!pid.empty()) {
    holder = "process " + std::string(pid) + " on " + std::string(field(line, "host")) +
             ", since " + std::string(field(line, "since"));
  }
  return "the database is in use: " + path + " is locked by " + holder +
         "; stop that process first, or use another database";
}

}  // namespace

LockFile::LockFile(const std::string& database_path, std::chrono::system_clock::time_point now) {
  const auto absolute = std::filesystem::absolute(database_path);
  const auto database = std::filesystem::weakly_canonical(absolute);
  refuse_network_file_system(database);
  path_ = database.string() + ".lock";
  try {
    int attempt = 0;
    while (!try_lock()) {
      if (++attempt == replaced_attempts_max) {
        throw StoreLocked("the database is in use: " + path_ + " is being replaced by others");
      }
    }
    lock_database(database.string());
    write_holder(now);
  } catch (...) {
    if (database_ >= 0) ::close(database_);
    if (descriptor_ >= 0) ::close(descriptor_);
    throw;
  }
}

LockFile::~LockFile() {
  ::close(database_);
  ::close(descriptor_);
}

bool LockFile::try_lock() {
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (descriptor_ < 0) fail("open " + path_);
  while (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) throw StoreLocked(held_by(path_, read_line(descriptor_)));
    if (errno != EINTR) fail("lock " + path_);
  }
  struct stat ours = {};
  struct stat named = {};
  if (::fstat(descriptor_, &ours) != 0) fail("look at " + path_);
  return ::stat(path_.c_str(), &named) == 0 && ours.st_ino == named.st_ino &&
         ours.st_dev == named.st_dev;
}

// Made for its owner alone: payloads are nobody else's business.
void LockFile::lock_database(const std::string& database) {
  database_ = ::open(database.c_str(), O_RDONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0600);
  if (database_ < 0) fail("open " + database);
  while (::flock(database_, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) {
      throw StoreLocked("the database is in use: another process has locked " + database +
                        ", under another name or before its lock file was removed; stop that "
                        "process first, or use another database");
    }
    if (errno != EINTR) fail("lock " + database);
  }
}

void LockFile::write_holder(std::chrono::system_clock::time_point now) const {
  const std::string line = "{\"pid\":" + std::to_string(::getpid()) + ",\"host\":\"" + host_name() +
                           "\",\"since\":\"" + utc(now) + "\"}\n";
  // The text is a courtesy: a full disk must not keep us from starting, and serving reads.
  const ssize_t written = ::pwrite(descriptor_, line.data(), line.size(), 0);
  if (written < 0 && errno != ENOSPC && errno != EDQUOT) fail("write " + path_);
  if (::ftruncate(descriptor_, written < 0 ? 0 : written) != 0) fail("write " + path_);
}

const char* network_file_system(unsigned long type) {
  switch (type & 0xffffffffUL) {
    case 0x6969:
      return "NFS";
    case 0x517b:
      return "SMB";
    case 0xff534d42:
      return "CIFS";
    case 0xfe534d42:
      return "SMB2";
    case 0x01021997:
      return "9P";
    case 0x5346414f:
    case 0x6b414653:
      return "AFS";
    case 0x00c36400:
      return "Ceph";
    case 0x73757245:
      return "Coda";
    default:
      return nullptr;
  }
}

}  // namespace permit::store
