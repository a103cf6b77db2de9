// Takes a database of this version back to an earlier schema, to try how it is brought here again.
#pragma once

namespace permit::test {

// Whose two indexes did not have the newest permits yet.
inline constexpr const char* back_to_schema_6 = R"sql(
  ALTER TABLE runs ADD COLUMN listed INTEGER;
  ALTER TABLE holds ADD COLUMN listed INTEGER;
  ALTER TABLE server ADD COLUMN listed_run INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE server ADD COLUMN listed_fence INTEGER NOT NULL DEFAULT 0;
  DROP INDEX runs_workflow_id;
  CREATE INDEX runs_workflow_id ON runs (namespace, workflow_id, number) WHERE listed IS NOT NULL;
  DROP INDEX holds_by_slot;
  CREATE INDEX holds_by_slot ON holds (pool, slot, fence) WHERE listed IS NOT NULL;
  PRAGMA user_version = 6;
)sql";

// Its histories, which SQL cannot unpack, are lost.
inline constexpr const char* back_to_schema_4 = R"sql(
  DROP TABLE history;
  CREATE TABLE history (
    run INTEGER NOT NULL, first_event_id INTEGER NOT NULL, commit_seq INTEGER NOT NULL,
    events TEXT NOT NULL, PRIMARY KEY (run, first_event_id)
  ) STRICT, WITHOUT ROWID;
  PRAGMA user_version = 4;
)sql";

}  // namespace permit::test
