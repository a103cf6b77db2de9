// Starting, signalling, ending and looking at runs.
#include <algorithm>

#include "orchestrator/core/client_transitions.h"
#include "orchestrator/core/validate.h"
#include "orchestrator/protocol/ensure.h"
#include "orchestrator/protocol/json.h"
#include "orchestrator/service/event_text.h"
#include "orchestrator/service/full_disk.h"
#include "orchestrator/service/service.h"
#include "orchestrator/service/token_holds.h"
#include "orchestrator/service/uniqueness.h"

namespace permit::service {

namespace {

void check_namespace(const std::string& namespace_) {
  if (namespace_ == "default") return;
  throw Error(ErrorCode::not_found, "NAMESPACE_NOT_FOUND",
              "there is no such namespace; only \"default\" exists");
}

Error run_not_found(const WorkflowExecution& execution) {
  std::string message = "no workflow with id " + execution.workflow_id.value;
  if (!execution.run_id.empty()) message += " and run id " + execution.run_id.value;
  return not_found("WORKFLOW_NOT_FOUND", message + " was found");
}

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

// The run a request means: that very run, or the current one of the id, or of the chain that began
// with first_run_id.
core::RunState& Service::target(Change& change, const std::string& namespace_,
                                const WorkflowExecution& execution, const RunId& first_run_id) {
  check_namespace(namespace_);
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
  const std::string first = history_text(run.number, 1, 2);
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
    check_namespace(request.namespace_);
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
    check_namespace(request.namespace_);
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

// --- History ---

namespace {

struct PageToken {
  RunNumber run;
  std::int64_t from_event_id = 1;
};

Bytes encode_page(const PageToken& token) {
  return Bytes{std::to_string(token.run.value) + "." + std::to_string(token.from_event_id)};
}

PageToken decode_page(const Bytes& bytes) {
  const std::string& text = bytes.value;
  const auto dot = text.find('.');
  const bool digits = !text.empty() && text.size() < 40 && dot != std::string::npos && dot > 0 &&
                      dot < 19 && text.size() - dot - 1 > 0 && text.size() - dot - 1 < 19 &&
                      text.find_first_not_of("0123456789.") == std::string::npos &&
                      text.rfind('.') == dot;
  if (!digits) {
    throw invalid_argument("PAGE_TOKEN_INVALID",
                           "nextPageToken is not one that this server gave; begin without it");
  }
  return {RunNumber{std::stoll(text.substr(0, dot))}, std::stoll(text.substr(dot + 1))};
}

}  // namespace

// The stored text of events [from, to), spliced.
std::string Service::history_text(RunNumber run, std::int64_t from_event_id,
                                  std::int64_t to_event_id) {
  std::string text = "[";
  const auto add = [&](std::string_view events) {
    if (text.size() > 1) text += ',';
    text += events;
  };
  const std::vector<store::HistoryBatch> batches = store_.history(run, from_event_id, to_event_id);
  for (std::size_t i = 0; i < batches.size(); ++i) {
    const store::HistoryBatch& batch = batches[i];
    std::int64_t id = batch.first_event_id;
    // It ends where the next begins, if there is one.
    const bool ends_in_time =
        i + 1 < batches.size() && batches[i + 1].first_event_id <= to_event_id;
    if (id >= from_event_id && ends_in_time) {
      add(batch.events);
      continue;
    }
    for (const std::string_view event : split_events(batch.events)) {
      if (id >= from_event_id && id < to_event_id) add(event);
      ++id;
    }
  }
  text += ']';
  if (from_event_id > 1 || to_event_id < 2) return text;
  const core::RunState* state = cache_.find(run);
  return state != nullptr && is_held_with_token(*state) ? without_request_id(text) : text;
}

// A page, or nothing if the caller wants to wait for what has not happened yet.
std::optional<GetWorkflowExecutionHistoryResponse> Service::history_page(
    const GetWorkflowExecutionHistoryRequest& request, RunNumber number) {
  const core::RunState* run = cache_.find(number);
  if (run == nullptr) throw run_not_found(request.execution);
  PageToken token{number, 1};
  if (!request.next_page_token.value.empty()) token = decode_page(request.next_page_token);
  if (token.run != number) {
    throw invalid_argument("PAGE_TOKEN_INVALID", "nextPageToken belongs to another run");
  }
  GetWorkflowExecutionHistoryResponse response;
  const std::int64_t end = run->next_event_id;
  if (request.history_event_filter_type == HistoryEventFilterType::close_event) {
    if (run->is_open() && request.wait_new_event) return std::nullopt;
    response.history.events.text = history_text(number, end - 1, end);
    return response;
  }
  constexpr std::int64_t page_events_max = 1'000;
  std::int64_t size = request.maximum_page_size;
  if (size <= 0 || size > page_events_max) size = page_events_max;
  if (token.from_event_id >= end && run->is_open() && request.wait_new_event) return std::nullopt;
  const std::int64_t to = std::min(end, token.from_event_id + size);
  response.history.events.text = history_text(number, token.from_event_id, to);
  if (to < end || (run->is_open() && request.wait_new_event)) {
    response.next_page_token = encode_page({number, to});
  }
  return response;
}

std::int64_t Service::history(GetWorkflowExecutionHistoryRequest request,
                              Done<GetWorkflowExecutionHistoryResponse> done) {
  const std::int64_t id = ++last_wait_id_;
  submit_read(done, [this, id, request = std::move(request), done] {
    Change change(parts_, now_);
    // A page token pins the run, whatever is current by now.
    RunNumber number;
    if (!request.next_page_token.value.empty()) {
      check_namespace(request.namespace_);
      number = decode_page(request.next_page_token).run;
      const core::RunState* run = change.find(number);
      if (run == nullptr || run->workflow_id != request.execution.workflow_id) {
        throw invalid_argument("PAGE_TOKEN_INVALID", "nextPageToken belongs to another run");
      }
    } else {
      number = target(change, request.namespace_, request.execution).number;
    }
    if (auto page = history_page(request, number)) {
      reply(done, std::move(*page));
      return;
    }
    if (gone_early_.contains(id)) return;
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    history_waits_.emplace(id, HistoryWait{request, number, done, deadline});
    history_waits_by_run_.emplace(number, id);
  });
  return id;
}

void Service::wake_history_waits(const Change& change) {
  if (history_waits_.empty()) return;
  for (const RunNumber number : change.touched_runs()) {
    if (!change.has_new_events(number)) continue;
    const auto [begin, end] = history_waits_by_run_.equal_range(number);
    for (auto it = begin; it != end;) {
      HistoryWait& wait = history_waits_.at(it->second);
      auto page = history_page(wait.request, number);
      if (!page) {
        ++it;
        continue;
      }
      reply(wait.done, std::move(*page));
      history_waits_.erase(it->second);
      it = history_waits_by_run_.erase(it);
    }
  }
}

// After a batch that came to nothing: runs it had started are gone, and their numbers will be given
// again.
void Service::drop_lost_history_waits(const Error& error) {
  for (auto it = history_waits_by_run_.begin(); it != history_waits_by_run_.end();) {
    if (cache_.find(it->first) != nullptr) {
      ++it;
      continue;
    }
    const auto wait = history_waits_.find(it->second);
    refuse(wait->second.done, error);
    history_waits_.erase(wait);
    it = history_waits_by_run_.erase(it);
  }
}

}  // namespace permit::service
