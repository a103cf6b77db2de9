#include "orchestrator/service/uniqueness.h"

#include "orchestrator/core/client_transitions.h"
#include "orchestrator/protocol/error.h"
#include "orchestrator/protocol/json_writer.h"

namespace permit::service {

namespace {

bool closed_cleanly(WorkflowExecutionStatus status) {
  return status == WorkflowExecutionStatus::completed ||
         status == WorkflowExecutionStatus::continued_as_new;
}

bool may_follow(const core::RunState& closed, WorkflowIdReusePolicy reuse) {
  if (reuse == WorkflowIdReusePolicy::reject_duplicate) return false;
  if (reuse == WorkflowIdReusePolicy::allow_duplicate_failed_only) {
    return !closed_cleanly(closed.status);
  }
  return true;
}

}  // namespace

bool may_start(Change& change, core::RunState* latest, WorkflowIdReusePolicy reuse,
               WorkflowIdConflictPolicy conflict) {
  if (latest == nullptr) return true;
  // Continued by this very change: its next run, which is about to start, has the id.
  if (latest->status == WorkflowExecutionStatus::continued_as_new) return false;
  if (latest->is_open()) {
    if (reuse != WorkflowIdReusePolicy::terminate_if_running &&
        conflict != WorkflowIdConflictPolicy::terminate_existing) {
      return false;
    }
    event::WorkflowExecutionTerminated terminated;
    terminated.reason = "TerminateIfRunning WorkflowIdReusePolicy: a new run takes the id";
    terminated.identity = "permit-server";
    change.step(*latest, [&](core::Transition& t) { core::terminate(t, std::move(terminated)); });
    return true;
  }
  if (reuse == WorkflowIdReusePolicy::unspecified ||
      reuse == WorkflowIdReusePolicy::allow_duplicate) {
    return true;
  }
  return may_follow(*latest, reuse);
}

Error already_started(const core::RunState& in_the_way) {
  const std::string which =
      "WorkflowId: " + in_the_way.workflow_id.value + ", RunId: " + in_the_way.run_id.value + ".";
  const std::string message = in_the_way.is_open()
                                  ? "Workflow execution is already running. " + which
                                  : "Workflow execution already finished and its id may not be "
                                    "reused by this policy. " +
                                        which;
  std::string detail =
      "{\"@type\":\"type.googleapis.com/"
      "temporal.api.errordetails.v1.WorkflowExecutionAlreadyStartedFailure\",\"startRequestId\":";
  append_json_string(in_the_way.started.request_id, detail);
  detail += ",\"runId\":\"" + in_the_way.run_id.value + "\",\"firstExecutionRunId\":\"" +
            in_the_way.first_run_id().value + "\"}";
  return Error(ErrorCode::already_exists, "WORKFLOW_ALREADY_STARTED", message)
      .with_detail(std::move(detail));
}

}  // namespace permit::service
