#include "orchestrator/store/redo_log.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <mutex>
#include <vector>

#include "orchestrator/store/store.h"
#include "tests/store/rows.h"
#include "tests/support/crash_vfs.h"
#include "tests/support/temporary_directory.h"

namespace permit::store {

namespace {

using test::CrashMode;
using test::CrashVfs;
using test::Disk;
using test_rows::noon;
using test_rows::on;

Opening with_log(std::int64_t settle_bytes = 1 << 20) {
  Opening opening;
  opening.logs = true;
  opening.settle_bytes = settle_bytes;
  return opening;
}

void put_pool(Store& store, const std::string& name) {
  store.begin();
  store.put_pool(PoolName(name), "{}");
  store.commit(noon);
}

std::int64_t pools_in_table(Database& database) {
  Statement count(database, "SELECT count(*) FROM pools");
  auto row = count.bind();
  REQUIRE(row.step());
  return row.i64(0);
}

// What power loss leaves of a disk; nothing that was not synced.
Disk after_loss(const CrashVfs& vfs) {
  Disk disk = vfs.copy();
  disk.lose_power([](std::uint32_t) { return 0U; }, CrashMode::drop_all);
  return disk;
}

std::size_t pools_after(const Disk& disk) {
  const CrashVfs vfs(disk);
  return Store(on(vfs)).pools().size();
}

}  // namespace

TEST_CASE("a commit is durable in the log, and the next start settles it") {
  CrashVfs vfs;
  Store store(on(vfs), with_log());
  for (const char* name : {"a", "b", "c"}) put_pool(store, name);
  CHECK(pools_in_table(store.database()) == 0);
  CHECK(store.pools().size() == 3);

  const CrashVfs lost(after_loss(vfs));
  Store next(on(lost));
  CHECK(next.pools().size() == 3);
  CHECK(pools_in_table(next.database()) == 3);
  CHECK(next.counters().commit_seq == store.counters().commit_seq);
  CHECK(!lost.copy().find("/permit.db-redo1a"));
}

TEST_CASE("a store that ends settles, and leaves no log") {
  CrashVfs vfs;
  {
    Store store(on(vfs), with_log());
    put_pool(store, "a");
    CHECK(vfs.copy().find("/permit.db-redo1a"));
  }
  CHECK(!vfs.copy().find("/permit.db-redo1a"));
  Database database(on(vfs));
  CHECK(pools_in_table(database) == 1);
}

TEST_CASE("what a log holds is settled once it is large, and the two files take turns") {
  CrashVfs vfs;
  Store store(on(vfs), with_log(1'000));
  std::size_t largest = 0;
  for (int i = 0; i < 200; ++i) {
    put_pool(store, "pool" + std::to_string(i));
    for (const char* name : {"/permit.db-redo1a", "/permit.db-redo1b"}) {
      largest = std::max(largest, vfs.copy().get(name).value_or("").size());
    }
    const CrashVfs lost(after_loss(vfs));
    Store next(on(lost));
    REQUIRE(next.pools().size() == static_cast<std::size_t>(i) + 1);
  }
  CHECK(vfs.copy().find("/permit.db-redo1b"));
  CHECK(largest < 1'500);
}

TEST_CASE("a log ends where a record is not whole") {
  CrashVfs vfs;
  Store store(on(vfs), with_log());
  for (const char* name : {"a", "b", "c"}) put_pool(store, name);
  const std::string log = *vfs.copy().get("/permit.db-redo1a");
  std::size_t whole = 0;
  for (std::size_t at = 0; at < log.size(); ++at) {
    Disk disk = after_loss(vfs);
    std::string bytes = log;
    bytes[at] = static_cast<char>(bytes[at] ^ 0x10);
    disk.put("/permit.db-redo1a", bytes);
    REQUIRE(pools_after(disk) == at * 3 / log.size());  // the records are as long as each other
    disk.put("/permit.db-redo1a", log.substr(0, at));
    REQUIRE(pools_after(disk) <= at * 3 / log.size());
    whole += pools_after(disk);
  }
  CHECK(whole > 0);
}

TEST_CASE("acknowledged commits that the log has lost are missed") {
  const test::TemporaryDirectory directory;
  const std::string mark = directory.file("mark");
  Opening opening = with_log();
  opening.mark = mark;
  CrashVfs vfs;
  Store store(on(vfs), opening);
  put_pool(store, "a");
  put_pool(store, "b");
  Disk disk = after_loss(vfs);
  {
    const CrashVfs whole(disk);
    CHECK_NOTHROW(Store(on(whole), opening));
  }
  std::string log = *disk.get("/permit.db-redo1a");
  log[log.size() - 1] = static_cast<char>(log[log.size() - 1] ^ 1);
  disk.put("/permit.db-redo1a", log);
  const CrashVfs cut(disk);
  CHECK_THROWS_AS(Store(on(cut), opening), StartRefused);
}

TEST_CASE("who has lost the database commits no more, and harms nobody's log") {
  CrashVfs vfs;
  Store old(on(vfs), with_log());
  put_pool(old, "a");
  Store next(on(vfs), with_log());
  put_pool(next, "b");
  old.begin();
  old.put_pool(PoolName("late"), "{}");
  CHECK_THROWS_AS(old.commit(noon), OwnershipLost);
  put_pool(next, "c");
  const CrashVfs lost(after_loss(vfs));
  Store third(on(lost));
  CHECK(third.pools().size() == 3);
  CHECK(!third.pools().contains(PoolName("late")));
}

TEST_CASE("a disk that is full refuses the commit and no other") {
  CrashVfs vfs;
  Store store(on(vfs), with_log());
  put_pool(store, "a");
  vfs.disk_limit(vfs.disk_size());
  store.begin();
  store.put_pool(PoolName("b"), "{}");
  CHECK_THROWS_AS(store.commit(noon), DiskFull);
  store.roll_back();
  CHECK(store.pools().size() == 1);
  CHECK_THROWS_AS(store.settle(), DiskFull);  // the tables have no room either
  CHECK(store.pools().size() == 1);
  bool told = false;
  store.when_settled([&told] { told = true; });
  CHECK(told);  // who reads is not kept waiting for the disk
  vfs.disk_limit(std::nullopt);
  put_pool(store, "c");
  store.settle();
  CHECK(pools_in_table(store.database()) == 2);
}

TEST_CASE("after a sync that failed nobody is told anything more") {
  CrashVfs vfs;
  Store store(on(vfs), with_log());
  put_pool(store, "a");
  vfs.fail_next_sync();
  store.begin();
  store.put_pool(PoolName("b"), "{}");
  CHECK_THROWS_AS(store.commit(noon), StoreFailed);
}

// --- With a thread that settles ---

namespace {

// What was posted to the engine thread, which is this one.
class Posts {
 public:
  Settler::Post post() {
    return [this](std::function<void()> call) {
      const std::lock_guard lock(mutex_);
      calls_.push_back(std::move(call));
    };
  }
  void run() {
    std::vector<std::function<void()>> calls;
    {
      const std::lock_guard lock(mutex_);
      calls.swap(calls_);
    }
    for (const auto& call : calls) call();
  }

 private:
  std::mutex mutex_;
  std::vector<std::function<void()>> calls_;
};

}  // namespace

TEST_CASE("a thread settles what is committed, while more is committed and read") {
  const test::TemporaryDirectory directory;
  Database::Options options;
  options.path = directory.file("permit.db");
  Posts posts;
  Opening opening = with_log(4'000);
  opening.post = posts.post();
  std::size_t settled = 0;
  {
    Store store(options, opening);
    for (std::size_t i = 1; i <= 2'000; ++i) {
      put_pool(store, "pool" + std::to_string(i));
      posts.run();
      if (i % 50 == 0) REQUIRE(store.pools().size() == i);
      if (i % 400 != 0) continue;
      bool told = false;
      store.when_settled([&] { told = true; });
      while (!told) {
        std::this_thread::yield();
        posts.run();
      }
      settled = static_cast<std::size_t>(pools_in_table(store.database()));
      REQUIRE(settled == i);
    }
    CHECK(std::filesystem::file_size(directory.file("permit.db-redo1a")) < 1 << 20);
    CHECK(store.wal_bytes() < 16 << 20);
  }
  CHECK(!std::filesystem::exists(directory.file("permit.db-redo1a")));
  Store next(options);
  CHECK(next.pools().size() == 2'000);
}

}  // namespace permit::store
