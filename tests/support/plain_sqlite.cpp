#include "tests/support/plain_sqlite.h"

#include <sqlite3.h>

#include <memory>
#include <stdexcept>
#include <vector>

namespace permit::test {

namespace {

using Connection = std::unique_ptr<sqlite3, int (*)(sqlite3*)>;

void execute(const Connection& connection, const std::string& sql) {
  if (sqlite3_exec(connection.get(), sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK) return;
  throw std::runtime_error(sql + ": " + sqlite3_errmsg(connection.get()));
}

std::vector<std::string> first_column(const Connection& connection, const std::string& sql) {
  std::vector<std::string> values;
  const auto take = [](void* to, int, char** row, char**) {
    static_cast<std::vector<std::string>*>(to)->emplace_back(row[0]);
    return 0;
  };
  if (sqlite3_exec(connection.get(), sql.c_str(), take, &values, nullptr) != SQLITE_OK) {
    throw std::runtime_error(sql + ": " + sqlite3_errmsg(connection.get()));
  }
  return values;
}

}  // namespace

Disk without_seals(const Disk& disk, const std::string& path) {
  const CrashVfs vfs(disk);
  const std::string plain = path + ".plain";
  {
    sqlite3* raw = nullptr;
    sqlite3_open_v2(plain.c_str(), &raw, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE,
                    vfs.name().c_str());
    const Connection connection(raw, sqlite3_close);
    execute(connection, "PRAGMA page_size = 8192; PRAGMA journal_mode = WAL; ATTACH '" + path +
                            "' AS old; BEGIN");
    for (const std::string& sql :
         first_column(connection,
                      "SELECT sql FROM old.sqlite_schema WHERE sql IS NOT NULL "
                      "ORDER BY type DESC")) {
      execute(connection, sql);
    }
    for (const std::string& table :
         first_column(connection, "SELECT name FROM old.sqlite_schema WHERE type = 'table'")) {
      execute(connection, "INSERT INTO main." + table + " SELECT * FROM old." + table);
    }
    const auto version = first_column(connection, "PRAGMA old.user_version");
    execute(connection, "PRAGMA main.user_version = " + version.at(0) + "; COMMIT");
  }
  Disk result;
  result.put(path, vfs.copy().get(plain).value());
  return result;
}

void overwrite(const CrashVfs& vfs, const std::string& path, std::size_t at,
               std::string_view bytes) {
  sqlite3_vfs* below = sqlite3_vfs_find(vfs.name().c_str());
  const std::unique_ptr<char[]> space(new char[static_cast<std::size_t>(below->szOsFile)]);
  auto* file = reinterpret_cast<sqlite3_file*>(space.get());
  constexpr int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_WAL;
  if (below->xOpen(below, path.c_str(), file, flags, nullptr) != SQLITE_OK) {
    throw std::runtime_error("cannot open " + path);
  }
  file->pMethods->xWrite(file, bytes.data(), static_cast<int>(bytes.size()),
                         static_cast<sqlite3_int64>(at));
  file->pMethods->xClose(file);
}

}  // namespace permit::test
