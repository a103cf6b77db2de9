// Power loss against a real WAL database: what commit() returned from is there afterwards, and no
// transaction is there by half.
#include "tests/support/crash_vfs.h"

#include <doctest/doctest.h>

#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "orchestrator/store/database.h"

namespace permit::test {
namespace {

using store::Database;
using store::DiskFull;
using store::Statement;
using store::StoreFailed;
using store::Transaction;

const std::string path = "/permit.db";
constexpr int rows_per_transaction = 3;

// Choices that a seed repeats.
class Dice {
 public:
  explicit Dice(std::uint32_t seed) : generator_(seed) {}
  std::uint32_t operator()(std::uint32_t n) { return static_cast<std::uint32_t>(generator_() % n); }
  Choose choose() {
    return [this](std::uint32_t n) { return (*this)(n); };
  }

 private:
  std::mt19937 generator_;
};

Database::Options on(const CrashVfs& vfs) {
  Database::Options options;
  options.path = path;
  options.vfs = vfs.name();
  options.autocheckpoint_pages_min = 12;  // so that checkpoints are crashed into as well
  return options;
}

// Numbered transactions, each of which writes three rows, replaces an older body, and counts
// itself.
class Ledger {
 public:
  explicit Ledger(CrashVfs& vfs, const char* synchronous = "FULL") : database_(on(vfs)) {
    database_.execute((std::string("PRAGMA synchronous = ") + synchronous).c_str());
    if (database_.user_version() == 0) create();
  }

  void write(int number, std::size_t body_bytes) {
    Statement insert(database_, "INSERT INTO entry (number, part, body) VALUES (?, ?, ?)");
    Statement replace(database_, "UPDATE entry SET body = ? WHERE number = ? AND part = 0");
    Statement set_last(database_, "UPDATE last SET number = ?");
    const std::string body(body_bytes, static_cast<char>('a' + number % 26));
    Transaction transaction(database_);
    for (int part = 0; part < rows_per_transaction; ++part) insert.run(number, part, body);
    replace.run(body, number / 2);
    set_last.run(number);
    transaction.commit();
  }

  int last() {
    Statement select(database_, "SELECT number FROM last");
    auto row = select.bind();
    REQUIRE(row.step());
    return row.i32(0);
  }

  // Empty if the file is sound and holds the transactions 1..last(), each of them whole.
  std::string fault() {
    const std::string report = database_.quick_check();
    if (report != "ok") return report;
    Statement select(
        database_, "SELECT count(*), count(DISTINCT number), coalesce(max(number), 0) FROM entry");
    auto row = select.bind();
    REQUIRE(row.step());
    const auto found = std::tuple(row.i64(0), row.i64(1), row.i64(2));
    const int count = last();
    if (found == std::tuple(count * rows_per_transaction, count, count)) return {};
    return "a transaction is there by half";
  }

 private:
  void create() {
    Transaction transaction(database_);
    database_.execute(
        "CREATE TABLE entry (number INTEGER, part INTEGER, body TEXT, PRIMARY KEY (number, part))"
        "  STRICT, WITHOUT ROWID;"
        "CREATE TABLE last (number INTEGER) STRICT;"
        "INSERT INTO last VALUES (0);");
    database_.set_user_version(1);
    transaction.commit();
  }

  Database database_;
};

struct Outcome {
  int crashes = 0;
  int lost = 0;     // acknowledged, and not there after the crash
  int unknown = 0;  // not acknowledged, and there
  std::vector<std::string> faults = {};
};

// One life of the process: writes transactions until the power goes, at some sync or between two
// transactions. Returns the last one acknowledged.
int run_until_crash(CrashVfs& vfs, Dice& dice, CrashMode mode, int first, int last,
                    const char* synchronous) {
  const auto crash = [&] { vfs.crash(dice.choose(), mode); };
  int acked = first - 1;
  std::uint32_t events_left = 1 + dice(40);
  const auto event = [&] {
    if (events_left > 0 && --events_left == 0) crash();
  };
  vfs.on_sync([&](std::size_t, SyncEdge) { event(); });
  try {
    Ledger ledger(vfs, synchronous);
    while (acked < last) {
      ledger.write(acked + 1, dice(2500));
      ++acked;
      event();
    }
    crash();
  } catch (const StoreFailed&) {  // the old connection, on the crashed disk
    if (events_left > 0) throw;
  }
  vfs.on_sync({});
  return acked;
}

Outcome survive(CrashMode mode, int transactions, const char* synchronous,
                Disk::Directory directory) {
  Dice dice(static_cast<std::uint32_t>(mode) + 7);
  CrashVfs vfs{Disk(directory)};
  Outcome outcome;
  int done = 0;
  int acked = 0;
  while (acked < transactions) {
    acked = run_until_crash(vfs, dice, mode, done + 1, transactions, synchronous);
    ++outcome.crashes;
    Ledger ledger(vfs);
    const std::string fault = ledger.fault();
    const int found = ledger.last();
    if (fault != "") outcome.faults.push_back(fault);
    if (found < acked) outcome.lost += acked - found;
    if (found > acked) outcome.unknown += found - acked;
    if (found > acked + 1) outcome.faults.push_back("more than was ever written");
    done = found;
  }
  return outcome;
}

constexpr CrashMode all_modes[] = {CrashMode::drop_all, CrashMode::keep_all, CrashMode::keep_prefix,
                                   CrashMode::random_subset, CrashMode::torn_sector};

// Disk

TEST_CASE("a disk keeps what was synced, and of the rest what the mode says") {
  Disk disk;
  const int file = disk.create("/a");
  disk.write(file, 0, std::string(1024, 'a'));
  disk.sync(file);
  disk.write(file, 256, std::string(1024, 'b'));
  disk.truncate(file, 700);
  disk.write(file, 700, "c");
  CHECK(disk.unsynced_changes() == 3);
  CHECK(disk.unsynced_bytes() == 1025);
  const auto after = [&](CrashMode mode, std::uint32_t choice) {
    Disk image = disk;
    image.lose_power([&](std::uint32_t n) { return std::min(choice, n - 1); }, mode);
    CHECK(image.unsynced_changes() == 0);
    return image.get("/a").value();
  };
  const std::string a(1024, 'a');
  const std::string live = std::string(256, 'a') + std::string(444, 'b') + "c";
  CHECK(disk.get("/a") == live);
  CHECK(after(CrashMode::drop_all, 9) == a);
  CHECK(after(CrashMode::keep_all, 0) == live);
  CHECK(after(CrashMode::keep_prefix, 0) == a);
  CHECK(after(CrashMode::keep_prefix, 1) == a.substr(0, 256) + std::string(1024, 'b'));
  CHECK(after(CrashMode::keep_prefix, 2) == live.substr(0, 700));
  CHECK(after(CrashMode::random_subset, 0) == a);
  CHECK(after(CrashMode::random_subset, 1) == live);
}

TEST_CASE("a torn write is torn at the sectors of the disk, in any order") {
  Disk disk;
  const int file = disk.create("/a");
  disk.write(file, 0, std::string(2000, 'a'));
  disk.sync(file);
  disk.write(file, 500, std::string(1000, 'b'));  // 12 bytes, 512, and 476
  std::vector<std::uint32_t> kept = {1, 0, 1};
  std::size_t next = 0;
  disk.lose_power([&](std::uint32_t) { return kept.at(next++); }, CrashMode::torn_sector);
  CHECK(next == 3);
  std::string expected(2000, 'a');
  expected.replace(500, 12, 12, 'b').replace(1024, 476, 476, 'b');
  CHECK(disk.get("/a") == expected);
}

TEST_CASE("names are durable at once, or once their directory is synced") {
  const Choose none = [](std::uint32_t) { return 0U; };
  Disk at_once;
  at_once.create("/new");
  at_once.lose_power(none, CrashMode::drop_all);
  CHECK(at_once.get("/new") == "");

  Disk disk(Disk::Directory::needs_sync);
  disk.put("/old", "old");
  disk.sync(disk.create("/new"));
  disk.remove("/old");
  CHECK_FALSE(disk.get("/old").has_value());
  Disk unsynced = disk;
  unsynced.lose_power(none, CrashMode::drop_all);
  CHECK(unsynced.get("/old") == "old");
  CHECK_FALSE(unsynced.get("/new").has_value());
  disk.sync_directory();
  disk.lose_power(none, CrashMode::drop_all);
  CHECK_FALSE(disk.get("/old").has_value());
  CHECK(disk.get("/new").has_value());
}

// Power loss

TEST_CASE("no acknowledged transaction is lost to random power losses") {
  for (const auto directory : {Disk::Directory::durable_at_once, Disk::Directory::needs_sync}) {
    for (const CrashMode mode : all_modes) {
      CAPTURE(static_cast<int>(mode));
      const Outcome outcome = survive(mode, 500, "FULL", directory);
      CHECK(outcome.lost == 0);
      CHECK(outcome.faults.empty());
      CHECK(outcome.crashes > 10);
      CHECK((outcome.unknown > 0 || mode == CrashMode::drop_all));
    }
  }
}

// If these lost nothing either, the power losses above would prove nothing.
TEST_CASE("without a sync at every commit, acknowledged transactions are lost") {
  const Outcome outcome =
      survive(CrashMode::drop_all, 200, "NORMAL", Disk::Directory::durable_at_once);
  CHECK(outcome.lost > 0);
  CHECK(outcome.faults.empty());
}

TEST_CASE("without any sync, acknowledged transactions are lost, or the whole file is") {
  CrashVfs vfs;
  Dice dice(1);
  int lost = 0;
  {
    Ledger ledger(vfs, "OFF");
    for (int number = 1; number <= 50; ++number) ledger.write(number, dice(6000));
    vfs.crash(dice.choose(), CrashMode::drop_all);
  }
  try {
    Ledger ledger(vfs);
    lost = 50 - ledger.last();
  } catch (const StoreFailed&) {
    lost = 50;
  }
  CHECK(lost > 0);
}

TEST_CASE("a power loss at any sync of 200 transactions loses nothing acknowledged") {
  CrashVfs vfs;
  Dice dice(42);
  Ledger ledger(vfs);
  int acked = 0;
  int images = 0;
  std::string first_fault;
  const auto check = [&](Disk disk, CrashMode mode) {
    CrashVfs rebooted(std::move(disk));
    rebooted.crash(dice.choose(), mode);
    Ledger recovered(rebooted);
    ++images;
    std::string fault = recovered.fault();
    const int found = recovered.last();
    if (found < acked || found > acked + 1) fault = "has " + std::to_string(found);
    if (fault == "" || first_fault != "") return;
    first_fault = fault + " after " + std::to_string(acked) + " acknowledged, in mode " +
                  std::to_string(static_cast<int>(mode));
  };
  vfs.on_sync([&](std::size_t, SyncEdge edge) {
    const Disk disk = vfs.copy();
    if (edge == SyncEdge::after) {
      check(disk, CrashMode::drop_all);
      return;
    }
    for (const CrashMode mode : all_modes) check(disk, mode);
  });
  while (acked < 200) {
    ledger.write(acked + 1, dice(1500));
    ++acked;
  }
  vfs.on_sync({});  // what it uses ends before the connection
  CHECK(first_fault == "");
  CHECK(images > 200 * 6);
}

TEST_CASE("a connection on a crashed disk can do nothing more") {
  CrashVfs vfs;
  Ledger before(vfs);
  before.write(1, 10);
  vfs.crash([](std::uint32_t) { return 0U; }, CrashMode::drop_all);
  Ledger after(vfs);
  CHECK(after.last() == 1);
  CHECK_THROWS_AS(before.write(2, 10), StoreFailed);
  after.write(2, 10);
  CHECK(after.last() == 2);
}

// Faults

// Runs 20 transactions with `plan` set before them. Stops at the first error, as the process would,
// reboots, and checks. Returns whether the fault struck.
bool survives_fault(const std::function<void(CrashVfs&)>& plan) {
  CrashVfs vfs;
  Dice dice(3);
  int acked = 0;
  bool struck = false;
  {
    Ledger ledger(vfs);
    plan(vfs);
    try {
      while (acked < 20) {
        ledger.write(acked + 1, dice(2500));
        ++acked;
      }
    } catch (const StoreFailed&) {
      struck = true;
      CHECK_THROWS_AS(ledger.write(acked + 2, 10), StoreFailed);
    }
  }
  for (const CrashMode mode :
       {CrashMode::drop_all, CrashMode::keep_all, CrashMode::random_subset}) {
    CrashVfs rebooted(vfs.copy());
    rebooted.crash(dice.choose(), mode);
    Ledger recovered(rebooted);
    CHECK(recovered.fault() == "");
    const int found = recovered.last();
    CHECK(found >= acked);
    CHECK(found <= acked + 1);
  }
  return struck;
}

TEST_CASE("each sync and each write may fail, once or from then on, and nothing acked is lost") {
  for (const Fault fault : {Fault::once, Fault::from_then_on}) {
    std::size_t write = 0;
    while (survives_fault([&](CrashVfs& vfs) { vfs.fail_write_after(write, fault); })) ++write;
    CHECK(write > 100);
    std::size_t sync = 0;
    const auto fail_sync = [&](CrashVfs& vfs) {
      const std::size_t target = vfs.syncs() + 1 + sync;
      vfs.on_sync([&vfs, fault, target](std::size_t number, SyncEdge edge) {
        if (edge == SyncEdge::before && number == target) vfs.fail_next_sync(fault);
      });
    };
    while (survives_fault(fail_sync)) ++sync;
    CHECK(sync > 20);
  }
}

TEST_CASE("a sync that says it failed may have been durable: the refused transaction is there") {
  CrashVfs vfs;
  {
    Ledger ledger(vfs);
    ledger.write(1, 100);
    vfs.lie_next_sync();
    CHECK_THROWS_AS(ledger.write(2, 100), StoreFailed);
    CHECK_THROWS_AS(ledger.write(3, 100), StoreFailed);
  }
  vfs.crash([](std::uint32_t) { return 0U; }, CrashMode::drop_all);
  Ledger recovered(vfs);
  CHECK(recovered.fault() == "");
  CHECK(recovered.last() == 2);
}

TEST_CASE("a read that fails is an error, and the next one is not") {
  CrashVfs vfs;
  {
    Ledger(vfs).write(1, 100);
  }
  vfs.fail_read_after(0);
  CHECK_THROWS_AS(Ledger{vfs}, StoreFailed);
  vfs.fail_read_after(std::nullopt);
  CHECK(Ledger(vfs).last() == 1);
}

TEST_CASE("a disk that is full at any point loses nothing, and goes on when it is not") {
  CrashVfs vfs;
  Dice dice(4);
  Ledger ledger(vfs);
  int acked = 0;
  int full = 0;
  for (int round = 0; round < 60; ++round) {
    vfs.disk_limit(vfs.disk_size() + dice(60'000));
    try {
      for (int i = 0; i < 20; ++i) {
        ledger.write(acked + 1, dice(6000));
        ++acked;
      }
    } catch (const DiskFull&) {
      ++full;
    }
    CHECK(ledger.last() == acked);
    CHECK(ledger.fault() == "");
    vfs.disk_limit({});
    ledger.write(acked + 1, 10);
    ++acked;

    CrashVfs rebooted(vfs.copy());
    rebooted.crash(dice.choose(), CrashMode::torn_sector);
    CHECK(Ledger(rebooted).last() == acked);
  }
  CHECK(full > 10);
}

}  // namespace
}  // namespace permit::test
