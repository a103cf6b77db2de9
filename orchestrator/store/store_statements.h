// The statements by which Store reads; RowWriter has those that write. Private to store.cpp.
#pragma once

#include "orchestrator/store/history_table.h"
#include "orchestrator/store/row_values.h"
#include "orchestrator/store/store.h"

namespace permit::store {

// Of runs_open. A permit is in the namespace of its holder, and there is only this one.
#define OPEN_PERMITS                                                                               \
  "namespace = 'default' AND workflow_id >= 'permit:' AND workflow_id < 'permit;' AND status = 1 " \
  "AND pool IS NOT NULL"

struct Store::Statements {
  explicit Statements(Database& db) : database(db) {}
  Database& database;

  Statement run{database, "SELECT " RUN_COLUMNS " FROM runs WHERE number = ?"};
  HistoryTable history{database};
  Statement activities{database,
                       "SELECT scheduled_event_id, offered_on, attempt FROM activities "
                       "WHERE run = ?"};
  Statement open_run{database,
                     "SELECT number FROM runs "
                     "WHERE namespace = ? AND workflow_id = ? AND status = 1"};
  Statement recent_runs{database,
                        "SELECT number FROM runs INDEXED BY runs_workflow_id "
                        "WHERE namespace = ? AND workflow_id = ? ORDER BY number DESC LIMIT ?"};
  Statement late_release_of{database, "SELECT late_release_at FROM holds WHERE fence = ?"};
  Statement run_by_id{database, "SELECT number FROM runs WHERE run_id = ?"};
  Statement due{database,
                "SELECT next_due, number FROM runs INDEXED BY runs_due WHERE next_due IS NOT NULL "
                "AND (next_due, number) >= (?, ?) AND next_due <= ? ORDER BY next_due, number"};
  Statement offered_workflow_tasks{database,
                                   "SELECT number, offered_on FROM runs INDEXED BY runs_offered "
                                   "WHERE offered_on IS NOT NULL ORDER BY number"};
  Statement offered_activities{database,
                               "SELECT run, scheduled_event_id, offered_on FROM activities "
                               "WHERE offered_on IS NOT NULL ORDER BY run, scheduled_event_id"};
  Statement pools{database, "SELECT name, settings FROM pools"};
  Statement waiters{database, "SELECT id, pool, waiter FROM waiters ORDER BY id"};
  Statement api_keys{database,
                     "SELECT id, name, digest, role, namespace, created_at, created_by, "
                     "expires_at, revoked_at, revoked_by FROM api_keys ORDER BY id"};
  Statement open_permits{database,
                         "SELECT number FROM runs INDEXED BY runs_open WHERE " OPEN_PERMITS};
  Statement open_permits_by_pool{database,
                                 "SELECT pool, number, start_time FROM runs "
                                 "INDEXED BY runs_open WHERE " OPEN_PERMITS};
  Statement status{database, "SELECT status, next_due FROM runs WHERE number = ?"};
  Statement due_run_count{database,
                          "SELECT count(*) FROM runs INDEXED BY runs_due "
                          "WHERE next_due IS NOT NULL"};
  Statement open_run_count{database,
                           "SELECT count(*) FROM runs INDEXED BY runs_open WHERE status = 1"};

  Statement memory_bytes{database,
                         "SELECT page_count * page_size "
                         "FROM pragma_page_count, pragma_page_size"};
  Statement hold_counts{database,
                        "SELECT outcome, cause, sum(holds) FROM hold_counts WHERE pool = ? "
                        "GROUP BY outcome, cause ORDER BY outcome, cause"};
  Statement all_hold_counts{database,
                            "SELECT pool, outcome, cause, sum(holds) FROM hold_counts "
                            "GROUP BY pool, outcome, cause ORDER BY pool, outcome, cause"};

  Statement closed_before{database,
                          "SELECT number FROM runs WHERE close_time IS NOT NULL "
                          "AND close_time < ? ORDER BY close_time"};
};

#undef OPEN_PERMITS

}  // namespace permit::store
