// The messages of the event stream, GET events: a snapshot, then what has changed. Items are how
// things are now, never differences, so that a reader who missed some is right after the next.
#pragma once

#include "orchestrator/protocol/pools.h"

namespace permit {

// What an operator should see to.
struct Alert {
  std::string kind;      // permits_unserved, queue_unserved, capacity_mismatch, possible_overlap,
                         // long_wait
  std::string severity;  // warning or critical
  PoolName pool;
  SlotName slot;
  std::string queue;
  Time since{};
  std::string message;
  std::string way_out;
};
BOOST_DESCRIBE_STRUCT(Alert, (), (kind, severity, pool, slot, queue, since, message, way_out))

// Who waits for a pool: the head of its line in order, then those who back off; at most 50.
struct PoolLine {
  PoolName pool;
  std::int32_t waiting = 0;  // in all
  std::vector<WaiterInfo> waiters;
};
BOOST_DESCRIBE_STRUCT(PoolLine, (), (pool, waiting, waiters))

// A run that started or closed.
struct RunChange {
  WorkflowId workflow_id;
  RunId run_id;
  std::string type;
  std::string task_queue;
  WorkflowExecutionStatus status = WorkflowExecutionStatus::unspecified;
  Time start_time{};
  Time close_time{};
  WorkflowId parent_workflow_id;
};
BOOST_DESCRIBE_STRUCT(RunChange, (),
                      (workflow_id, run_id, type, task_queue, status, start_time, close_time,
                       parent_workflow_id))

struct StreamSnapshot {
  Count seq;  // of the commit that it shows
  Time now{};
  std::string version;
  std::string instance;  // of the server's process
  std::vector<PoolInfo> pools;
  std::vector<PoolLine> lines;
  std::vector<PermitInfo> holds;  // the last that ended, up to 20 of each pool, newest first
  std::vector<TaskQueueInfo> queues;
  std::vector<Alert> alerts;
};
BOOST_DESCRIBE_STRUCT(StreamSnapshot, (),
                      (seq, now, version, instance, pools, lines, holds, queues, alerts))

struct StreamChanges {
  Count seq;
  Time now{};
  std::vector<PoolInfo> pools;
  std::vector<PoolName> removed;
  std::vector<PoolLine> lines;
  std::vector<PermitInfo> holds;  // began, were renewed, ended
  std::vector<RunChange> workflows;
  bool more_workflows = false;        // than are told here
  std::vector<TaskQueueInfo> queues;  // all of them, if anything in them changed
  bool queues_changed = false;
  std::vector<Alert> alerts;  // all of them, if any changed
  bool alerts_changed = false;
};
BOOST_DESCRIBE_STRUCT(StreamChanges, (),
                      (seq, now, pools, removed, lines, holds, workflows, more_workflows, queues,
                       queues_changed, alerts, alerts_changed))

struct StreamPing {
  Time now{};
};
BOOST_DESCRIBE_STRUCT(StreamPing, (), (now))

}  // namespace permit
