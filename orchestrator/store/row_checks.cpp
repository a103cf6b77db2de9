#include "orchestrator/store/row_checks.h"

#include <sqlite3.h>

#include <array>
#include <utility>

#include "orchestrator/protocol/ensure.h"

namespace permit::store {

namespace {

// Selects the rows that fail, each as a text that names it.
struct RowCheck {
  const char* table;
  const char* what;
  const char* sql;
};

// NOT INDEXED where an index would find only what it has itself.
constexpr std::array<RowCheck, row_check_count> checks = {{
    {"server", "the counters need exactly one row",
     "SELECT 'all' WHERE (SELECT count(*) FROM server) <> 1"},
    {"server", "a counter is behind what it has counted",
     "SELECT 'run' FROM server WHERE run < (SELECT coalesce(max(number), 0) FROM runs) UNION ALL "
     "SELECT 'fence' FROM server WHERE fence < (SELECT coalesce(max(fence), 0) FROM holds) UNION "
     "ALL SELECT 'fence' FROM server WHERE fence < (SELECT coalesce(max(fence), 0) FROM runs NOT "
     "INDEXED) UNION ALL "
     "SELECT 'arrival' FROM server WHERE arrival < (SELECT coalesce(max(id), 0) FROM waiters) "
     "UNION ALL SELECT 'commit_seq' FROM server "
     "WHERE commit_seq < (SELECT coalesce(max(commit_seq), 0) FROM history) UNION ALL "
     "SELECT 'time_max' FROM server "
     "WHERE time_max < (SELECT coalesce(max(start_time), 0) FROM runs NOT INDEXED)"},
    {"runs", "another open run has the same workflow id",
     "SELECT 'run ' || max(number) FROM runs NOT INDEXED WHERE status = 1 "
     "GROUP BY namespace, workflow_id HAVING count(*) > 1"},
    {"runs", "another run has the same run id",
     "SELECT 'run ' || max(number) FROM runs NOT INDEXED GROUP BY run_id HAVING count(*) > 1"},
    {"runs", "an open run has a close time, or a closed one has none",
     "SELECT 'run ' || number FROM runs NOT INDEXED "
     "WHERE (status = 1) <> (close_time IS NULL)"},
    {"runs", "two open permits have the same slot",
     "SELECT 'run ' || max(number) FROM runs NOT INDEXED WHERE status = 1 AND pool IS NOT NULL "
     "GROUP BY pool, slot HAVING count(*) > 1"},
    {"runs", "an open permit has no open hold in the ledger",
     "SELECT 'run ' || number FROM runs NOT INDEXED WHERE status = 1 AND pool IS NOT NULL "
     "AND NOT EXISTS (SELECT 1 FROM holds WHERE holds.fence = runs.fence AND holds.run = number "
     "AND holds.pool = runs.pool AND holds.slot = runs.slot AND holds.outcome IS NULL)"},
    {"history", "events of a run that there is not",
     "SELECT DISTINCT 'run ' || run FROM history WHERE run NOT IN (SELECT number FROM runs)"},
    {"history", "a later event is of an earlier commit",
     "SELECT 'run ' || run || ', event ' || first_event_id FROM (SELECT run, first_event_id, "
     "commit_seq, lag(commit_seq, 1, 0) OVER (PARTITION BY run ORDER BY first_event_id) AS before "
     "FROM history) WHERE commit_seq < before"},
    {"activities", "an activity of a run that is not open",
     "SELECT 'run ' || run || ', event ' || scheduled_event_id FROM activities "
     "WHERE run NOT IN (SELECT number FROM runs NOT INDEXED WHERE status = 1)"},
    {"holds", "a hold has an outcome and no end, or an end and no outcome",
     "SELECT 'fence ' || fence FROM holds WHERE (closed_at IS NULL) <> (outcome IS NULL)"},
    {"holds", "two open holds have the same slot",
     "SELECT 'fence ' || max(fence) FROM holds WHERE outcome IS NULL "
     "GROUP BY pool, slot HAVING count(*) > 1"},
    {"holds", "an open hold without its open permit",
     "SELECT 'fence ' || fence FROM holds WHERE outcome IS NULL AND NOT EXISTS "
     "(SELECT 1 FROM runs WHERE number = holds.run AND status = 1 AND runs.fence = holds.fence "
     "AND runs.pool = holds.pool AND runs.slot = holds.slot AND runs.run_id = holds.run_id)"},
    {"holds", "it was granted before the hold whose fence is lower",
     "SELECT 'fence ' || fence FROM (SELECT fence, granted_at, lag(granted_at, 1, 0) OVER "
     "(ORDER BY fence) AS before FROM holds) WHERE granted_at < before"},
    {"holds", "it begins before the slot's last hold has ended",
     "SELECT 'fence ' || fence FROM (SELECT fence, granted_at, lag(closed_at, 1, 0) OVER "
     "(PARTITION BY pool, slot ORDER BY fence) AS freed FROM holds) "
     "WHERE freed IS NULL OR granted_at < freed"},
    {"hold_counts", "what began is not what ended and what is held",
     "SELECT pool || ':' || slot FROM hold_counts AS counts GROUP BY pool, slot HAVING "
     "sum(CASE WHEN outcome = 0 THEN holds ELSE -holds END) <> (SELECT count(*) FROM holds WHERE "
     "holds.pool = counts.pool AND holds.slot = counts.slot AND holds.outcome IS NULL)"},
    {"hold_counts", "the ledger has more holds than were counted",
     "SELECT holds.pool || ':' || holds.slot FROM holds LEFT JOIN hold_counts AS counts "
     "ON counts.pool = holds.pool AND counts.slot = holds.slot "
     "AND counts.outcome = coalesce(holds.outcome, -1) AND counts.cause = coalesce(holds.cause, "
     "'') "
     "WHERE holds.outcome IS NOT NULL "
     "GROUP BY holds.pool, holds.slot, holds.outcome, holds.cause "
     "HAVING count(*) > coalesce(max(counts.holds), 0)"},
    {"waiters", "it waits for a pool that there is not, or its place was given twice",
     "SELECT 'place ' || id FROM waiters WHERE pool = '' OR id < 1"},
}};

}  // namespace

void check_rows(Database& database, int check, const std::function<void(Fault)>& note) {
  const RowCheck& wanted = checks.at(static_cast<std::size_t>(check));
  Statement statement(database, wanted.sql);
  for (auto row = statement.bind(); row.step();) {
    note({wanted.table, std::string(row.text(0)), wanted.what});
  }
}

std::int64_t count_runs(Database& database) {
  Statement statement(database, "SELECT count(*) FROM runs");
  auto row = statement.bind();
  ENSURE(row.step());
  return row.i64(0);
}

void for_each_run(Database& database, const std::function<void(RunNumber)>& visit) {
  Statement next(database,
                 "SELECT number FROM runs NOT INDEXED WHERE number > ? ORDER BY number LIMIT 1");
  std::int64_t number = 0;
  const auto advance = [&] {
    auto row = next.bind(number);
    if (!row.step()) return false;
    const std::int64_t found = row.i64(0);
    // A damaged tree may lead back to where it was; that would go on for ever.
    if (found <= number) throw Damaged(SQLITE_CORRUPT, "the runs are not in their order");
    number = found;
    return true;
  };
  while (advance()) visit(RunNumber{number});
}

}  // namespace permit::store
