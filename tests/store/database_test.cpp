#include "orchestrator/store/database.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "orchestrator/protocol/ensure.h"
#include "tests/support/crash_vfs.h"

namespace permit::store {
namespace {

using test::CrashVfs;
using test::Disk;

const std::string path = "/permit.db";

Database::Options in_memory() {
  Database::Options options;
  options.mode = Database::Mode::in_memory;
  return options;
}

Database::Options on(const CrashVfs& vfs, Database::Mode mode = Database::Mode::read_write_create) {
  Database::Options options;
  options.path = path;
  options.vfs = vfs.name();
  options.mode = mode;
  return options;
}

std::string pragma(Database& database, const std::string& name) {
  Statement statement(database, "SELECT CAST(value AS TEXT) FROM (SELECT " + name +
                                    " AS value FROM pragma_" + name + ")");
  auto row = statement.bind();
  REQUIRE(row.step());
  return std::string(row.text(0));
}

std::int64_t count(Database& database) {
  Statement statement(database, "SELECT count(*) FROM holder");
  auto row = statement.bind();
  REQUIRE(row.step());
  return row.i64(0);
}

constexpr const char* holder_table =
    "CREATE TABLE holder (id INTEGER PRIMARY KEY, name ANY) STRICT";

// What the constructor throws, as text; empty if it does not.
std::string refusal(const Database::Options& options) {
  try {
    const Database database(options);
    return {};
  } catch (const StoreFailed& error) {
    return error.what();
  }
}

TEST_CASE("the writer keeps a WAL and syncs it at every commit") {
  CrashVfs vfs;
  Database database(on(vfs));
  CHECK(pragma(database, "journal_mode") == "wal");
  CHECK(pragma(database, "synchronous") == "2");
  CHECK(pragma(database, "page_size") == "8192");
  CHECK(pragma(database, "foreign_keys") == "1");
  CHECK(pragma(database, "trusted_schema") == "0");
  CHECK(pragma(database, "cell_size_check") == "1");
  CHECK(pragma(database, "temp_store") == "2");
  CHECK(pragma(database, "cache_size") == "-16384");

  database.execute(holder_table);
  Statement insert(database, "INSERT INTO holder (name) VALUES (?)");
  const std::size_t before = vfs.syncs();
  insert.run("a");
  CHECK(vfs.syncs() == before + 1);
  CHECK(vfs.unsynced_bytes() == 0);
}

TEST_CASE("every type that binds reads back as it was") {
  Database database(in_memory());
  database.execute("CREATE TABLE v (n INTEGER PRIMARY KEY, value ANY) STRICT");
  Statement insert(database, "INSERT INTO v (value) VALUES (?)");
  Statement select(database, "SELECT value FROM v WHERE n = ?");
  const auto stored = [&](const auto& value) {
    insert.run(value);
    return select.bind(database.last_insert_rowid());
  };
  const auto integer = [&](const auto& value) {
    auto row = stored(value);
    REQUIRE(row.step());
    return row.i64(0);
  };
  CHECK(integer(std::numeric_limits<std::int64_t>::max()) ==
        std::numeric_limits<std::int64_t>::max());
  CHECK(integer(-1) == -1);
  CHECK(integer(4'000'000'000U) == 4'000'000'000);
  CHECK(integer(true) == 1);
  CHECK(integer(std::optional<int>(7)) == 7);

  const auto text = [&](const auto& value) {
    auto row = stored(value);
    REQUIRE(row.step());
    return std::string(row.text(0));
  };
  CHECK(text("literal") == "literal");
  CHECK(text(std::string("with\0nul", 8)) == std::string("with\0nul", 8));
  CHECK(text(std::string_view()) == "");  // not NULL
  CHECK(text(std::optional<std::string>("held")) == "held");

  const auto blob = [&](std::string_view bytes) {
    auto row = stored(Blob{bytes});
    REQUIRE(row.step());
    return std::string(row.blob(0));
  };
  CHECK(blob(std::string_view("\0\xff", 2)) == std::string_view("\0\xff", 2));
  CHECK(blob({}) == "");

  const auto is_null = [&](const auto& value) {
    auto row = stored(value);
    REQUIRE(row.step());
    CHECK_FALSE(row.optional_i64(0).has_value());
    CHECK_FALSE(row.optional_text(0).has_value());
    return row.is_null(0);
  };
  CHECK(is_null(std::nullopt));
  CHECK(is_null(std::optional<std::string_view>()));

  auto row = stored(0.5);
  REQUIRE(row.step());
  CHECK(row.real(0) == doctest::Approx(0.5));
  CHECK_THROWS_AS(insert.run(std::nan("")), BadStatement);
}

TEST_CASE("a column read as another type than it has is a broken invariant") {
  Database database(in_memory());
  Statement select(database, "SELECT 1, 'a', NULL, x'00', 3000000000");
  auto row = select.bind();
  CHECK_THROWS_AS(row.i64(0), InvariantViolated);  // before the first step
  REQUIRE(row.step());
  CHECK(row.boolean(0));
  CHECK_THROWS_AS(row.text(0), InvariantViolated);
  CHECK_THROWS_AS(row.i64(1), InvariantViolated);
  CHECK_THROWS_AS(row.i64(2), InvariantViolated);
  CHECK_THROWS_AS(row.text(3), InvariantViolated);
  CHECK_THROWS_AS(row.i32(4), InvariantViolated);
  CHECK_THROWS_AS(row.is_null(5), InvariantViolated);
  CHECK_THROWS_AS(row.is_null(-1), InvariantViolated);
  CHECK_FALSE(row.step());
  CHECK_FALSE(row.step());
  CHECK_THROWS_AS(row.i64(0), InvariantViolated);
}

TEST_CASE("run returns how many rows changed, and a cursor copies what it was bound to") {
  Database database(in_memory());
  database.execute(holder_table);
  Statement insert(database, "INSERT INTO holder (id, name) VALUES (?, ?)");
  Statement rename(database, "UPDATE holder SET name = ? WHERE id >= ?");
  Statement named(database, "SELECT id FROM holder WHERE name = ? ORDER BY id");
  for (int id = 1; id <= 4; ++id) CHECK(insert.run(id, "a") == 1);
  CHECK(rename.run("a name longer than any small-string buffer", 3) == 2);
  CHECK(rename.run("b", 9) == 0);

  std::string ids;
  for (auto row = named.bind(std::string("a name longer than any") + " small-string buffer");
       row.step();) {
    ids += std::to_string(row.i64(0)) + " ";
  }
  CHECK(ids == "3 4 ");
}

TEST_CASE("a cursor gives its statement back however it ends") {
  Database database(in_memory());
  Statement numbers(database, "SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT ?");
  {
    auto row = numbers.bind(3);
    REQUIRE(row.step());
    CHECK_THROWS_AS(static_cast<void>(numbers.bind(4)), BadStatement);
    CHECK_THROWS_AS(numbers.run(4), BadStatement);
  }
  CHECK_THROWS_AS(
      [&] {
        auto row = numbers.bind(3);
        REQUIRE(row.step());
        throw std::runtime_error("left early");
      }(),
      std::runtime_error);
  auto row = numbers.bind(3);
  while (row.step()) {
  }
  numbers.run(4);  // `row` has no more rows, and need not be gone
}

TEST_CASE("a statement that cannot be is refused when it is made or bound") {
  Database database(in_memory());
  CHECK_THROWS_AS(Statement(database, "SELEKT 1"), BadStatement);
  CHECK_THROWS_AS(Statement(database, "SELECT 1; SELECT 2"), BadStatement);
  CHECK_THROWS_AS(Statement(database, ""), BadStatement);
  CHECK_THROWS_AS(Statement(database, "SELECT \"no such column\""), BadStatement);
  CHECK_NOTHROW(Statement(database, "SELECT 1;\n"));
  Statement two(database, "SELECT ?, ?");
  CHECK_THROWS_AS(two.run(1), BadStatement);
  CHECK_THROWS_AS(two.run(1, 2, 3), BadStatement);
}

TEST_CASE("a transaction not committed is undone") {
  Database database(in_memory());
  database.execute(holder_table);
  Statement insert(database, "INSERT INTO holder (name) VALUES (?)");
  {
    const Transaction transaction(database);
    insert.run("a");
    CHECK(database.in_transaction());
    CHECK_THROWS_AS(Transaction{database}, BadStatement);
  }
  CHECK(count(database) == 0);
  {
    Transaction transaction(database);
    insert.run("b");
    transaction.commit();
    CHECK_THROWS_AS(transaction.commit(), InvariantViolated);
  }
  CHECK(count(database) == 1);
  CHECK_FALSE(database.in_transaction());
}

TEST_CASE("a violated constraint undoes its statement, and the transaction goes on") {
  Database database(in_memory());
  database.execute(holder_table);
  Statement insert(database, "INSERT INTO holder (id, name) VALUES (?, ?), (7, 'b')");
  Transaction transaction(database);
  insert.run(1, "a");
  CHECK_THROWS_WITH_AS(insert.run(2, "c"), doctest::Contains("holder.id"), ConstraintViolated);
  transaction.commit();
  CHECK(count(database) == 2);
}

TEST_CASE("a commit that breaks a deferred foreign key is undone as a whole") {
  Database database(in_memory());
  database.execute(
      "CREATE TABLE pool (id INTEGER PRIMARY KEY) STRICT;"
      "CREATE TABLE holder (id INTEGER PRIMARY KEY, name ANY, pool INTEGER"
      "  REFERENCES pool DEFERRABLE INITIALLY DEFERRED) STRICT");
  Statement insert(database, "INSERT INTO holder (pool) VALUES (?)");
  Transaction transaction(database);
  insert.run(1);
  CHECK_THROWS_AS(transaction.commit(), ConstraintViolated);
  CHECK_FALSE(database.in_transaction());
  CHECK(count(database) == 0);
}

TEST_CASE("after another error the transaction can only be rolled back") {
  Database database(in_memory());
  database.execute(holder_table);
  Statement insert(database, "INSERT INTO holder (name) VALUES (?)");
  {
    Transaction transaction(database);
    insert.run("a");
    CHECK_THROWS_AS(database.execute("SELECT * FROM nowhere"), BadStatement);
    CHECK_THROWS_AS(insert.run("b"), BadStatement);
    CHECK_THROWS_AS(transaction.commit(), BadStatement);
  }
  CHECK(count(database) == 0);
  insert.run("c");
  CHECK(count(database) == 1);
}

TEST_CASE("a read that takes too long is interrupted, and the next one is not") {
  Database database(in_memory());
  Statement slow(database,
                 "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)"
                 "SELECT count(*) FROM n");
  int asked = 0;
  database.interrupt_when([&] { return ++asked > 3; });
  CHECK_THROWS_AS(slow.run(1'000'000'000), Interrupted);
  CHECK(asked == 4);
  database.interrupt_when({});
  CHECK_NOTHROW(slow.run(10'000));
}

TEST_CASE("a reader sees one snapshot in a transaction, and cannot write") {
  CrashVfs vfs;
  Database writer(on(vfs));
  writer.execute(holder_table);
  Statement insert(writer, "INSERT INTO holder (name) VALUES (?)");
  Database reader(on(vfs, Database::Mode::read_only));
  insert.run("a");
  {
    const Transaction snapshot(reader);
    CHECK(count(reader) == 1);
    insert.run("b");
    CHECK(count(reader) == 1);
  }
  CHECK(count(reader) == 2);
  CHECK_THROWS_AS(reader.execute("DELETE FROM holder"), BadStatement);
  CHECK_THROWS_AS(reader.execute("PRAGMA user_version = 5"), BadStatement);
  CHECK(count(reader) == 2);
}

TEST_CASE("a reader that closes last leaves the log to the writer") {
  CrashVfs vfs;
  auto writer = std::make_unique<Database>(on(vfs));
  writer->execute(holder_table);
  auto reader = std::make_unique<Database>(on(vfs, Database::Mode::read_only));
  CHECK(count(*reader) == 0);
  writer.reset();
  CHECK(vfs.copy().get(path + "-wal").has_value());
  const std::size_t syncs = vfs.syncs();
  reader.reset();
  CHECK(vfs.syncs() == syncs);
  CHECK(vfs.copy().get(path + "-wal").has_value());
  Database(on(vfs)).execute("SELECT 1");
  CHECK_FALSE(vfs.copy().get(path + "-wal").has_value());
}

TEST_CASE("the log is checkpointed every so many pages") {
  CrashVfs vfs;
  Database::Options options = on(vfs);
  options.autocheckpoint_pages_min = 20;
  Database database(options);
  database.execute(holder_table);
  Statement insert(database, "INSERT INTO holder (name) VALUES (?)");
  const std::string name(5000, 'x');
  for (int i = 0; i < 500; ++i) insert.run(name);
  const Disk disk = vfs.copy();
  CHECK(disk.get(path + "-wal")->size() < 30 * 8300);
  CHECK(disk.get(path)->size() > 300 * 8192);
}

TEST_CASE("the schema version is kept, and a newer one refused without touching the file") {
  CrashVfs vfs;
  {
    Database database(on(vfs));
    CHECK(database.user_version() == 0);
    Transaction transaction(database);
    database.set_user_version(4);
    transaction.commit();
  }
  Database::Options options = on(vfs);
  options.user_version_max = 4;
  CHECK(refusal(options) == "");
  options.user_version_max = 3;
  const std::string before = *vfs.copy().get(path);
  CHECK(refusal(options) ==
        "/permit.db has schema version 4, and this program knows versions up to 3: run the "
        "program that wrote it, or a later one");
  CHECK(*vfs.copy().get(path) == before);
}

TEST_CASE("what is not a readable database is refused, never replaced") {
  Disk disk;
  SUBCASE("another kind of file") { disk.put(path, std::string(9000, 'x')); }
  SUBCASE("a short file") { disk.put(path, "permit"); }
  SUBCASE("an empty file beside a log") {
    disk.put(path, "");
    disk.put(path + "-wal", std::string(9000, 'x'));
  }
  SUBCASE("a log without its file") { disk.put(path + "-wal", std::string(9000, 'x')); }
  SUBCASE("a damaged schema") {
    CrashVfs vfs;
    Database(on(vfs)).execute(holder_table);
    std::string bytes = *vfs.copy().get(path);
    bytes.replace(bytes.find("CREATE TABLE"), 12, "CREATE TABEL");
    disk.put(path, bytes);
  }
  SUBCASE("a page size that is none") {
    CrashVfs vfs;
    Database(on(vfs)).execute(holder_table);
    std::string bytes = *vfs.copy().get(path);
    bytes[16] = 3;
    disk.put(path, bytes);
  }
  CrashVfs vfs(disk);
  const auto file = disk.get(path);
  const auto log = disk.get(path + "-wal");
  for (const auto mode : {Database::Mode::read_write_create, Database::Mode::read_only}) {
    CHECK(refusal(on(vfs, mode)) != "");
    CHECK(vfs.copy().get(path).value_or("") == file.value_or(""));
    CHECK(vfs.copy().get(path + "-wal").value_or("") == log.value_or(""));
  }
}

TEST_CASE("a database needs a file that exists to be read, and a name to be made") {
  CrashVfs vfs;
  CHECK(refusal(on(vfs, Database::Mode::read_only)) != "");
  Database::Options options = on(vfs);
  options.path = "";
  CHECK(refusal(options) != "");
  options.path = ":memory:";
  CHECK(refusal(options) != "");
  options = on(vfs);
  options.vfs = "no-such-vfs";
  CHECK(refusal(options) != "");

  options = on(vfs);
  options.path = "file:permit.db?mode=memory";  // a name like another, not a URI
  CHECK(refusal(options) == "");
  CHECK(vfs.copy().get("./file:permit.db?mode=memory").has_value());
}

TEST_CASE("quick_check reports a damaged page") {
  Disk disk;
  {
    CrashVfs vfs;
    Database database(on(vfs));
    database.execute(holder_table);
    Statement insert(database, "INSERT INTO holder (name) VALUES (?)");
    for (int i = 0; i < 100; ++i) insert.run(std::string(1000, 'x'));
    CHECK(database.quick_check() == "ok");
    database.checkpoint();
    disk = vfs.copy();
  }
  std::string bytes = *disk.get(path);
  bytes.replace(8192 * 4 + 3, 2, "\x7f\x7f");  // the cell count of a leaf
  Disk damaged;
  damaged.put(path, bytes);
  CrashVfs vfs(damaged);
  Database database(on(vfs));
  std::string report;
  try {
    report = database.quick_check();
  } catch (const StoreFailed& error) {
    report = error.what();
  }
  CHECK(report != "ok");
}

TEST_CASE("on a full disk nothing is lost, reads go on, and writes resume with space") {
  CrashVfs vfs;
  Database database(on(vfs));
  database.execute(holder_table);
  Statement insert(database, "INSERT INTO holder (name) VALUES (?)");
  const std::string name(3000, 'x');
  insert.run(name);
  vfs.disk_limit(vfs.disk_size() + 200'000);
  int acked = 1;
  const auto fill = [&] {
    for (;; ++acked) {
      Transaction transaction(database);
      insert.run(name);
      insert.run(name);
      transaction.commit();
    }
  };
  CHECK_THROWS_AS(fill(), DiskFull);
  REQUIRE(acked > 5);
  CHECK_FALSE(database.in_transaction());
  CHECK(count(database) == acked * 2 - 1);
  CHECK_THROWS_AS(fill(), DiskFull);  // still full, and still of a known state
  CHECK(count(database) == acked * 2 - 1);

  vfs.disk_limit({});
  Transaction transaction(database);
  insert.run(name);
  transaction.commit();
  CHECK(count(database) == acked * 2);
  CHECK(database.quick_check() == "ok");

  vfs.crash([](std::uint32_t) { return 0U; }, test::CrashMode::drop_all);
  Database recovered(on(vfs));
  CHECK(count(recovered) == acked * 2);
}

TEST_CASE("a disk that fills before the commit closes the transaction to all but a rollback") {
  CrashVfs vfs;
  Database database(on(vfs));
  database.execute(holder_table);
  Statement insert(database, "INSERT INTO holder (name) VALUES (?)");
  vfs.disk_limit(vfs.disk_size() + 1'000'000);
  database.execute("PRAGMA cache_spill = ON");  // else all of it is written with the commit
  {
    Transaction transaction(database);
    insert.run("a");
    const std::string larger_than_the_cache(std::size_t{20} << 20, 'x');
    CHECK_THROWS_AS(insert.run(Blob{larger_than_the_cache}), DiskFull);
    CHECK_THROWS_AS(insert.run("would commit on its own"), BadStatement);
    CHECK_THROWS_AS(transaction.commit(), BadStatement);
  }
  CHECK(count(database) == 0);
  insert.run("b");
  CHECK(count(database) == 1);
}

TEST_CASE("after a failed sync the connection says nothing more and writes nothing more") {
  CrashVfs vfs;
  {
    Database database(on(vfs));
    database.execute(holder_table);
    Statement insert(database, "INSERT INTO holder (name) VALUES (?)");
    insert.run("acknowledged");
    vfs.fail_next_sync();
    try {
      Transaction transaction(database);
      insert.run("unknown");
      transaction.commit();
      FAIL("acknowledged what was not synced");
    } catch (const StoreFailed& error) {
      CHECK(error.code() == 1034);
      CHECK(std::string(error.what()) == "COMMIT: disk I/O error (SQLite 1034) in /permit.db");
    }
    CHECK_THROWS_AS(insert.run("refused"), StoreFailed);
    CHECK_THROWS_AS(Transaction{database}, StoreFailed);
    CHECK_THROWS_AS(Statement(database, "SELECT 1"), StoreFailed);
    CHECK_THROWS_AS(database.execute("SELECT 1"), StoreFailed);
  }
  CHECK(vfs.unsynced_bytes() > 0);  // closing did not sync it after all

  for (const auto mode : {test::CrashMode::drop_all, test::CrashMode::keep_all}) {
    CrashVfs rebooted(vfs.copy());
    rebooted.crash([](std::uint32_t) { return 0U; }, mode);
    Database recovered(on(rebooted));
    CHECK(count(recovered) == (mode == test::CrashMode::drop_all ? 1 : 2));
  }
}

TEST_CASE("a sync that fails in a checkpoint is not hidden") {
  CrashVfs vfs;
  Database::Options options = on(vfs);
  options.autocheckpoint_pages_min = 1;
  Database database(options);
  database.execute(holder_table);
  Statement insert(database, "INSERT INTO holder (name) VALUES (?)");
  insert.run("a");
  const std::size_t before = vfs.syncs();
  insert.run("b");
  const std::size_t syncs = vfs.syncs() - before;
  REQUIRE(syncs > 1);
  std::size_t sync_left = syncs;
  vfs.on_sync([&](std::size_t, test::SyncEdge edge) {
    if (edge == test::SyncEdge::before && --sync_left == 0) vfs.fail_next_sync();
  });
  CHECK_THROWS_AS(insert.run("c"), StoreFailed);
  CHECK_THROWS_AS(insert.run("d"), StoreFailed);
  vfs.on_sync({});
}

TEST_CASE("a second writer waits its turn and then fails, for now") {
  CrashVfs vfs;
  Database database(on(vfs));
  database.execute(holder_table);
  Database other(on(vfs));
  {
    const Transaction transaction(database);
    CHECK_THROWS_AS(Transaction{other}, StoreFailed);
  }
  CHECK_NOTHROW(Transaction{other});
}

}  // namespace
}  // namespace permit::store
