// How times go into columns, and which columns a run's row has: what reads and what writes the
// tables has to agree on it.
#pragma once

#include <cstdint>
#include <optional>

#include "orchestrator/protocol/ids.h"

// In the order in which store.cpp reads and row_writer.cpp writes them.
#define RUN_COLUMNS                                                                           \
  "number, namespace, workflow_id, run_id, status, workflow_type, task_queue, "               \
  "parent_workflow_id, parent_run_id, start_time, close_time, next_event_id, history_bytes, " \
  "next_due, offered_on, volatile, pool, slot, fence, deadline, outcome, cause"

namespace permit::store {

inline std::int64_t to_us(Time time) { return time.time_since_epoch().count(); }
inline Time from_us(std::int64_t us) { return Time(Duration(us)); }

// Absent if it is not set, or never.
inline std::optional<std::int64_t> optional_us(Time time) {
  if (!is_set(time) || time == never) return std::nullopt;
  return to_us(time);
}

}  // namespace permit::store
