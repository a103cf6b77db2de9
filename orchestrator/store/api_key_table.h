// The rows of API keys. Belongs to the engine thread, like the Store that has it; writes happen
// inside its batch.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "orchestrator/protocol/api_keys.h"
#include "orchestrator/store/database.h"

namespace permit::store {

struct ApiKeyRow {
  std::int64_t id = 0;
  std::string name;
  std::string digest;  // SHA-256 of the secret, which is nowhere
  Role role = Role::unspecified;
  std::string namespace_;
  Time created_at{};
  std::string created_by;
  Time expires_at = never;
  Time revoked_at{};
  std::string revoked_by;
};

class ApiKeyTable {
 public:
  explicit ApiKeyTable(Database& database) : database_(database) {}

  std::vector<ApiKeyRow> all();  // by id
  void put(const ApiKeyRow& row);
  void remove(std::int64_t id);

 private:
  Database& database_;
  Statement all_{database_,
                 "SELECT id, name, digest, role, namespace, created_at, created_by, expires_at, "
                 "revoked_at, revoked_by FROM api_keys ORDER BY id"};
  Statement put_{database_,
                 "INSERT OR REPLACE INTO api_keys VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"};
  Statement remove_{database_, "DELETE FROM api_keys WHERE id = ?"};
};

}  // namespace permit::store
