// How a store is opened: its version, its mark, its fence epoch.
#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "orchestrator/store/store.h"
#include "tests/store/rows.h"
#include "tests/support/crash_vfs.h"
#include "tests/support/old_schemas.h"
#include "tests/support/plain_sqlite.h"

namespace permit::store {
namespace {

using test::CrashVfs;
using test::Disk;

const std::string path = "/permit.db";
constexpr Time noon{std::chrono::seconds(1'800'000'000)};

Database::Options on(const CrashVfs& vfs) {
  Database::Options options;
  options.path = path;
  options.vfs = vfs.name();
  return options;
}

void commit(Store& store, int times = 1) {
  for (int i = 0; i < times; ++i) {
    store.begin();
    store.commit(noon);
  }
}

// The message of the refusal; empty if it opens.
std::string refusal(const CrashVfs& vfs, const Opening& opening) {
  try {
    const Store store(on(vfs), opening);
    return {};
  } catch (const StartRefused& refused) {
    return refused.what();
  }
}

struct MarkFile {
  std::string path =
      std::filesystem::temp_directory_path() / ("permit-mark-" + std::to_string(getpid()));
  MarkFile() { std::filesystem::remove(path); }
  ~MarkFile() { std::filesystem::remove(path); }
};

TEST_CASE("a mark remembers the last commit, and one that was changed is none") {
  const MarkFile file;
  {
    CommitMark mark(file.path);
    CHECK_FALSE(mark.read().has_value());
    mark.note(7);
    CHECK(mark.read() == 7);
    mark.note(123'456'789'012);
  }
  CHECK(CommitMark(file.path).read() == 123'456'789'012);
  CHECK(CommitMark::read(file.path) == 123'456'789'012);
  CHECK_FALSE(CommitMark::read(file.path + ".none").has_value());
  std::string text;
  std::getline(std::ifstream(file.path), text);
  for (std::size_t bit = 0; bit < text.size() * 8; ++bit) {
    std::string changed = text;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << (bit % 8)));
    std::ofstream(file.path) << changed << "\n";
    CHECK_FALSE(CommitMark::read(file.path).has_value());
  }
}

TEST_CASE("a log that has lost acknowledged commits is refused, and left as it is") {
  const MarkFile file;
  Disk disk;
  {
    CrashVfs vfs;
    Store store(on(vfs), {.mark = file.path});
    commit(store, 20);
    disk = vfs.copy();  // as after kill -9
    CHECK(CommitMark::read(file.path) == 20);
  }
  CHECK(refusal(CrashVfs(disk), {.mark = file.path}) == "");

  Disk cut = disk;
  const std::string log = *disk.get(path + "-wal");
  SUBCASE("its end is cut off") { cut.put(path + "-wal", log.substr(0, log.size() - 100)); }
  SUBCASE("a bit of it is flipped") {
    std::string flipped = log;
    flipped[log.size() / 2] = static_cast<char>(flipped[log.size() / 2] ^ 1);
    cut.put(path + "-wal", flipped);
  }
  SUBCASE("it is gone") { cut.put(path + "-wal", ""); }
  CrashVfs vfs(cut);
  const std::string file_before = *vfs.copy().get(path);
  const std::string log_before = *vfs.copy().get(path + "-wal");
  const std::string said = refusal(vfs, {.mark = file.path});
  CHECK_MESSAGE(said.find("commit 20 was acknowledged") != std::string::npos, said);
  CHECK(said.find("--fence-epoch") != std::string::npos);
  CHECK(*vfs.copy().get(path) == file_before);
  CHECK(*vfs.copy().get(path + "-wal") == log_before);
  CHECK(CommitMark::read(file.path) == 20);
  // Who knows what he does goes on with it, and is not asked again.
  CHECK(refusal(vfs, {.mark = file.path, .fence_epoch = 1}) == "");
  CHECK(refusal(vfs, {.mark = file.path}) == "");
}

TEST_CASE("a database that is gone does not begin anew") {
  const MarkFile file;
  {
    CrashVfs vfs;
    Store store(on(vfs), {.mark = file.path});
    commit(store, 3);
  }
  CrashVfs empty;
  const std::string said = refusal(empty, {.mark = file.path});
  CHECK_MESSAGE(said.find("is empty, but commit 3 was acknowledged") != std::string::npos, said);
}

TEST_CASE("fences begin above all others with a new epoch, and only with a higher one") {
  CrashVfs vfs;
  {
    Store store(on(vfs));
    store.set_fence(812);
    commit(store);
    CHECK(store.fence_epoch() == 0);
  }
  CHECK(refusal(vfs, {.fence_epoch = 0}).find("is 0: the next free one is 1") != std::string::npos);
  {
    Store store(on(vfs), {.fence_epoch = 3});
    CHECK(store.fence_epoch() == 3);
    CHECK(store.counters().fence == std::int64_t{3} << 40);
  }
  {
    Store store(on(vfs));  // which is durable at once
    CHECK(store.counters().fence == std::int64_t{3} << 40);
    store.set_fence(store.counters().fence + 1);
    commit(store);
  }
  for (const std::int64_t epoch : {std::int64_t{1}, std::int64_t{3}, fence_epoch_max + 1}) {
    CHECK(refusal(vfs, {.fence_epoch = epoch}) != "");
  }
  Store store(on(vfs), {.fence_epoch = fence_epoch_max});
  CHECK(store.counters().fence < (std::int64_t{1} << 53));
}

TEST_CASE("a file that has no room for seals is taken for one only if its version allows it") {
  Disk disk;
  {
    CrashVfs vfs;
    Store store(on(vfs));
    commit(store, 5);
    store.database().checkpoint();
    disk = vfs.copy();
  }
  const Disk unsealed = test::without_seals(disk, path);
  CHECK_THROWS_AS(Store(on(CrashVfs(unsealed))), Damaged);

  CrashVfs old(unsealed);
  {
    Database database(on(old));
    database.execute(test::back_to_schema_4);
    database.execute(
        "DROP TABLE api_keys;"
        "CREATE INDEX runs_permits_open ON runs (pool, slot) WHERE pool IS NOT NULL AND status = "
        "1;"
        "INSERT INTO history VALUES (7, 1, 2, 'a'), (7, 3, 4, 'b'), (8, 1, 3, 'c')");
    database.set_user_version(2);
  }
  {
    Store store(on(old));
    CHECK(store.counters().commit_seq == 5);
    CHECK(store.database().is_sealed());
    CHECK(store.database().user_version() == schema_version);
    CHECK_THROWS(store.database().execute("DROP INDEX runs_permits_open"));  // it is gone
    const auto history = store.history(RunNumber{7});
    REQUIRE(history.size() == 2);
    CHECK(history[1].first_event_id == 3);
    CHECK(history[1].events == "b");
    CHECK(store.history_table().of(RunNumber{7}, 2, 3).size() ==
          1);  // event 2 is of the first batch
    CHECK(store.history_table().of(RunNumber{7}, 4, 99).at(0).events == "b");
    CHECK(store.history(RunNumber{6}).empty());
    commit(store);
  }
  Store store(on(old));
  CHECK(store.counters().commit_seq == 6);
}

TEST_CASE("the histories of version 5 are packed") {
  const CrashVfs vfs;
  {
    Store store(on(vfs));
  }
  {
    Database database(on(vfs));
    database.execute(test::back_to_schema_6);
    database.execute(
        "DROP TABLE history;"
        "CREATE TABLE history (place INTEGER PRIMARY KEY, commit_seq INTEGER NOT NULL, "
        "events TEXT NOT NULL, run INTEGER AS (place >> 20), "
        "first_event_id INTEGER AS (place & 1048575)) STRICT;"
        "INSERT INTO history VALUES (7 << 20 | 3, 4, '{\"eventId\":\"3\"}'), (7 << 20 | 1, 2, "
        "'a')");
    database.set_user_version(5);
  }
  Store store(on(vfs));
  const auto history = store.history(RunNumber{7});
  REQUIRE(history.size() == 2);
  CHECK(history[0].events == "a");
  CHECK(history[1].first_event_id == 3);
  CHECK(history[1].events == "{\"eventId\":\"3\"}");
  CHECK(store.history_table().of(RunNumber{7}, 2, 3).size() == 1);
}

TEST_CASE("what the indexes of version 6 did not have yet is found") {
  const CrashVfs vfs;
  {
    test_rows::Rows rows{test_rows::on(vfs)};
    rows.add("permit:pool:0");
  }
  Database(on(vfs)).execute(test::back_to_schema_6);
  test_rows::Rows rows{test_rows::on(vfs)};
  CHECK(rows.database().user_version() == schema_version);
  CHECK(rows.store().latest_run("default", WorkflowId("permit:pool:0")).has_value());
  CHECK(rows.database().integrity_check() == "ok");
}

TEST_CASE("a damaged file of an old version is not sealed as it is") {
  Disk disk;
  {
    CrashVfs vfs;
    Store store(on(vfs));
    commit(store, 5);
    store.database().checkpoint();
    disk = vfs.copy();
  }
  Disk old = test::without_seals(disk, path);
  {
    CrashVfs vfs(old);
    Database database(on(vfs));
    database.execute(test::back_to_schema_4);
    database.set_user_version(2);
    database.checkpoint();
    old = vfs.copy();
  }
  std::string bytes = *old.get(path);
  REQUIRE(bytes.size() > 8192 * 3);
  bytes[8192 * 2 + 4] = static_cast<char>(bytes[8192 * 2 + 4] ^ 0x40);  // a page's count of cells
  old.put(path, bytes);
  CrashVfs vfs(old);
  CHECK_THROWS_AS(Store(on(vfs)), Damaged);
  CHECK(*vfs.copy().get(path) == bytes);
}

TEST_CASE("to look only takes nothing and changes nothing") {
  CrashVfs vfs;
  Store server(on(vfs));
  commit(server, 2);
  Database::Options options = on(vfs);
  options.mode = Database::Mode::read_only;
  {
    Store look(options);
    CHECK(look.counters().commit_seq == 2);
    CHECK(look.counters().epoch == server.counters().epoch);
    CHECK_THROWS_AS(look.begin(), BadStatement);
  }
  commit(server);  // still its own
  CrashVfs old;
  {
    Database(on(old)).set_user_version(2);
  }
  options.vfs = old.name();
  CHECK_THROWS_AS(Store{options}, StartRefused);
}

}  // namespace
}  // namespace permit::store
