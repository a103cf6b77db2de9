// The rows of the tables, as the service hands them over and gets them back.
#pragma once

#include <boost/describe/class.hpp>
#include <cstdint>
#include <optional>
#include <string>

#include "orchestrator/protocol/api_keys.h"
#include "orchestrator/protocol/pools.h"

namespace permit::store {

struct RunRow {
  RunNumber number;
  std::string namespace_;
  WorkflowId workflow_id;
  RunId run_id;
  WorkflowExecutionStatus status = WorkflowExecutionStatus::running;
  std::string workflow_type;
  std::string task_queue;
  std::optional<WorkflowExecution> parent;
  Time start_time{};
  Time close_time{};
  std::int64_t next_event_id = 1;
  std::int64_t history_bytes = 0;
  Time next_due = never;
  std::optional<std::string> offered_on;
  std::string volatile_json;
  std::optional<PermitGrant> permit;  // its deadline is the current one
  Outcome outcome = Outcome::unspecified;
  std::string cause;

  bool is_open() const { return status == WorkflowExecutionStatus::running; }
};
BOOST_DESCRIBE_STRUCT(RunRow, (),
                      (number, namespace_, workflow_id, run_id, status, workflow_type, task_queue,
                       parent, start_time, close_time, next_event_id, history_bytes, next_due,
                       offered_on, volatile_json, permit, outcome, cause))

struct HistoryBatch {
  std::int64_t first_event_id = 0;
  std::string events;  // JSON objects, separated by commas
};
BOOST_DESCRIBE_STRUCT(HistoryBatch, (), (first_event_id, events))

struct ActivityRow {
  std::int64_t scheduled_event_id = 0;
  std::optional<std::string> offered_on;
  std::string attempt_json;
};
BOOST_DESCRIBE_STRUCT(ActivityRow, (), (scheduled_event_id, offered_on, attempt_json))

struct HoldRow {
  PermitGrant grant;
  RunNumber run;
  RunId run_id;
  std::string holder;
  std::optional<RunId> holder_run_id;
  std::string reason;
  Time granted_at{};
};
BOOST_DESCRIBE_STRUCT(HoldRow, (), (grant, run, run_id, holder, holder_run_id, reason, granted_at))

struct WaiterRow {
  std::int64_t id = 0;
  PoolName pool;
  std::string waiter_json;
};
BOOST_DESCRIBE_STRUCT(WaiterRow, (), (id, pool, waiter_json))

struct ApiKeyRow {
  std::int64_t id = 0;
  std::string name;
  std::string digest;  // SHA-256 of the secret, which is nowhere
  Role role = Role::unspecified;
  std::string namespace_;
  Time created_at{};
  std::string created_by;
  Time expires_at = never;
  Time revoked_at{};
  std::string revoked_by;
};
BOOST_DESCRIBE_STRUCT(ApiKeyRow, (),
                      (id, name, digest, role, namespace_, created_at, created_by, expires_at,
                       revoked_at, revoked_by))

// The counters of the `server` row. `epoch` is the owner's.
struct Counters {
  std::int64_t epoch = 0;
  std::int64_t commit_seq = 0;
  std::int64_t fence = 0;
  std::int64_t arrival = 0;
  std::int64_t run = 0;
  Time time_max{};
};
BOOST_DESCRIBE_STRUCT(Counters, (), (epoch, commit_seq, fence, arrival, run, time_max))

}  // namespace permit::store
