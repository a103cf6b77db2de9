-- Permit's database, version 7 (schema.cpp brings older ones to it). Its pages have checksums since
-- version 3: page_guard.h. Times are microseconds since 1970 (UTC); absent is NULL.
-- What was committed last may still be in the redo log only, from where it comes in here some
-- commits at once: redo_log.h.
-- History is the truth: a run's row repeats only what lists, uniqueness and timers need, and holds
-- what is not history (`volatile`). core/invariants checks that the two agree.

-- One row: the counters that never go back, and who owns the file.
CREATE TABLE server (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  epoch INTEGER NOT NULL,       -- +1 at each start; checked by each commit
  commit_seq INTEGER NOT NULL,  -- of the last commit in these tables; the event stream's position
  fence INTEGER NOT NULL,       -- the last one granted; (fence epoch << 40) + count
  arrival INTEGER NOT NULL,     -- the last place given in any line
  run INTEGER NOT NULL,         -- the last run number given
  time_max INTEGER NOT NULL     -- the latest time a commit was made at
) STRICT;
INSERT INTO server (id, epoch, commit_seq, fence, arrival, run, time_max)
VALUES (1, 0, 0, 0, 0, 0, 0);

CREATE TABLE runs (
  number INTEGER PRIMARY KEY,   -- by creation, never used twice
  namespace TEXT NOT NULL,
  workflow_id TEXT NOT NULL,
  run_id TEXT NOT NULL,
  status INTEGER NOT NULL,      -- WorkflowExecutionStatus; 1 is running
  workflow_type TEXT NOT NULL,
  task_queue TEXT NOT NULL,
  parent_workflow_id TEXT,
  parent_run_id TEXT,
  start_time INTEGER NOT NULL,
  close_time INTEGER,
  next_event_id INTEGER NOT NULL,
  history_bytes INTEGER NOT NULL,
  next_due INTEGER,             -- the earliest thing that time will do to it
  offered_on TEXT,              -- the queue its workflow task is offered on, until a worker has it
  volatile TEXT NOT NULL,       -- core::Volatile as JSON
  pool TEXT,                    -- from here: permits only
  slot TEXT,
  fence INTEGER,
  deadline INTEGER,
  outcome INTEGER,              -- Outcome, once closed
  cause TEXT
) STRICT;

-- The lock: a second open run of an id cannot be written. Who holds what is in it, too: the ids of
-- permits are those from `permit:` to `permit;`.
CREATE UNIQUE INDEX runs_open ON runs (namespace, workflow_id) WHERE status = 1;
CREATE UNIQUE INDEX runs_run_id ON runs (run_id);
CREATE INDEX runs_workflow_id ON runs (namespace, workflow_id, number);
CREATE INDEX runs_parent ON runs (namespace, parent_workflow_id, number)
  WHERE parent_workflow_id IS NOT NULL;
CREATE INDEX runs_due ON runs (next_due, number) WHERE next_due IS NOT NULL;
CREATE INDEX runs_offered ON runs (number) WHERE offered_on IS NOT NULL;
CREATE INDEX runs_closed ON runs (close_time) WHERE close_time IS NOT NULL;

-- What one transaction, or some that came in here at once, appended to one run: event objects in JSON, separated by commas, and packed
-- (packed_events.h). By rowid, since these rows may be long: of a tree that is WITHOUT ROWID, few
-- fill a page, and each page that leads to others has as few.
CREATE TABLE history (
  place INTEGER PRIMARY KEY,    -- run << 20 | first_event_id
  commit_seq INTEGER NOT NULL,  -- the first of them
  events BLOB NOT NULL,
  run INTEGER AS (place >> 20),
  first_event_id INTEGER AS (place & 1048575)
) STRICT;

-- The current attempt of each pending activity: core::ActivityAttempt as JSON.
CREATE TABLE activities (
  run INTEGER NOT NULL,
  scheduled_event_id INTEGER NOT NULL,
  offered_on TEXT,              -- the queue it is offered on, until a worker has it
  attempt TEXT NOT NULL,
  PRIMARY KEY (run, scheduled_event_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX activities_offered ON activities (run) WHERE offered_on IS NOT NULL;

CREATE TABLE pools (
  name TEXT PRIMARY KEY,
  settings TEXT NOT NULL        -- service::PoolSettings as JSON: slots, drains, order, rate, belief
) STRICT, WITHOUT ROWID;

-- Who waits, and for holders that are not workflows also who holds: service::Waiter as JSON.
CREATE TABLE waiters (
  id INTEGER PRIMARY KEY,       -- the place by arrival
  pool TEXT NOT NULL,
  waiter TEXT NOT NULL
) STRICT;

-- The ledger: a row a hold. Kept for the last 100 of a slot.
CREATE TABLE holds (
  fence INTEGER PRIMARY KEY,
  pool TEXT NOT NULL,
  slot TEXT NOT NULL,
  run INTEGER NOT NULL,
  run_id TEXT NOT NULL,
  holder TEXT NOT NULL,         -- workflow id of the parent, or the name the holder gave
  holder_run_id TEXT,
  reason TEXT NOT NULL,
  granted_at INTEGER NOT NULL,
  closed_at INTEGER,
  outcome INTEGER,
  cause TEXT,
  requested_at INTEGER,         -- when its holder joined the line; absent: granted at once
  late_release_at INTEGER       -- when its holder gave back what it had lost before
) STRICT;
CREATE INDEX holds_by_slot ON holds (pool, slot, fence);

-- And counts that are never forgotten. `grants` has outcome 0.
CREATE TABLE hold_counts (
  pool TEXT NOT NULL,
  slot TEXT NOT NULL,
  outcome INTEGER NOT NULL,
  cause TEXT NOT NULL,
  holds INTEGER NOT NULL,
  PRIMARY KEY (pool, slot, outcome, cause)
) STRICT, WITHOUT ROWID;

-- Who may ask what. The secret itself is nowhere: it is 256 random bits, so its hash tells nothing.
CREATE TABLE api_keys (
  id INTEGER PRIMARY KEY,       -- never used twice
  name TEXT NOT NULL,           -- one at a time has it, of those that are not revoked
  digest BLOB NOT NULL UNIQUE,  -- SHA-256 of the secret
  role INTEGER NOT NULL,        -- Role
  namespace TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  created_by TEXT NOT NULL,
  expires_at INTEGER,           -- absent: never
  revoked_at INTEGER,
  revoked_by TEXT NOT NULL
) STRICT;
