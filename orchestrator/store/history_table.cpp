#include "orchestrator/store/history_table.h"

#include <sqlite3.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>

#include "orchestrator/store/errors.h"
#include "orchestrator/store/packed_events.h"
#include "orchestrator/store/row_writer.h"

namespace permit::store {

std::vector<HistoryBatch> HistoryTable::of(RunNumber run) {
  return read(all_.bind(first_place(run), end_of_places(run)), run);
}

std::vector<HistoryBatch> HistoryTable::of(RunNumber run, std::int64_t from_event_id,
                                           std::int64_t to_event_id) {
  const auto place = [run](std::int64_t event_id) {
    return first_place(run) + std::clamp(event_id, std::int64_t{0}, places_of_a_run);
  };
  return read(part_.bind(first_place(run), place(from_event_id), place(to_event_id)), run);
}

std::vector<HistoryBatch> HistoryTable::read(Statement::Cursor rows, RunNumber run) {
  std::vector<HistoryBatch> batches;
  while (rows.step()) {
    const std::optional<std::string> text = unpack_events(rows.blob(1));
    auto added = text ? split_batches(rows.i64(0), *text) : std::nullopt;
    if (!added || text->find('\0') != std::string::npos) {
      throw Damaged(SQLITE_CORRUPT, "the events of run " + std::to_string(run.value) +
                                        " are not as they were written: the disk has lost a part");
    }
    std::move(added->begin(), added->end(), std::back_inserter(batches));
  }
  return batches;
}

}  // namespace permit::store
