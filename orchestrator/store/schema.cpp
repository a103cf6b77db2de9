#include "orchestrator/store/schema.h"

#include <string>
#include <string_view>

#include "orchestrator/protocol/ensure.h"
#include "orchestrator/store/packed_events.h"
#include "orchestrator/store/schema_sql.h"

namespace permit::store {

namespace {

// As the schema has it: one text makes the table, old file or new.
void add_table(Database& database, std::string_view name) {
  const std::string_view schema = schema_sql;
  const std::size_t begin = schema.find("CREATE TABLE " + std::string(name));
  ENSURE(begin != std::string_view::npos);
  const std::size_t end = schema.find(") STRICT;", begin) + std::string_view(") STRICT;").size();
  database.execute(std::string(schema.substr(begin, end - begin)).c_str());
}

// It was ordered by run and event before it was by place: the same order.
void pack_histories(Database& database, bool has_places) {
  database.execute("ALTER TABLE history RENAME TO history_before");
  add_table(database, "history");
  {
    EventPacker packer;
    Statement rows(database, std::string("SELECT run << 20 | first_event_id, commit_seq, events "
                                         "FROM history_before ORDER BY ") +
                                 (has_places ? "place" : "run, first_event_id"));
    Statement append(database, "INSERT INTO history (place, commit_seq, events) VALUES (?, ?, ?)");
    for (auto row = rows.bind(); row.step();) {
      append.run(row.i64(0), row.i64(1), Blob{packer.pack(row.text(2))});
    }
  }
  database.execute("DROP TABLE history_before");
}

// Versions 5 and 6 filled two indexes late, by a column that said which rows they had.
void list_at_once(Database& database) {
  database.execute(
      "DROP INDEX runs_workflow_id;"
      "DROP INDEX holds_by_slot;"
      "ALTER TABLE server DROP COLUMN listed_run;"
      "ALTER TABLE server DROP COLUMN listed_fence;"
      "ALTER TABLE runs DROP COLUMN listed;"
      "ALTER TABLE holds DROP COLUMN listed;"
      "CREATE INDEX runs_workflow_id ON runs (namespace, workflow_id, number);"
      "CREATE INDEX holds_by_slot ON holds (pool, slot, fence)");
}

void change_from(Database& database, int version) {
  if (version < 2) {
    database.execute("ALTER TABLE holds ADD COLUMN requested_at INTEGER");
    database.execute("ALTER TABLE holds ADD COLUMN late_release_at INTEGER");
  }
  if (version < 3) add_table(database, "api_keys");
  if (version < 4) database.execute("DROP INDEX IF EXISTS runs_permits_open");
  if (version < 6) pack_histories(database, version == 5);
  if (version == 5 || version == 6) list_at_once(database);
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
