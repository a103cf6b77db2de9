// What workers tell of themselves, and who asks for it. Nothing of it is in the database.
#include <algorithm>

#include "orchestrator/core/validate.h"
#include "orchestrator/service/service.h"

namespace permit::service {

namespace {

constexpr std::size_t heartbeats_max = 100;  // of one request
constexpr std::int32_t page_size_max = 1'000;

void check_namespace(const std::string& namespace_) {
  if (namespace_ == "default") return;
  throw not_found("NAMESPACE_NOT_FOUND", "there is no such namespace; only \"default\" exists");
}

void check_count(std::int64_t count, std::int64_t min, std::string_view what) {
  if (count >= min) return;
  throw invalid_argument(
      "WORKER_HEARTBEAT_INVALID",
      "workerHeartbeat." + std::string(what) + " must be " + std::to_string(min) + " or more");
}

void check_slots(const std::optional<WorkerSlotsInfo>& slots, const std::string& what) {
  if (!slots) return;
  check_count(slots->current_available_slots, -1, what + ".currentAvailableSlots");
  check_count(slots->current_used_slots, 0, what + ".currentUsedSlots");
  check_count(slots->total_processed_tasks.value, 0, what + ".totalProcessedTasks");
  check_count(slots->total_failed_tasks.value, 0, what + ".totalFailedTasks");
}

void check_heartbeat(const WorkerHeartbeat& heartbeat, const core::Limits& limits) {
  const auto check = [&](const std::string& text, const char* what) {
    core::check_optional_name(text, std::string("workerHeartbeat.") + what, limits);
  };
  core::check_name(heartbeat.worker_instance_key, "workerHeartbeat.workerInstanceKey", limits);
  check(heartbeat.worker_identity, "workerIdentity");
  check(heartbeat.host_info.host_name, "hostInfo.hostName");
  check(heartbeat.host_info.process_id, "hostInfo.processId");
  check(heartbeat.task_queue, "taskQueue");
  check(heartbeat.deployment_version.build_id, "deploymentVersion.buildId");
  check(heartbeat.deployment_version.deployment_name, "deploymentVersion.deploymentName");
  check(heartbeat.sdk_name, "sdkName");
  check(heartbeat.sdk_version, "sdkVersion");
  core::check_duration(heartbeat.elapsed_since_last_heartbeat,
                       "workerHeartbeat.elapsedSinceLastHeartbeat");
  check_slots(heartbeat.workflow_task_slots_info, "workflowTaskSlotsInfo");
  check_slots(heartbeat.activity_task_slots_info, "activityTaskSlotsInfo");
  check_count(heartbeat.total_sticky_cache_hit.value, 0, "totalStickyCacheHit");
  check_count(heartbeat.total_sticky_cache_miss.value, 0, "totalStickyCacheMiss");
  check_count(heartbeat.current_sticky_cache_size, 0, "currentStickyCacheSize");
}

}  // namespace

// A read as far as batches go: one that comes to nothing takes nothing of this back, and to record
// the same again does no harm.
void Service::record_worker_heartbeat(RecordWorkerHeartbeatRequest request,
                                      Done<EmptyResponse> done) {
  submit_read(done, [this, request = std::move(request), done] {
    check_namespace(request.namespace_);
    core::check_optional_name(request.identity, "identity", options_.limits);
    if (request.worker_heartbeat.size() > heartbeats_max) {
      throw invalid_argument("WORKER_HEARTBEATS_TOO_MANY",
                             "a request may carry " + std::to_string(heartbeats_max) +
                                 " heartbeats of workers, not " +
                                 std::to_string(request.worker_heartbeat.size()));
    }
    for (const WorkerHeartbeat& heartbeat : request.worker_heartbeat) {
      check_heartbeat(heartbeat, options_.limits);
    }
    for (WorkerHeartbeat heartbeat : request.worker_heartbeat) {
      if (heartbeat.worker_identity.empty()) heartbeat.worker_identity = request.identity;
      workers_.record(std::move(heartbeat), now_);
    }
    reply(done, EmptyResponse{});
  });
}

// A worker's goodbye may bring a heartbeat, or just say who goes.
void Service::note_goodbye(const ShutdownWorkerRequest& request) {
  core::check_optional_name(request.worker_instance_key, "workerInstanceKey", options_.limits);
  if (request.worker_heartbeat) {
    WorkerHeartbeat heartbeat = *request.worker_heartbeat;
    check_heartbeat(heartbeat, options_.limits);
    if (heartbeat.worker_identity.empty()) heartbeat.worker_identity = request.identity;
    workers_.record(std::move(heartbeat), now_);
  } else {
    workers_.note_goodbye(request.worker_instance_key, now_);
  }
}

void Service::list_workers(ListWorkersRequest request, Done<ListWorkersResponse> done) {
  submit_read(done, [this, request = std::move(request), done] {
    check_namespace(request.namespace_);
    workers_.forget_silent(now_);
    std::int32_t size = request.page_size > 0 ? request.page_size : page_size_max;
    size = std::min(size, page_size_max);
    ListWorkersResponse response;
    response.workers_info =
        workers_.list(request.next_page_token.value, static_cast<std::size_t>(size) + 1, now_);
    if (response.workers_info.size() > static_cast<std::size_t>(size)) {
      response.workers_info.pop_back();
      response.next_page_token.value =
          response.workers_info.back().worker_heartbeat.worker_instance_key;
    }
    reply(done, std::move(response));
  });
}

void Service::describe_worker(DescribeWorkerRequest request, Done<DescribeWorkerResponse> done) {
  submit_read(done, [this, request = std::move(request), done] {
    check_namespace(request.namespace_);
    workers_.forget_silent(now_);
    const WorkerHeartbeat* heartbeat = workers_.find(request.worker_instance_key);
    if (heartbeat == nullptr) {
      throw not_found("WORKER_NOT_FOUND",
                      "no worker has told of itself by this instance key, or not for long");
    }
    reply(done, DescribeWorkerResponse{workers_.info(*heartbeat, now_)});
  });
}

}  // namespace permit::service
