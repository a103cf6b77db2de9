// What an activity's worker calls: heartbeats, and how it ended; by task token or by id.
#include "orchestrator/core/activity_transitions.h"
#include "orchestrator/core/validate.h"
#include "orchestrator/protocol/ensure.h"
#include "orchestrator/service/service.h"
#include "orchestrator/service/task_token.h"

namespace permit::service {

// Finds the pending activity that the token is for, and acts on it.
void Service::with_activity(const Bytes& bytes, const ActivityAction& act) {
  const auto token = parts_.tokens.decode(bytes, TaskToken::Kind::activity);
  if (!token) throw task_stale("the task token is not one that this server gave");
  Change change(parts_, now_);
  core::RunState* run = change.find(token->run);
  if (run == nullptr) throw task_stale("activity task not found");
  if (!run->is_open()) throw task_stale("workflow execution already completed");
  const auto activity = run->activities.find(token->scheduled_event_id);
  const bool current = activity != run->activities.end() && !activity->second.closed &&
                       is_set(activity->second.attempt.started_time) &&
                       activity->second.attempt.nonce == token->nonce &&
                       activity->second.attempt.attempt == token->attempt;
  if (!current) {
    throw task_stale("activity task not found: it has ended, timed out or was handed out again");
  }
  act(change, *run, {token->scheduled_event_id});
}

void Service::with_activity_by_id(const std::string& namespace_, const WorkflowExecution& execution,
                                  const std::string& activity_id, const ActivityAction& act) {
  Change change(parts_, now_);
  core::RunState& run = open_target(change, namespace_, execution);
  for (const auto& [id, activity] : run.activities) {
    if (activity.scheduled.activity_id != activity_id || activity.closed) continue;
    if (!is_set(activity.attempt.started_time)) {
      throw failed_precondition("ACTIVITY_NOT_STARTED",
                                "activity " + activity_id + " has not been started by a worker");
    }
    act(change, run, {id});
    return;
  }
  throw task_stale("no pending activity has this id");
}

Service::ActivityAction Service::heartbeat_action(std::optional<Payloads> details,
                                                  Done<RecordActivityTaskHeartbeatResponse> done) {
  return [this, details = std::move(details), done](Change& change, core::RunState& run,
                                                    core::ActivityRef ref) {
    core::check_payloads(details, "details", options_.limits);
    RecordActivityTaskHeartbeatResponse response;
    const RunId permit_run_id = run.activities.at(ref.scheduled_event_id).scheduled.permit_run_id;
    change.step(run, [&](core::Transition& t) {
      response.cancel_requested = core::heartbeat_activity(t, ref, details);
    });
    finish(change);
    if (!permit_run_id.empty()) {
      const core::RunState* permit = change.run_by_id(permit_run_id);
      if (permit != nullptr && permit->is_open() &&
          permit->started.parent_workflow_execution == run.execution()) {
        response.permit_deadline = permit->volatile_state.permit_deadline;
      }
    }
    reply(done, response);
  };
}

Service::ActivityAction Service::complete_action(std::optional<Payloads> result,
                                                 std::string identity, Done<EmptyResponse> done) {
  return [this, result = std::move(result), identity = std::move(identity), done](
             Change& change, core::RunState& run, core::ActivityRef ref) {
    core::check_payloads(result, "result", options_.limits);
    core::check_optional_name(identity, "identity", options_.limits);
    change.step(run,
                [&](core::Transition& t) { core::complete_activity(t, ref, result, identity); });
    finish(change);
    reply(done, EmptyResponse{});
  };
}

Service::ActivityAction Service::fail_action(std::optional<Failure> failure,
                                             std::optional<Payloads> last_details,
                                             std::string identity, Done<EmptyResponse> done) {
  return [this, failure = std::move(failure), last_details = std::move(last_details),
          identity = std::move(identity),
          done](Change& change, core::RunState& run, core::ActivityRef ref) {
    core::check_optional_name(identity, "identity", options_.limits);
    if (!failure) throw invalid_argument("FAILURE_MISSING", "failure is missing; it must be given");
    core::check_payloads(last_details, "lastHeartbeatDetails", options_.limits);
    const event::ActivityTaskScheduled& scheduled =
        run.activities.at(ref.scheduled_event_id).scheduled;
    const Metrics::ActivityLabel label{scheduled.task_queue.name, scheduled.activity_type.name};
    change.step(run, [&](core::Transition& t) {
      if (last_details) core::heartbeat_activity(t, ref, last_details);
      core::fail_activity(t, ref, *failure, identity);
    });
    finish(change);
    meter_.activity_failed(label, news_.tally);
    reply(done, EmptyResponse{});
  };
}

Service::ActivityAction Service::cancel_action(std::optional<Payloads> details,
                                               std::string identity, Done<EmptyResponse> done) {
  return [this, details = std::move(details), identity = std::move(identity), done](
             Change& change, core::RunState& run, core::ActivityRef ref) {
    core::check_payloads(details, "details", options_.limits);
    core::check_optional_name(identity, "identity", options_.limits);
    change.step(run,
                [&](core::Transition& t) { core::cancel_activity(t, ref, details, identity); });
    finish(change);
    reply(done, EmptyResponse{});
  };
}

void Service::heartbeat(RecordActivityTaskHeartbeatRequest request,
                        Done<RecordActivityTaskHeartbeatResponse> done) {
  submit(done, [this, request = std::move(request), done] {
    with_activity(request.task_token, heartbeat_action(request.details, done));
  });
}

void Service::heartbeat_by_id(RecordActivityTaskHeartbeatByIdRequest request,
                              Done<RecordActivityTaskHeartbeatResponse> done) {
  submit(done, [this, request = std::move(request), done] {
    with_activity_by_id(request.namespace_, {request.workflow_id, request.run_id},
                        request.activity_id, heartbeat_action(request.details, done));
  });
}

void Service::complete_activity(RespondActivityTaskCompletedRequest request,
                                Done<EmptyResponse> done) {
  submit(done, [this, request = std::move(request), done] {
    with_activity(request.task_token, complete_action(request.result, request.identity, done));
  });
}

void Service::complete_activity_by_id(RespondActivityTaskCompletedByIdRequest request,
                                      Done<EmptyResponse> done) {
  submit(done, [this, request = std::move(request), done] {
    with_activity_by_id(request.namespace_, {request.workflow_id, request.run_id},
                        request.activity_id,
                        complete_action(request.result, request.identity, done));
  });
}

void Service::fail_activity(RespondActivityTaskFailedRequest request, Done<EmptyResponse> done) {
  submit(done, [this, request = std::move(request), done] {
    with_activity(request.task_token, fail_action(request.failure, request.last_heartbeat_details,
                                                  request.identity, done));
  });
}

void Service::fail_activity_by_id(RespondActivityTaskFailedByIdRequest request,
                                  Done<EmptyResponse> done) {
  submit(done, [this, request = std::move(request), done] {
    with_activity_by_id(
        request.namespace_, {request.workflow_id, request.run_id}, request.activity_id,
        fail_action(request.failure, request.last_heartbeat_details, request.identity, done));
  });
}

void Service::cancel_activity(RespondActivityTaskCanceledRequest request,
                              Done<EmptyResponse> done) {
  submit(done, [this, request = std::move(request), done] {
    with_activity(request.task_token, cancel_action(request.details, request.identity, done));
  });
}

void Service::cancel_activity_by_id(RespondActivityTaskCanceledByIdRequest request,
                                    Done<EmptyResponse> done) {
  submit(done, [this, request = std::move(request), done] {
    with_activity_by_id(request.namespace_, {request.workflow_id, request.run_id},
                        request.activity_id,
                        cancel_action(request.details, request.identity, done));
  });
}

}  // namespace permit::service
