#include "orchestrator/store/page_guard.h"

#include <doctest/doctest.h>
#include <sqlite3.h>

#include <array>
#include <filesystem>
#include <optional>

#include "orchestrator/store/database.h"
#include "tests/support/crash_vfs.h"
#include "tests/support/plain_sqlite.h"
#include "tests/support/temporary_directory.h"

namespace permit::store {
namespace {

using test::CrashVfs;
using test::Disk;

const std::string path = "/permit.db";
constexpr std::size_t page_bytes = 8192;

Database::Options on(const CrashVfs& vfs, Database::Mode mode = Database::Mode::read_write_create) {
  Database::Options options;
  options.path = path;
  options.vfs = vfs.name();
  options.mode = mode;
  return options;
}

void fill(Database& database, int rows) {
  database.execute("CREATE TABLE note (id INTEGER PRIMARY KEY, text TEXT NOT NULL) STRICT");
  Statement insert(database, "INSERT INTO note (text) VALUES (?)");
  for (int i = 0; i < rows; ++i) insert.run(std::string(900, static_cast<char>('a' + i % 26)));
}

std::string all_text(Database& database) {
  Statement select(database, "SELECT text FROM note ORDER BY id");
  std::string text;
  for (auto row = select.bind(); row.step();) text += row.text(0);
  return text;
}

// A database of some pages whose log is empty.
Disk closed_database(int rows = 60) {
  CrashVfs vfs;
  {
    Database database(on(vfs));
    fill(database, rows);
  }
  REQUIRE(vfs.copy().get(path + "-wal").value_or("").empty());
  return vfs.copy();
}

std::string with_flip(std::string bytes, std::size_t bit) {
  bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << (bit % 8)));
  return bytes;
}

// What is read of a file with these bytes; "damaged" if that is found, "another database" for a
// header that says nothing of seals any more, which the store refuses.
std::string read_back(std::string bytes, std::optional<std::string> log = {}) {
  Disk disk;
  disk.put(path, std::move(bytes));
  if (log) disk.put(path + "-wal", std::move(*log));
  CrashVfs vfs(disk);
  try {
    Database database(on(vfs, Database::Mode::read_only));
    if (!database.is_sealed()) return "unsealed";
    return all_text(database);
  } catch (const Damaged& damaged) {
    CHECK(std::string(damaged.what()).find("permit server check") != std::string::npos);
    return "damaged";
  } catch (const StoreFailed&) {
    return "refused";
  }
}

TEST_CASE("a seal knows the page's bytes and its number") {
  std::array<unsigned char, 512> page{};
  for (std::size_t i = 0; i < page.size(); ++i) page[i] = static_cast<unsigned char>(i * 7);
  const std::uint64_t seal = seal_of(page.data(), page.size(), 5);
  CHECK(seal != 0);
  CHECK(seal != seal_of(page.data(), page.size(), 6));
  for (std::size_t bit = 0; bit < (page.size() - seal_bytes) * 8; ++bit) {
    page[bit / 8] ^= static_cast<unsigned char>(1U << (bit % 8));
    CHECK(seal_of(page.data(), page.size(), 5) != seal);
    page[bit / 8] ^= static_cast<unsigned char>(1U << (bit % 8));
  }
  CHECK(seal_of(page.data(), page.size(), 5) == seal);
}

TEST_CASE("every page of a new file is sealed, and a check of all of them finds nothing") {
  const Disk disk = closed_database();
  const std::string bytes = *disk.get(path);
  CHECK(bytes[20] == seal_bytes);
  CHECK(bytes.size() > 5 * page_bytes);
  CrashVfs vfs(disk);
  Database database(on(vfs));
  CHECK(database.is_sealed());
  const PageGuard::Scan scan = database.check_pages([] { return false; });
  CHECK(scan.complete);
  CHECK(scan.pages == static_cast<std::int64_t>(bytes.size() / page_bytes));
  CHECK(scan.unsealed == 0);
  CHECK_FALSE(database.check_pages([] { return true; }).complete);
}

TEST_CASE("a flipped bit is found, wherever it is") {
  const std::string bytes = *closed_database().get(path);
  const std::string sound = read_back(bytes);
  REQUIRE(sound.size() == 60 * 900);
  std::size_t found = 0;
  for (std::size_t bit = 3; bit < bytes.size() * 8; bit += 997) {
    const std::string read = read_back(with_flip(bytes, bit));
    const bool same = read == sound;
    CHECK_MESSAGE((same || read == "damaged" || read == "refused" || read == "unsealed"),
                  "bit " << bit << " of page " << bit / 8 / page_bytes + 1);
    found += same ? 0 : 1;
  }
  CHECK(found > bytes.size() * 8 / 997 / 2);  // the rest is in pages that nothing is read from
}

TEST_CASE("a check of all pages finds a flip in each of them") {
  const std::string bytes = *closed_database().get(path);
  for (std::size_t page = 0; page < bytes.size() / page_bytes; ++page) {
    Disk disk;
    disk.put(path, with_flip(bytes, page * page_bytes * 8 + 33'333));
    CrashVfs vfs(disk);
    std::string said;
    try {
      Database database(on(vfs));
      database.check_pages([] { return false; });
    } catch (const Damaged& damaged) {
      said = damaged.what();
    }
    CHECK_MESSAGE(said.find("page " + std::to_string(page + 1) + " of ") != std::string::npos,
                  said);
  }
}

TEST_CASE("a last page that is cut short is found, by who reads it and by a check of all") {
  const std::string bytes = *closed_database().get(path);
  for (const std::size_t missing : {std::size_t{1}, std::size_t{600}, page_bytes - 1}) {
    const std::string cut = bytes.substr(0, bytes.size() - missing);
    CHECK(read_back(cut) == "damaged");
    Disk disk;
    disk.put(path, cut);
    CrashVfs vfs(disk);
    Database database(on(vfs));
    CHECK_THROWS_AS(database.check_pages([] { return false; }), Damaged);
    CHECK(vfs.copy().get(path) == cut);
  }
}

TEST_CASE("a page in the place of another is found") {
  std::string bytes = *closed_database().get(path);
  bytes.replace(3 * page_bytes, page_bytes, bytes.substr(4 * page_bytes, page_bytes));
  CHECK(read_back(bytes) == "damaged");
}

TEST_CASE("a flip in the log is found while the server runs on it") {
  CrashVfs vfs;
  Database::Options options = on(vfs);
  options.autocheckpoint_pages_min = 0;
  Disk disk;
  std::string sound;
  {
    Database database(options);
    fill(database, 60);
    sound = all_text(database);
    disk = vfs.copy();
    database.leave_as_it_is();
  }
  const std::string file = *disk.get(path);
  const std::string log = *disk.get(path + "-wal");
  REQUIRE(log.size() > 10 * page_bytes);
  CHECK(read_back(file, log) == sound);

  // Under a connection that has recovered the log already: no one but the guard looks again.
  CrashVfs in_use(disk);
  Database writer(on(in_use));
  Database reader(on(in_use, Database::Mode::read_only));
  for (std::size_t at = 40'000; at < log.size(); at += 8216) {
    const char changed = static_cast<char>(log[at] ^ 4);
    test::overwrite(in_use, path + "-wal", at, {&changed, 1});
  }
  CHECK_THROWS_AS(all_text(reader), Damaged);
  CHECK_THROWS_AS(writer.checkpoint(), StoreFailed);  // which would have sealed what is wrong
}

TEST_CASE("a flip in the log is found by the connection that wrote it") {
  CrashVfs vfs;
  Database::Options options = on(vfs);
  options.autocheckpoint_pages_min = 0;
  Database database(options);
  fill(database, 60);
  const std::string log = *vfs.copy().get(path + "-wal");
  for (std::size_t at = 4'000; at < log.size(); at += 8216) {
    const char changed = static_cast<char>(log[at] ^ 4);
    test::overwrite(vfs, path + "-wal", at, {&changed, 1});
  }
  CHECK_THROWS_AS(database.checkpoint(), StoreFailed);
}

TEST_CASE("the frames of a commit go to the log in few writes") {
  CrashVfs vfs;
  Database::Options options = on(vfs);
  options.autocheckpoint_pages_min = 0;
  Database database(options);
  database.execute("CREATE TABLE note (id INTEGER PRIMARY KEY, text TEXT NOT NULL) STRICT");
  std::size_t writes = 0;
  std::size_t bytes = 0;
  vfs.on_sync([&](std::size_t, test::SyncEdge edge) {
    if (edge != test::SyncEdge::before) return;
    const Disk disk = vfs.copy();
    writes += disk.unsynced_changes();
    bytes += disk.unsynced_bytes();
  });
  {
    Transaction transaction(database);
    Statement insert(database, "INSERT INTO note (text) VALUES (?)");
    for (int i = 0; i < 300; ++i) insert.run(std::string(900, 'x'));
    transaction.commit();
  }
  CHECK(bytes > 250'000);
  CHECK(writes <= bytes / 100'000 + 1);
  vfs.on_sync({});
}

TEST_CASE("what another program brings from the log into the file has no seal and is no damage") {
  CrashVfs vfs;
  Database::Options options = on(vfs);
  options.autocheckpoint_pages_min = 0;
  Disk disk;
  {
    Database database(options);
    fill(database, 60);
    disk = vfs.copy();
    database.leave_as_it_is();
  }
  // As SQLite's own checkpoint writes it: the page as it is in the log.
  std::string bytes = *disk.get(path);
  const std::string log = *disk.get(path + "-wal");
  for (std::size_t at = 32; at + 24 + page_bytes <= log.size(); at += 24 + page_bytes) {
    const auto* head = reinterpret_cast<const unsigned char*>(log.data() + at);
    const std::size_t page = (std::size_t{head[2]} << 8U) | head[3];
    bytes.resize(std::max(bytes.size(), page * page_bytes));
    bytes.replace((page - 1) * page_bytes, page_bytes, log.substr(at + 24, page_bytes));
  }
  CHECK(read_back(bytes).size() == 60 * 900);
  Disk by_others;
  by_others.put(path, bytes);
  CrashVfs opened(by_others);
  Database database(on(opened));
  const PageGuard::Scan scan = database.check_pages([] { return false; });
  CHECK(scan.complete);
  CHECK(scan.unsealed > 5);
  // Now they have one.
  CHECK(database.check_pages([] { return false; }).unsealed == 0);
  const std::string sealed = *opened.copy().get(path);
  CHECK(read_back(sealed) == read_back(bytes));
  CHECK(read_back(with_flip(sealed, (sealed.size() - page_bytes / 2) * 8)) == "damaged");
}

TEST_CASE("once all pages have seals, one that has lost its own is damaged") {
  const Disk disk = closed_database();
  const std::string bytes = *disk.get(path);
  std::string with_hole = bytes;  // the sector that the seal is in, too
  with_hole.replace(4 * page_bytes - 512, 512, std::string(512, '\0'));
  Disk holed;
  holed.put(path, with_hole);
  CrashVfs vfs(holed);
  const auto refuse = [] { throw std::runtime_error("not sound"); };
  {
    Database database(on(vfs));
    CHECK_THROWS_AS(database.check_pages([] { return false; }, refuse), std::runtime_error);
    CHECK(*vfs.copy().get(path) == with_hole);  // it was not made to look right
  }
  Database::Options options = on(vfs, Database::Mode::read_only);
  CHECK_NOTHROW(all_text(*std::make_unique<Database>(options)));
  options.expects_seals = true;
  Database reader(options);
  CHECK_THROWS_AS(all_text(reader), Damaged);

  CrashVfs whole(disk);
  Database database(on(whole));
  CHECK(database.check_pages([] { return false; }, refuse).complete);  // nothing to judge
}

TEST_CASE("the page at the first gigabyte, which SQLite leaves out, is not missed") {
  const test::TemporaryDirectory directory;
  Database::Options options;
  options.path = directory.file("permit.db");
  {
    Database database(options);
    fill(database, 60);
  }
  const std::uintmax_t used = std::filesystem::file_size(options.path);
  constexpr std::uintmax_t all = (std::uintmax_t{1} << 30U) + 2 * page_bytes;
  std::filesystem::resize_file(options.path, all);

  PageGuard guard("");
  sqlite3* connection = nullptr;
  REQUIRE(sqlite3_open_v2(options.path.c_str(), &connection, SQLITE_OPEN_READONLY,
                          guard.name().c_str()) == SQLITE_OK);
  sqlite3_file* file = nullptr;
  sqlite3_file_control(connection, "main", SQLITE_FCNTL_FILE_POINTER, &file);
  const PageGuard::Scan scan = guard.scan(file, false, [] { return false; });
  sqlite3_close(connection);
  CHECK(scan.complete);
  CHECK(scan.pages == static_cast<std::int64_t>(all / page_bytes));
  CHECK(scan.unsealed == 0);
  CHECK(scan.empty == static_cast<std::int64_t>((all - used) / page_bytes) - 1);
}

TEST_CASE("a file without room for seals is rebuilt with it, and is the same") {
  Disk disk;
  std::string sound;
  {
    CrashVfs vfs;
    Database database(on(vfs));
    database.execute("PRAGMA user_version = 2");
    fill(database, 60);
    sound = all_text(database);
    disk = vfs.copy();
  }
  CrashVfs vfs(test::without_seals(disk, path));
  {
    Database database(on(vfs));
    REQUIRE_FALSE(database.is_sealed());
    CHECK(all_text(database) == sound);
    CHECK(database.check_pages([] { return false; }).pages == 0);
    database.rebuild_sealed();
    CHECK(database.is_sealed());
    CHECK(all_text(database) == sound);
    CHECK(database.user_version() == 2);
    CHECK(database.check_pages([] { return false; }).complete);
  }
  CHECK(read_back(*vfs.copy().get(path)) == sound);
}

TEST_CASE("a copy is of one moment, whatever is written meanwhile, and sealed") {
  CrashVfs vfs;
  Database database(on(vfs));
  fill(database, 1500);
  const std::string sound = all_text(database);
  Statement insert(database, "INSERT INTO note (text) VALUES (?)");
  int steps = 0;
  {
    Database reader(on(vfs, Database::Mode::read_only));
    const Transaction snapshot(reader);
    reader.copy_to("/copy.db", [&](int left, int all) {
      CHECK(left <= all);
      ++steps;
      insert.run(std::string(900, 'z'));
    });
  }
  CHECK(steps > 1);
  CHECK(read_back(*vfs.copy().get("/copy.db")) == sound);
  Disk disk;
  disk.put(path, *vfs.copy().get("/copy.db"));
  CrashVfs copied(disk);
  Database copy(on(copied));
  const PageGuard::Scan scan = copy.check_pages([] { return false; });
  CHECK(scan.complete);
  CHECK(scan.unsealed == 0);
}

}  // namespace
}  // namespace permit::store
