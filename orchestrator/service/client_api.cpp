// Starting, signalling, ending and looking at runs.
#include <algorithm>

#include "orchestrator/core/client_transitions.h"
#include "orchestrator/core/validate.h"
#include "orchestrator/protocol/ensure.h"
#include "orchestrator/protocol/json.h"
#include "orchestrator/service/full_disk.h"
#include "orchestrator/service/service.h"
#include "orchestrator/service/token_holds.h"
#include "orchestrator/service/uniqueness.h"

namespace permit::service {

namespace {

Error already_completed() {
  return not_found("WORKFLOW_ALREADY_COMPLETED", "workflow execution already completed");
}

event::WorkflowExecutionStarted started_from(StartWorkflowExecutionRequest& request) {
  event::WorkflowExecutionStarted started;
  started.workflow_type = std::move(request.workflow_type);
  started.task_queue = {request.task_queue.name, TaskQueueKind::normal, ""};
  started.input = std::move(request.input);
  started.workflow_execution_timeout = request.workflow_execution_timeout;
  started.workflow_run_timeout = request.workflow_run_timeout;
  started.workflow_task_timeout = request.workflow_task_timeout;
  started.identity = std::move(request.identity);
  started.request_id = std::move(request.request_id);
  started.memo = std::move(request.memo);
  started.header = std::move(request.header);
  started.priority = request.priority;
  return started;
}

StartWorkflowExecutionResponse start_response(const core::RunState& run, bool started) {
  StartWorkflowExecutionResponse response;
  response.run_id = run.run_id;
  response.first_execution_run_id = run.first_run_id();
  response.started = started;
  response.status = run.status;
  if (run.is_permit()) {
    response.workflow_id = run.workflow_id;
    response.fence = run.started.permit->fence;
    response.deadline = run.volatile_state.permit_deadline;
  }
  return response;
}

}  // namespace

Error Service::run_not_found(const WorkflowExecution& execution) {
  std::string message = "no workflow with id " + execution.workflow_id.value;
  if (!execution.run_id.empty()) message += " and run id " + execution.run_id.value;
  return not_found("WORKFLOW_NOT_FOUND", message + " was found");
}

// The run a request means: that very run, or the current one of the id, or of the chain that began
// with first_run_id.
core::RunState& Service::target(Change& change, const std::string& namespace_,
                                const WorkflowExecution& execution, const RunId& first_run_id) {
  core::check_namespace(namespace_);
  core::check_workflow_id(execution.workflow_id, options_.limits);
  const bool by_chain = !first_run_id.empty();
  core::RunState* run = execution.run_id.empty() || by_chain
                            ? change.latest_run(namespace_, execution.workflow_id)
                            : change.run_by_id(execution.run_id);
  if (run == nullptr || run->workflow_id != execution.workflow_id ||
      run->namespace_ != namespace_ || (by_chain && run->first_run_id() != first_run_id)) {
    throw run_not_found(execution);
  }
  return *run;
}

core::RunState& Service::open_target(Change& change, const std::string& namespace_,
                                     const WorkflowExecution& execution,
                                     const RunId& first_run_id) {
  core::RunState& run = target(change, namespace_, execution, first_run_id);
  if (!run.is_open()) throw already_completed();
  return run;
}

// --- Start ---

namespace {

bool same_request(const event::WorkflowExecutionStarted& made,
                  const StartWorkflowExecutionRequest& request) {
  return made.workflow_type.name == request.workflow_type.name &&
         made.task_queue.name == request.task_queue.name &&
         made.input.value_or(Payloads{}) == request.input.value_or(Payloads{});
}

}  // namespace

// Whether it is this very request, repeated, that has made the run.
bool Service::is_repeated(const core::RunState& run, const StartWorkflowExecutionRequest& request) {
  if (request.request_id.empty() || run.started.request_id != request.request_id) return false;
  const std::string first = history_text(run, 1, 2);
  const auto events = read_json<std::vector<Event>>(first);
  ENSURE(events.size() == 1);
  if (same_request(std::get<event::WorkflowExecutionStarted>(events[0].attributes), request)) {
    return true;
  }
  throw Error(ErrorCode::already_exists, "REQUEST_ID_REUSED",
              "this requestId was used for another start; use a fresh one");
}

StartWorkflowExecutionResponse Service::start_in(Change& change,
                                                 StartWorkflowExecutionRequest& request) {
  // An open run of an id is always its latest: another could not start before it had closed.
  core::RunState* latest = change.latest_run(request.namespace_, request.workflow_id);
  if (latest != nullptr && is_repeated(*latest, request)) return start_response(*latest, true);
  core::RunState* open = latest != nullptr && latest->is_open() ? latest : nullptr;
  const bool is_permit = core::has_permit_prefix(request.workflow_id);
  // A refused start comes to nothing, so the pools do not count it.
  const auto conflict_with = [&](Error error) {
    const auto permit = core::parse_permit_id(request.workflow_id);
    if (permit) ++news_.tally.pools[permit->pool].conflicts;
    return error;
  };
  if (open != nullptr && is_permit) throw conflict_with(already_started(*open));
  if (open != nullptr &&
      request.workflow_id_conflict_policy == WorkflowIdConflictPolicy::use_existing) {
    return start_response(*open, false);
  }
  const WorkflowIdReusePolicy reuse = request.workflow_id_reuse_policy;
  const WorkflowIdConflictPolicy conflict = request.workflow_id_conflict_policy;
  require_space(store_);
  NewRun run{request.namespace_, request.workflow_id, {}, started_from(request)};
  if (is_permit) {
    if (auto refusal = pools_.admit_plain(change, run)) {
      throw conflict_with(Error(ErrorCode::already_exists, "PERMIT_REFUSED", refusal->message));
    }
  } else if (!may_start(change, latest, reuse, conflict)) {
    throw already_started(*latest);
  }
  const core::RunState& started = change.start_run(std::move(run));
  if (is_permit) pools_.granted_plain(change, started);
  return start_response(started, true);
}

// So that workers can go on with the trace by which their run was asked for. A header that has one
// already is the caller's business.
void Service::carry_trace(std::optional<Header>& header) const {
  if (!deciding_) return;
  if (!header) header.emplace();
  header->fields.try_emplace(std::string(trace_header_field),
                             json_payload(R"({"traceparent":")" + deciding_->traceparent + "\"}"));
}

void Service::start(StartWorkflowExecutionRequest request,
                    Done<StartWorkflowExecutionResponse> done) {
  submit(done, [this, request = std::move(request), done]() mutable {
    core::check_namespace(request.namespace_);
    core::check_start(request, options_.limits);
    if (request.permit) {
      throw Error(ErrorCode::unimplemented, "FIELD_UNSUPPORTED",
                  "a client takes a permit with POST pools/{pool}/acquire, not with a start");
    }
    Change change(parts_, now_);
    carry_trace(request.header);
    StartWorkflowExecutionResponse response = start_in(change, request);
    finish(change);
    reply(done, std::move(response));
  });
}

// --- Signal, cancel, terminate ---

namespace {

void check_permit_signal(const core::RunState& run, const RunId& named, const std::string& signal) {
  if (!core::has_permit_prefix(run.workflow_id) || !named.empty()) return;
  if (signal != "release" && signal != "renew") return;
  throw failed_precondition(
      "RUN_ID_REQUIRED",
      "name the run: the current one of " + run.workflow_id.value + " is " + run.run_id.value);
}

event::WorkflowExecutionSignaled signaled_from(SignalWorkflowExecutionRequest& request) {
  event::WorkflowExecutionSignaled signaled;
  signaled.signal_name = std::move(request.signal_name);
  signaled.input = std::move(request.input);
  signaled.identity = std::move(request.identity);
  signaled.header = std::move(request.header);
  signaled.request_id = std::move(request.request_id);
  return signaled;
}

}  // namespace

void Service::signal(SignalWorkflowExecutionRequest request, Done<EmptyResponse> done) {
  submit(done, [this, request = std::move(request), done, is_admin = caller_.is_admin]() mutable {
    core::check_name(request.signal_name, "signalName", options_.limits);
    core::check_optional_name(request.request_id, "requestId", options_.limits);
    core::check_optional_name(request.identity, "identity", options_.limits);
    core::check_payloads(request.input, "input", options_.limits);
    Change change(parts_, now_);
    core::RunState& run = target(change, request.namespace_, request.workflow_execution);
    const bool repeated =
        !request.request_id.empty() && run.request_ids.contains(request.request_id);
    if (!repeated) {
      if (!run.is_open()) throw already_completed();
      check_permit_signal(run, request.workflow_execution.run_id, request.signal_name);
      if (!is_admin && takes_token(run, request.signal_name)) throw token_needed(run);
      change.signal(run, signaled_from(request));
      finish(change);
    }
    reply(done, EmptyResponse{});
  });
}

namespace {

StartWorkflowExecutionRequest start_part(SignalWithStartWorkflowExecutionRequest& request) {
  StartWorkflowExecutionRequest start;
  start.namespace_ = request.namespace_;
  start.workflow_id = request.workflow_id;
  start.workflow_type = request.workflow_type;
  start.task_queue = request.task_queue;
  start.input = std::move(request.input);
  start.workflow_execution_timeout = request.workflow_execution_timeout;
  start.workflow_run_timeout = request.workflow_run_timeout;
  start.workflow_task_timeout = request.workflow_task_timeout;
  start.identity = request.identity;
  start.request_id = request.request_id;
  start.workflow_id_reuse_policy = request.workflow_id_reuse_policy;
  start.workflow_id_conflict_policy = request.workflow_id_conflict_policy;
  start.memo = std::move(request.memo);
  start.header = request.header;
  start.priority = request.priority;
  return start;
}

}  // namespace

void Service::signal_with_start(SignalWithStartWorkflowExecutionRequest request,
                                Done<SignalWithStartWorkflowExecutionResponse> done) {
  submit(done, [this, request = std::move(request), done]() mutable {
    core::check_namespace(request.namespace_);
    core::check_name(request.signal_name, "signalName", options_.limits);
    core::check_payloads(request.signal_input, "signalInput", options_.limits);
    if (core::has_permit_prefix(request.workflow_id)) {
      throw invalid_argument("PERMIT_POLICY_INVALID", "a permit cannot be signalled with a start");
    }
    using Conflict = WorkflowIdConflictPolicy;
    if (request.workflow_id_conflict_policy == Conflict::fail) {
      throw invalid_argument("POLICY_INVALID",
                             "signal-with-start excludes workflowIdConflictPolicy FAIL");
    }
    StartWorkflowExecutionRequest start = start_part(request);
    if (start.workflow_id_conflict_policy == Conflict::unspecified &&
        start.workflow_id_reuse_policy != WorkflowIdReusePolicy::terminate_if_running) {
      start.workflow_id_conflict_policy = Conflict::use_existing;
    }
    core::check_start(start, options_.limits);
    Change change(parts_, now_);
    carry_trace(start.header);
    const StartWorkflowExecutionResponse begun = start_in(change, start);
    core::RunState* run = change.run_by_id(begun.run_id);
    ENSURE(run != nullptr);
    if (run->is_open() &&
        (request.request_id.empty() || !run->request_ids.contains(request.request_id))) {
      event::WorkflowExecutionSignaled signaled;
      signaled.signal_name = request.signal_name;
      signaled.input = request.signal_input;
      signaled.identity = request.identity;
      signaled.header = request.header;
      signaled.request_id = request.request_id;
      change.signal(*run, std::move(signaled));
    }
    finish(change);
    reply(done, SignalWithStartWorkflowExecutionResponse{begun.run_id, begun.first_execution_run_id,
                                                         begun.started});
  });
}

void Service::request_cancel(RequestCancelWorkflowExecutionRequest request,
                             Done<EmptyResponse> done) {
  submit(done, [this, request = std::move(request), done, is_admin = caller_.is_admin] {
    core::check_optional_name(request.identity, "identity", options_.limits);
    core::check_optional_name(request.request_id, "requestId", options_.limits);
    Change change(parts_, now_);
    core::RunState& run = open_target(change, request.namespace_, request.workflow_execution,
                                      request.first_execution_run_id);
    if (!is_admin && is_held_with_token(run)) throw token_needed(run);
    event::WorkflowExecutionCancelRequested cancel;
    cancel.cause = request.reason.substr(0, options_.limits.reason_bytes_max);
    cancel.identity = request.identity;
    cancel.request_id = request.request_id;
    change.step(run, [&](core::Transition& t) { core::request_cancel(t, std::move(cancel)); });
    finish(change);
    reply(done, EmptyResponse{});
  });
}

void Service::terminate(TerminateWorkflowExecutionRequest request, Done<EmptyResponse> done) {
  submit(done, [this, request = std::move(request), done] {
    core::check_optional_name(request.identity, "identity", options_.limits);
    core::check_payloads(request.details, "details", options_.limits);
    Change change(parts_, now_);
    core::RunState& run = open_target(change, request.namespace_, request.workflow_execution,
                                      request.first_execution_run_id);
    event::WorkflowExecutionTerminated terminated;
    terminated.reason = request.reason.substr(0, options_.limits.reason_bytes_max);
    terminated.details = request.details;
    terminated.identity = request.identity;
    change.step(run, [&](core::Transition& t) { core::terminate(t, std::move(terminated)); });
    finish(change);
    reply(done, EmptyResponse{});
  });
}

// --- Describe ---

namespace {

WorkflowExecutionInfo execution_info(const core::RunState& run) {
  WorkflowExecutionInfo info;
  info.execution = run.execution();
  info.type = run.started.workflow_type;
  info.start_time = run.start_time;
  info.execution_time = run.start_time;
  info.close_time = run.close_time;
  info.status = run.status;
  info.history_length = run.next_event_id - 1;
  info.history_size_bytes = run.history_bytes;
  info.parent_execution = run.started.parent_workflow_execution;
  info.root_execution = run.started.root_workflow_execution;
  info.first_run_id = run.first_run_id();
  if (!run.memo.fields.empty()) info.memo = run.memo;
  if (!run.search_attributes.indexed_fields.empty()) info.search_attributes = run.search_attributes;
  info.task_queue = run.started.task_queue.name;
  info.priority = run.started.priority;
  if (!run.is_open()) info.execution_duration = run.close_time - run.start_time;
  if (run.is_permit()) {
    info.fence = run.started.permit->fence;
    info.deadline = run.volatile_state.permit_deadline;
    if (run.hold_end) {
      info.outcome = run.hold_end->outcome;
      info.cause = run.hold_end->cause;
    }
  }
  return info;
}

PendingActivityInfo activity_info(const core::ActivityState& activity) {
  const core::ActivityAttempt& attempt = activity.attempt;
  PendingActivityInfo info;
  info.activity_id = activity.scheduled.activity_id;
  info.activity_type = activity.scheduled.activity_type;
  info.state = is_set(attempt.started_time) ? PendingActivityState::started
                                            : PendingActivityState::scheduled;
  if (activity.cancel_requested_event_id != 0) info.state = PendingActivityState::cancel_requested;
  info.heartbeat_details = attempt.heartbeat_details;
  info.last_heartbeat_time = attempt.last_heartbeat_time;
  info.last_started_time = attempt.started_time;
  info.attempt = attempt.attempt;
  info.maximum_attempts = activity.scheduled.retry_policy->maximum_attempts;
  info.scheduled_time = activity.scheduled_time;
  if (activity.scheduled.schedule_to_close_timeout.count() > 0) {
    info.expiration_time = activity.scheduled_time + activity.scheduled.schedule_to_close_timeout;
  }
  info.last_failure = attempt.last_failure;
  info.last_worker_identity = attempt.identity;
  info.last_attempt_complete_time = attempt.last_complete_time;
  if (attempt.waits_for_retry) info.next_attempt_schedule_time = attempt.scheduled_time;
  info.priority = activity.scheduled.priority;
  return info;
}

void add_children(const core::RunState& run, DescribeWorkflowExecutionResponse& response) {
  for (const auto& [initiated, child] : run.children) {
    PendingChildExecutionInfo info;
    info.workflow_type_name = child.workflow_type.name;
    info.initiated_id = initiated;
    info.parent_close_policy = child.policy;
    info.workflow_id = child.workflow_id;
    if (child.runs.empty()) response.pending_children.push_back(info);
    for (const auto& started : child.runs) {
      info.workflow_id = started.execution.workflow_id;
      info.run_id = started.execution.run_id;
      response.pending_children.push_back(info);
    }
  }
}

DescribeWorkflowExecutionResponse describe_run(const core::RunState& run) {
  DescribeWorkflowExecutionResponse response;
  response.execution_config.task_queue = run.started.task_queue;
  response.execution_config.workflow_execution_timeout = run.started.workflow_execution_timeout;
  response.execution_config.workflow_run_timeout = run.started.workflow_run_timeout;
  response.execution_config.default_workflow_task_timeout = run.started.workflow_task_timeout;
  response.workflow_execution_info = execution_info(run);
  for (const auto& [id, activity] : run.activities) {
    response.pending_activities.push_back(activity_info(activity));
  }
  add_children(run, response);
  if (run.has_task()) {
    const core::WorkflowTaskState& task = run.workflow_task();
    PendingWorkflowTaskInfo info;
    info.state = run.task_started() ? PendingWorkflowTaskState::started
                                    : PendingWorkflowTaskState::scheduled;
    info.scheduled_time = task.scheduled_time;
    info.original_scheduled_time = task.original_scheduled_time;
    info.started_time = task.started_time;
    info.attempt = task.attempt;
    response.pending_workflow_task = info;
  }
  WorkflowExecutionExtendedInfo& extended = response.workflow_extended_info;
  extended.execution_expiration_time = run.started.workflow_execution_expiration_time;
  const Time expires = core::expiration(run);
  if (expires != never) extended.run_expiration_time = expires;
  extended.cancel_requested = run.cancel_requested;
  extended.original_start_time = run.start_time;
  return response;
}

}  // namespace

void Service::describe(DescribeWorkflowExecutionRequest request,
                       Done<DescribeWorkflowExecutionResponse> done) {
  submit_read(done, [this, request = std::move(request), done] {
    Change change(parts_, now_);
    reply(done, describe_run(target(change, request.namespace_, request.execution)));
  });
}

}  // namespace permit::service
