// Calls that wait for something to happen before they are answered. Each has an id for
// Service::forget_poll(), and a time by which it is answered anyway.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "orchestrator/protocol/pools.h"
#include "orchestrator/protocol/request.h"
#include "orchestrator/service/history_part.h"
#include "orchestrator/service/job.h"
#include "orchestrator/service/meter.h"

namespace permit::service {

// For new events of a run.
struct HistoryWait {
  GetWorkflowExecutionHistoryRequest request;
  RunNumber run;
  Done<HistoryPart> done;
  std::chrono::steady_clock::time_point deadline;
};

// For a task.
template <class Response>
struct ParkedPoll {
  Done<Response> done;
  TaskQueueSeries* queue;
};

// For a slot, by a holder that is no workflow.
struct AcquireWait {
  std::int64_t ticket = 0;
  PoolName pool;
  std::string request_id;
  Done<AcquireResponse> done;
  std::chrono::steady_clock::time_point deadline;
};

// For a worker's answer.
struct QueryWait {
  RunNumber run;
  WorkflowQuery query;
  Done<QueryWorkflowResponse> done;
  std::chrono::steady_clock::time_point deadline;
  bool handed_out = false;
  std::int64_t nonce = 0;  // since the first hand-out; part of its token
};

}  // namespace permit::service
