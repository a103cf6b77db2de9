// What workers tell of themselves, and what is told of them: Temporal's messages of that name.
#pragma once

#include <boost/describe.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "orchestrator/protocol/common.h"

namespace permit {

// Of one kind of tasks. Fewer than 0 are available if the worker knows no bound.
struct WorkerSlotsInfo {
  std::int32_t current_available_slots = 0;
  std::int32_t current_used_slots = 0;
  Ignored slot_supplier_kind{};
  Count total_processed_tasks;  // since the worker's start, failed ones included
  Count total_failed_tasks;
  Ignored last_interval_processed_tasks{};
  Ignored last_interval_failure_tasks{};
};
BOOST_DESCRIBE_STRUCT(WorkerSlotsInfo, (),
                      (current_available_slots, current_used_slots, slot_supplier_kind,
                       total_processed_tasks, total_failed_tasks, last_interval_processed_tasks,
                       last_interval_failure_tasks))

struct WorkerHostInfo {
  std::string host_name;
  std::string process_id;
  Ignored worker_grouping_key{};
  Ignored current_host_cpu_usage{};
  Ignored current_host_mem_usage{};
};
BOOST_DESCRIBE_STRUCT(WorkerHostInfo, (),
                      (host_name, process_id, worker_grouping_key, current_host_cpu_usage,
                       current_host_mem_usage))

struct WorkerDeploymentVersion {
  std::string build_id;
  std::string deployment_name;
};
BOOST_DESCRIBE_STRUCT(WorkerDeploymentVersion, (), (build_id, deployment_name))

// The instance key is the worker's own; identities may be shared. `heartbeat_time` is the server's
// once it has it: when it came. Absent slots: it takes no such tasks.
struct WorkerHeartbeat {
  std::string worker_instance_key;
  std::string worker_identity;
  WorkerHostInfo host_info;
  std::string task_queue;
  WorkerDeploymentVersion deployment_version;
  std::string sdk_name;
  std::string sdk_version;
  WorkerStatus status = WorkerStatus::unspecified;
  Time start_time{};
  Time heartbeat_time{};
  Duration elapsed_since_last_heartbeat{};
  std::optional<WorkerSlotsInfo> workflow_task_slots_info;
  std::optional<WorkerSlotsInfo> activity_task_slots_info;
  Ignored nexus_task_slots_info{};
  Ignored local_activity_slots_info{};
  Ignored workflow_poller_info{};
  Ignored workflow_sticky_poller_info{};
  Ignored activity_poller_info{};
  Ignored nexus_poller_info{};
  Count total_sticky_cache_hit;
  Count total_sticky_cache_miss;
  std::int32_t current_sticky_cache_size = 0;
  Ignored plugins{};
  Ignored drivers{};
};
BOOST_DESCRIBE_STRUCT(WorkerHeartbeat, (),
                      (worker_instance_key, worker_identity, host_info, task_queue,
                       deployment_version, sdk_name, sdk_version, status, start_time,
                       heartbeat_time, elapsed_since_last_heartbeat, workflow_task_slots_info,
                       activity_task_slots_info, nexus_task_slots_info, local_activity_slots_info,
                       workflow_poller_info, workflow_sticky_poller_info, activity_poller_info,
                       nexus_poller_info, total_sticky_cache_hit, total_sticky_cache_miss,
                       current_sticky_cache_size, plugins, drivers))

struct RecordWorkerHeartbeatRequest {
  std::string namespace_;
  std::string identity;
  std::vector<WorkerHeartbeat> worker_heartbeat;
  Ignored resource_id{};
};
BOOST_DESCRIBE_STRUCT(RecordWorkerHeartbeatRequest, (),
                      (namespace_, identity, worker_heartbeat, resource_id))

// Ours: `silent`, it has missed three heartbeats and has not said that it ends.
struct WorkerInfo {
  WorkerHeartbeat worker_heartbeat;
  bool silent = false;
};
BOOST_DESCRIBE_STRUCT(WorkerInfo, (), (worker_heartbeat, silent))

struct ListWorkersRequest {
  std::string namespace_;
  std::int32_t page_size = 0;  // 0 means 1000, the most
  Bytes next_page_token;
  Unsupported query{};
  Ignored include_system_workers{};
};
BOOST_DESCRIBE_STRUCT(ListWorkersRequest, (),
                      (namespace_, page_size, next_page_token, query, include_system_workers))

struct ListWorkersResponse {
  std::vector<WorkerInfo> workers_info;  // by instance key
  Bytes next_page_token;
};
BOOST_DESCRIBE_STRUCT(ListWorkersResponse, (), (workers_info, next_page_token))

struct DescribeWorkerRequest {
  std::string namespace_;
  std::string worker_instance_key;
};
BOOST_DESCRIBE_STRUCT(DescribeWorkerRequest, (), (namespace_, worker_instance_key))

struct DescribeWorkerResponse {
  WorkerInfo worker_info;
};
BOOST_DESCRIBE_STRUCT(DescribeWorkerResponse, (), (worker_info))

}  // namespace permit
