// The events of runs, as the tables have them. For one thread, with its connection.
#pragma once

#include <cstdint>
#include <vector>

#include "orchestrator/store/database.h"
#include "orchestrator/store/rows.h"

namespace permit::store {

class HistoryTable {
 public:
  explicit HistoryTable(Database& database) : database_(database) {}

  // Throw Damaged if the events are not as they were written.
  std::vector<HistoryBatch> of(RunNumber run);
  // The batches that have any of the events [from, to), and perhaps some in front of them.
  std::vector<HistoryBatch> of(RunNumber run, std::int64_t from_event_id, std::int64_t to_event_id);

 private:
  static std::vector<HistoryBatch> read(Statement::Cursor rows, RunNumber run);

  Database& database_;
  Statement all_{database_,
                 "SELECT first_event_id, events FROM history "
                 "WHERE place > ? AND place < ? ORDER BY place"};
  Statement part_{database_,
                  "SELECT first_event_id, events FROM history "
                  "WHERE place >= coalesce((SELECT max(place) FROM history "
                  "WHERE place > ?1 AND place <= ?2), ?1) "
                  "AND place < ?3 "
                  "ORDER BY place"};
};

}  // namespace permit::store
