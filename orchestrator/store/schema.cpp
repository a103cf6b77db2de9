#include "orchestrator/store/schema.h"

#include <string>
#include <string_view>

#include "orchestrator/protocol/ensure.h"
#include "orchestrator/store/schema_sql.h"

namespace permit::store {

namespace {

// As the schema has it: one text makes the table, old file or new.
void add_api_keys(Database& database) {
  const std::string_view schema = schema_sql;
  const std::size_t begin = schema.find("CREATE TABLE api_keys");
  ENSURE(begin != std::string_view::npos);
  const std::size_t end = schema.find(") STRICT;", begin) + std::string_view(") STRICT;").size();
  database.execute(std::string(schema.substr(begin, end - begin)).c_str());
}

void change_from(Database& database, int version) {
  if (version < 2) {
    database.execute("ALTER TABLE holds ADD COLUMN requested_at INTEGER");
    database.execute("ALTER TABLE holds ADD COLUMN late_release_at INTEGER");
  }
  if (version < 3) add_api_keys(database);
  if (version < 4) database.execute("DROP INDEX IF EXISTS runs_permits_open");
}

}  // namespace

void migrate(Database& database, bool is_file) {
  const int version = database.user_version();
  if (version == schema_version) return;
  if (is_file && version > 0 && !database.is_sealed()) database.rebuild_sealed();
  Transaction migration(database);
  if (version == 0) {
    database.execute(schema_sql);
  } else {
    change_from(database, version);
  }
  database.set_user_version(schema_version);
  migration.commit();
}

}  // namespace permit::store
