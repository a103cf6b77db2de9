// Takes a database of this version back to schema version 4, to try how it is brought here again.
// Its histories, which SQL cannot unpack, are lost.
#pragma once

namespace permit::test {

inline constexpr const char* back_to_schema_4 = R"sql(
  DROP TABLE history;
  CREATE TABLE history (
    run INTEGER NOT NULL, first_event_id INTEGER NOT NULL, commit_seq INTEGER NOT NULL,
    events TEXT NOT NULL, PRIMARY KEY (run, first_event_id)
  ) STRICT, WITHOUT ROWID;
  DROP INDEX runs_workflow_id;
  DROP INDEX holds_by_slot;
  ALTER TABLE runs DROP COLUMN listed;
  ALTER TABLE holds DROP COLUMN listed;
  ALTER TABLE server DROP COLUMN listed_run;
  ALTER TABLE server DROP COLUMN listed_fence;
  CREATE INDEX runs_workflow_id ON runs (namespace, workflow_id, number);
  CREATE INDEX holds_by_slot ON holds (pool, slot, fence);
  PRAGMA user_version = 4;
)sql";

}  // namespace permit::test
