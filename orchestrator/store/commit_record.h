// What one commit changes in the tables, as bytes: a list of changes, and the counters at its end.
// The redo log keeps it, and RowWriter brings it into the tables: so there is one way to what is
// written, whether a commit is a second old or was found after a crash. PendingRows is given the
// same changes as they are made, and reads them from here when an open batch is undone.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "orchestrator/store/rows.h"

namespace permit::store {

// --- Changes; their order is that of the numbers they have on disk: never change it, append ---

struct InsertRun {
  RunRow row;
};
BOOST_DESCRIBE_STRUCT(InsertRun, (), (row))
struct UpdateRun {
  RunRow row;
};
BOOST_DESCRIBE_STRUCT(UpdateRun, (), (row))
struct DeleteRun {  // with its history
  RunNumber run;
};
BOOST_DESCRIBE_STRUCT(DeleteRun, (), (run))
struct AppendHistory {
  RunNumber run;
  HistoryBatch batch;
};
BOOST_DESCRIBE_STRUCT(AppendHistory, (), (run, batch))
struct PutActivity {
  RunNumber run;
  ActivityRow row;
};
BOOST_DESCRIBE_STRUCT(PutActivity, (), (run, row))
struct DeleteActivity {
  RunNumber run;
  std::int64_t scheduled_event_id = 0;
};
BOOST_DESCRIBE_STRUCT(DeleteActivity, (), (run, scheduled_event_id))
struct DeleteActivities {  // all of the run's
  RunNumber run;
};
BOOST_DESCRIBE_STRUCT(DeleteActivities, (), (run))
struct PutPool {
  PoolName name;
  std::string settings_json;
};
BOOST_DESCRIBE_STRUCT(PutPool, (), (name, settings_json))
struct DeletePool {
  PoolName name;
};
BOOST_DESCRIBE_STRUCT(DeletePool, (), (name))
struct PutWaiter {
  WaiterRow row;
};
BOOST_DESCRIBE_STRUCT(PutWaiter, (), (row))
struct DeleteWaiter {
  std::int64_t id = 0;
};
BOOST_DESCRIBE_STRUCT(DeleteWaiter, (), (id))
struct OpenHold {
  HoldRow row;
};
BOOST_DESCRIBE_STRUCT(OpenHold, (), (row))
struct CloseHold {
  PoolName pool;
  SlotName slot;
  Fence fence;
  Time closed_at{};
  Outcome outcome = Outcome::unspecified;
  std::string cause;
};
BOOST_DESCRIBE_STRUCT(CloseHold, (), (pool, slot, fence, closed_at, outcome, cause))
struct NoteLateRelease {
  Fence fence;
  Time at{};
};
BOOST_DESCRIBE_STRUCT(NoteLateRelease, (), (fence, at))
struct TrimHolds {  // but for the last of a slot's
  PoolName pool;
  SlotName slot;
  std::int64_t holds_kept = 0;
};
BOOST_DESCRIBE_STRUCT(TrimHolds, (), (pool, slot, holds_kept))
struct PutApiKey {
  ApiKeyRow row;
};
BOOST_DESCRIBE_STRUCT(PutApiKey, (), (row))
struct RemoveApiKey {
  std::int64_t id = 0;
};
BOOST_DESCRIBE_STRUCT(RemoveApiKey, (), (id))
struct SetCounters {
  Counters counters;
};
BOOST_DESCRIBE_STRUCT(SetCounters, (), (counters))

using RowChange =
    std::variant<InsertRun, UpdateRun, DeleteRun, AppendHistory, PutActivity, DeleteActivity,
                 DeleteActivities, PutPool, DeletePool, PutWaiter, DeleteWaiter, OpenHold,
                 CloseHold, NoteLateRelease, TrimHolds, PutApiKey, RemoveApiKey, SetCounters>;

// Appends a change to a record.
template <class Change>
void append_change(std::string& record, const Change& change);

// The same for an AppendHistory, whose events are large; they are the last bytes of the record
// then.
void append_history_change(std::string& record, RunNumber run, std::int64_t first_event_id,
                           std::string_view events);

// Takes the first change off `record`. Throws Damaged if it is not one.
RowChange take_change(std::string_view& record);

// Each ends with its counters, but for that of an open batch.
using CommitRecord = std::shared_ptr<const std::string>;
using CommitRecords = std::vector<CommitRecord>;

// Bytes of a record, which stays while they are needed.
struct RecordPart {
  CommitRecord record;
  std::size_t at = 0;
  std::size_t size = 0;

  std::string_view text() const { return std::string_view(*record).substr(at, size); }
};

}  // namespace permit::store
