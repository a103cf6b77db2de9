#include "orchestrator/store/lock_file.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <system_error>

#include "tests/support/temporary_directory.h"

namespace permit::store {
namespace {

namespace fs = std::filesystem;

using test::TemporaryDirectory;

const auto noon = std::chrono::system_clock::from_time_t(1'767'268'800);  // 2026-01-01T12:00:00Z

std::string refusal(const std::string& database_path) {
  try {
    const LockFile lock(database_path, noon);
    return {};
  } catch (const StoreLocked& error) {
    return error.what();
  }
}

std::string read(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST_CASE("a second lock on one database is refused, and told who holds the first") {
  const TemporaryDirectory directory;
  const std::string database = directory.file("permit.db");
  std::optional<LockFile> lock(std::in_place, database, noon);
  CHECK(lock->path() == fs::canonical(database + ".lock").string());

  const std::string pid = std::to_string(::getpid());
  const std::string line = read(lock->path());
  CHECK(line.starts_with("{\"pid\":" + pid + ",\"host\":\""));
  CHECK(line.ends_with("\",\"since\":\"2026-01-01T12:00:00Z\"}\n"));

  std::array<char, 256> host = {};
  REQUIRE(::gethostname(host.data(), host.size() - 1) == 0);
  const std::string sentence = "the database is in use: " + lock->path() +
                               " is locked by process " + pid + " on " + host.data() +
                               ", since 2026-01-01T12:00:00Z; stop that process first, or use "
                               "another database";
  CHECK(refusal(database) == sentence);
  CHECK(refusal(database) == sentence);  // a refused attempt disturbs nothing
  CHECK(refusal(directory.file("other.db")) == "");

  lock.reset();
  CHECK(refusal(database) == "");
  CHECK(fs::exists(database + ".lock"));
}

TEST_CASE("a lock ends with its process, even a killed one") {
  const TemporaryDirectory directory;
  const std::string database = directory.file("permit.db");
  std::array<int, 2> ready = {};
  REQUIRE(::pipe(ready.data()) == 0);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    try {
      const LockFile lock(database, noon);
      if (::write(ready[1], "x", 1) == 1) ::pause();
    } catch (const std::exception&) {
    }
    ::_exit(1);
  }
  char byte = 0;
  REQUIRE(::read(ready[0], &byte, 1) == 1);
  CHECK(refusal(database).find("locked by process " + std::to_string(child) + " on ") !=
        std::string::npos);
  ::kill(child, SIGKILL);
  REQUIRE(::waitpid(child, nullptr, 0) == child);
  CHECK(refusal(database) == "");
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST_CASE("two names of one database are one lock") {
  const TemporaryDirectory directory;
  const std::string database = directory.file("permit.db");
  std::ofstream(database).put('x');
  fs::create_symlink(database, directory.file("alias.db"));
  const LockFile lock(directory.file("alias.db"), noon);
  CHECK(refusal(database) != "");
  CHECK(refusal(directory.file("./permit.db")) != "");
}

TEST_CASE("a hard link is the same database, too") {
  const TemporaryDirectory directory;
  const std::string database = directory.file("permit.db");
  const std::string other = directory.file("other.db");
  const pid_t child = ::fork();  // a process loses its locks on a file with any descriptor of it
  REQUIRE(child >= 0);
  if (child == 0) {
    const LockFile lock(database, noon);
    fs::create_hard_link(database, other);
    ::_exit(refusal(other).find("under another name") != std::string::npos ? 0 : 1);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(refusal(other) == "");
}

TEST_CASE("a new database is its owner's only") {
  const TemporaryDirectory directory;
  const std::string database = directory.file("permit.db");
  const LockFile lock(database, noon);
  CHECK(fs::status(database).permissions() == (fs::perms::owner_read | fs::perms::owner_write));
}

TEST_CASE("a longer text of an earlier holder is gone, and an unreadable one does no harm") {
  const TemporaryDirectory directory;
  const std::string database = directory.file("permit.db");
  std::ofstream(database + ".lock") << std::string(5000, 'x');
  const LockFile lock(database, noon);
  CHECK(read(lock.path()).size() < 400);
  std::ofstream(database + ".lock") << "{\"pid";
  CHECK(refusal(database).find("is locked by another process;") != std::string::npos);
}

TEST_CASE("a lock file is its owner's only, not a link, and not left open to children") {
  const TemporaryDirectory directory;
  const std::string database = directory.file("permit.db");
  {
    const LockFile lock(database, noon);
    CHECK(fs::status(lock.path()).permissions() ==
          (fs::perms::owner_read | fs::perms::owner_write));
  }
  fs::remove(database + ".lock");
  fs::create_symlink(directory.file("elsewhere"), database + ".lock");
  CHECK_THROWS_AS(LockFile(database, noon), std::system_error);
  CHECK_FALSE(fs::exists(directory.file("elsewhere")));
  CHECK_THROWS_AS(LockFile(directory.file("missing/permit.db"), noon), std::system_error);
}

TEST_CASE("network file systems are known by their numbers") {
  CHECK(network_file_system(0x6969) == std::string("NFS"));
  CHECK(network_file_system(0xff534d42) == std::string("CIFS"));
  CHECK(network_file_system(0xffffffffff534d42) == std::string("CIFS"));  // sign-extended
  CHECK(network_file_system(0xfe534d42) == std::string("SMB2"));
  CHECK(network_file_system(0x01021997) == std::string("9P"));
  CHECK(network_file_system(0xef53) == nullptr);      // ext4
  CHECK(network_file_system(0x01021994) == nullptr);  // tmpfs
  CHECK(network_file_system(0x65735546) == nullptr);  // FUSE
}

}  // namespace
}  // namespace permit::store
