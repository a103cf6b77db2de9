// A store whose rows are made up, and what a reader of it finds.
#pragma once

#include <doctest/doctest.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "orchestrator/store/reader.h"
#include "orchestrator/store/store.h"
#include "tests/support/crash_vfs.h"

namespace permit::store::test_rows {

inline const Time noon{Duration(1'785'585'600'000'000)};  // 2026-08-01T12:00:00Z

inline Database::Options in_memory() {
  Database::Options options;
  options.mode = Database::Mode::in_memory;
  return options;
}

inline Database::Options on(const test::CrashVfs& vfs) {
  Database::Options options;
  options.path = "/permit.db";
  options.vfs = vfs.name();
  return options;
}

// Writes rows as the service would, a commit each; the n-th run starts n seconds past noon.
class Rows {
 public:
  explicit Rows(Database::Options options = in_memory()) : store_(std::move(options)) {}

  Store& store() { return store_; }
  Database& database() { return store_.database(); }

  RunRow run(const std::string& workflow_id) {
    RunRow row;
    row.number = store_.next_run_number();
    row.namespace_ = "default";
    row.workflow_id = WorkflowId(workflow_id);
    row.run_id = RunId("run-" + std::to_string(row.number.value));
    row.workflow_type = "train";
    row.task_queue = "gpu";
    row.start_time = noon + std::chrono::seconds(row.number.value);
    row.next_event_id = 4;
    row.history_bytes = 300;
    row.volatile_json = "{}";
    return row;
  }

  void insert(const RunRow& row) {
    store_.begin();
    store_.insert_run(row);
    store_.commit(row.start_time);
  }
  RunRow add(const std::string& workflow_id) {
    const RunRow row = run(workflow_id);
    insert(row);
    return row;
  }
  RunRow add_closed(const std::string& workflow_id, WorkflowExecutionStatus status) {
    RunRow row = run(workflow_id);
    row.status = status;
    row.close_time = row.start_time + std::chrono::seconds(10);
    insert(row);
    return row;
  }

  RunRow grant(const std::string& pool, const std::string& slot) {
    RunRow row = run("permit:" + pool + ":" + slot);
    row.permit = PermitGrant{PoolName(pool), SlotName(slot), Fence{100 + row.number.value},
                             row.start_time + std::chrono::minutes(10)};
    store_.set_fence(row.permit->fence.value);
    insert(row);
    HoldRow hold;
    hold.grant = *row.permit;
    hold.run = row.number;
    hold.run_id = row.run_id;
    hold.holder = "trainer";
    hold.holder_run_id = RunId("trainer-run");
    hold.reason = "epoch 1";
    hold.granted_at = row.start_time;
    store_.begin();
    store_.open_hold(hold);
    store_.commit(row.start_time);
    return row;
  }
  void close(RunRow row, Outcome outcome, const std::string& cause = "") {
    row.status = WorkflowExecutionStatus::completed;
    row.close_time = row.start_time + std::chrono::seconds(30);
    row.outcome = outcome;
    row.cause = cause;
    store_.begin();
    store_.update_run(row);
    store_.close_hold(*row.permit, row.close_time, outcome, cause);
    store_.commit(row.close_time);
  }

 private:
  Store store_;
};

// The workflow ids of a whole list, page by page.
inline std::vector<std::string> list_ids(Reader& reader, const std::string& query,
                                         std::int64_t page_size = 0) {
  const ListFilter filter = parse_list_filter(query);
  std::vector<std::string> ids;
  Bytes token;
  do {
    const ListPage page = reader.list_runs("default", filter, page_size, token);
    for (const auto& run : page.executions) ids.push_back(run.execution.workflow_id.value);
    token = page.next_page_token;
  } while (!token.value.empty());
  CHECK(reader.count_runs("default", filter) == std::ssize(ids));
  return ids;
}

}  // namespace permit::store::test_rows
