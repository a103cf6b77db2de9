// What `permit server check` finds: rows that cannot be as they are, each planted by hand.
#include "orchestrator/service/file_check.h"

#include <doctest/doctest.h>

#include "orchestrator/store/packed_events.h"
#include "tests/support/crash_vfs.h"
#include "tests/support/script.h"

namespace permit::service {
namespace {

using test::CrashVfs;
using test::Disk;

store::Database::Options on(const CrashVfs& vfs) {
  store::Database::Options options;
  options.path = "/permit.db";
  options.vfs = vfs.name();
  return options;
}

FileReport report_on(const CrashVfs& vfs) {
  return check_file(on(vfs), [](const std::string&, std::int64_t, std::int64_t) {});
}

// Two permits held, one of each kind of holder; one ended; a line, a child, activities, timers.
Disk something_of_everything() {
  test::Script script;
  script.run({"pool set gpu capacity=1", "pool set tape capacity=2", "start a b c d",
              "do a: permit gpu order=fair", "do b: permit gpu order=fair",
              "do c: start-child e; activity x timeout=60s; start-timer t 1h", "do d: complete 1",
              "acquire tape id=r1 lease=100s", "acquire tape id=r2 lease=100s", "release r1"});
  return script.disk();
}

// All of it in the file itself.
Disk without_log(const Disk& disk) {
  const CrashVfs vfs(disk);
  store::Database(on(vfs)).checkpoint();
  Disk copy = vfs.copy();
  copy.put("/permit.db-wal", "");
  return copy;
}

// What the check says once this has been done to the rows.
std::string said_after(const std::string& sql) {
  const CrashVfs vfs(something_of_everything());
  {
    store::Database database(on(vfs));
    database.execute(sql.c_str());
  }
  std::string said;
  const FileReport report = report_on(vfs);
  CHECK(report.fault_count >= static_cast<std::int64_t>(report.faults.size()));
  for (const store::Fault& fault : report.faults) {
    said += fault.table + " | " + fault.row + " | " + fault.what + "\n";
  }
  return said;
}

TEST_CASE("a sound database is found sound, and counted") {
  const CrashVfs vfs(something_of_everything());
  const FileReport report = report_on(vfs);
  for (const store::Fault& fault : report.faults) {
    FAIL_CHECK(fault.table << " | " << fault.row << " | " << fault.what);
  }
  CHECK(report.fault_count == 0);
  CHECK(report.schema == store::schema_version);
  CHECK(report.permits_held == 2);
  CHECK(report.runs == 8);
  CHECK(report.events > 20);
  CHECK(report.fence == 3);
  CHECK(report.commit > 5);
}

TEST_CASE("each kind of fault is found, with its row") {
  struct Planted {
    const char* sql;
    const char* said;
  };
  const Planted all[] = {
      {"UPDATE runs SET workflow_id = 'z' WHERE number = 1", "runs | run 1 | its row is not"},
      {"UPDATE runs SET task_queue = 'z' WHERE number = 2", "come to: task_queue"},
      {"UPDATE runs SET next_due = 7 WHERE number = 1", "come to: next_due"},
      {"UPDATE runs SET deadline = deadline + 1 WHERE pool IS NOT NULL", "come to: deadline"},
      {"UPDATE runs SET history_bytes = history_bytes + 1 WHERE number = 1", "history | run 1 |"},
      {"UPDATE runs SET close_time = 5 WHERE number = 1", "an open run has a close time"},
      {"UPDATE runs SET next_event_id = next_event_id + 1 WHERE number = 2", "runs | run 2 |"},
      {"DELETE FROM history WHERE run = 1 AND first_event_id = 1", "are missing"},
      {"DELETE FROM history WHERE run = 1 AND first_event_id = (SELECT max(first_event_id) FROM "
       "history WHERE run = 1)",
       "history | run 1 |"},
      {"UPDATE history SET events = (SELECT events FROM history WHERE run = 2 LIMIT 1) WHERE run = "
       "1",
       "runs | run 1 |"},
      {"UPDATE history SET commit_seq = 0 WHERE run = 1 AND first_event_id > 1",
       "history | run 1, event"},
      {"INSERT INTO history VALUES (99 << 20 | 1, 1, x'')", "events of a run that there is not"},
      {"DELETE FROM runs WHERE workflow_id = 'e'", "its child e"},
      {"DELETE FROM activities", "activities | run 3 |"},
      {"INSERT INTO activities VALUES (4, 5, NULL, '{}')", "an activity of a run that is not open"},
      {"UPDATE server SET fence = 1", "server | fence |"},
      {"UPDATE server SET run = 1", "server | run |"},
      {"UPDATE server SET commit_seq = 1", "server | commit_seq |"},
      {"DELETE FROM holds WHERE outcome IS NULL", "has no open hold in the ledger"},
      {"UPDATE holds SET slot = 'z' WHERE outcome IS NULL", "without its open permit"},
      {"UPDATE holds SET outcome = NULL WHERE outcome IS NOT NULL", "no outcome"},
      {"UPDATE holds SET granted_at = granted_at + 1000000 WHERE fence = 1", "holds | fence 2 |"},
      {"UPDATE hold_counts SET holds = holds + 1 WHERE outcome = 0 AND pool = 'tape'",
       "hold_counts | tape:"},
      {"UPDATE hold_counts SET holds = 0 WHERE outcome > 0", "more holds than were counted"},
      {"DELETE FROM waiters", "is in no line"},
      {"UPDATE waiters SET waiter = '{'", "pools |"},
      {"UPDATE pools SET settings = '[]'", "pools |"},
  };
  for (const Planted& planted : all) {
    const std::string said = said_after(planted.sql);
    const std::string told = planted.sql + ("\nfound:\n" + said);
    CHECK_MESSAGE(said.find(planted.said) != std::string::npos, told);
  }
}

TEST_CASE("a file without its counters is not read") {
  const CrashVfs vfs(something_of_everything());
  store::Database(on(vfs)).execute("DELETE FROM server");
  CHECK_THROWS_AS(report_on(vfs), store::StartRefused);
}

TEST_CASE("a damaged page is named, and the rest is looked at all the same") {
  Disk disk = without_log(something_of_everything());
  std::string bytes = *disk.get("/permit.db");
  const std::string events = store::Store(on(CrashVfs(disk))).history(RunNumber{1}).at(0).events;
  const std::size_t at = bytes.find(store::EventPacker().pack(events));
  REQUIRE(at != std::string::npos);
  bytes[at] = static_cast<char>(bytes[at] ^ 1);
  disk.put("/permit.db", bytes);
  const CrashVfs vfs(disk);
  const FileReport report = report_on(vfs);
  const std::string page = "page " + std::to_string(at / 8192 + 1);
  bool named = false;
  for (const store::Fault& fault : report.faults) named = named || fault.row == page;
  CHECK(named);
  CHECK(report.permits_held == 2);
}

TEST_CASE("runs that lead back to an earlier one are a fault, and not gone through for ever") {
  Disk disk = without_log(something_of_everything());
  std::string bytes = *disk.get("/permit.db");
  // The last run's number, in the leaf where the table has it: size of the row, number, row.
  std::size_t page = 0;
  std::size_t cell = 0;
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(bytes[at]); };
  for (std::size_t at = 8192; at < bytes.size() && page == 0; at += 8192) {
    const std::size_t cells = byte(at + 3) * 256U + byte(at + 4);
    if (byte(at) != 13 || cells != 8) continue;  // of the rows of a table; there are 8 runs
    const std::size_t last = at + byte(at + 8 + 14) * 256U + byte(at + 8 + 15);
    const std::size_t number = last + (byte(last) >= 128 ? 2 : 1);
    if (byte(number) != 8 || bytes.substr(last, 300).find("default") == std::string::npos) continue;
    page = at;
    cell = number;
  }
  REQUIRE(page != 0);
  bytes[cell] = 1;
  const auto* start = reinterpret_cast<const unsigned char*>(bytes.data() + page);
  const std::uint64_t seal =
      store::seal_of(start, 8192, static_cast<std::int64_t>(page / 8192 + 1));
  for (std::size_t i = 0; i < 8; ++i) {
    bytes[page + 8184 + i] = static_cast<char>(seal >> (8 * i) & 0xffU);
  }
  disk.put("/permit.db", bytes);
  const CrashVfs vfs(disk);
  bool said = false;
  for (const store::Fault& fault : report_on(vfs).faults) {
    said = said || fault.what.find("not in their order") != std::string::npos;
  }
  CHECK(said);
}

TEST_CASE("of many faults the first are kept and all are counted") {
  const CrashVfs vfs(something_of_everything());
  {
    store::Database database(on(vfs));
    store::Statement orphan(database, "INSERT INTO history VALUES (? << 20 | 1, 1, x'')");
    for (int run = 1000; run < 1250; ++run) orphan.run(run);
  }
  const FileReport report = report_on(vfs);
  CHECK(report.faults.size() == faults_kept);
  CHECK(report.fault_count >= 250);
}

}  // namespace
}  // namespace permit::service
