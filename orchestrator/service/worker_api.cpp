// What workers call for workflow tasks, and polls of both kinds.
#include <boost/describe.hpp>
#include <boost/mp11.hpp>

#include "orchestrator/core/activity_transitions.h"
#include "orchestrator/core/client_transitions.h"
#include "orchestrator/core/validate.h"
#include "orchestrator/core/worker_transitions.h"
#include "orchestrator/protocol/ensure.h"
#include "orchestrator/protocol/json.h"
#include "orchestrator/service/service.h"
#include "orchestrator/service/task_token.h"

namespace permit::service {

namespace {

using SteadyClock = std::chrono::steady_clock;

void check_namespace(const std::string& namespace_) {
  if (namespace_ == "default") return;
  throw not_found("NAMESPACE_NOT_FOUND", "there is no such namespace; only \"default\" exists");
}

void check_poll(const std::string& namespace_, const TaskQueue& queue, const std::string& identity,
                const core::Limits& limits) {
  check_namespace(namespace_);
  core::check_name(queue.name, "taskQueue.name", limits);
  core::check_optional_name(identity, "identity", limits);
}

SteadyClock::time_point poll_deadline(Duration wanted, Duration max) {
  Duration wait = wanted.count() == 0 ? max : wanted;
  if (wait > max || wait.count() < 0) wait = max;
  return SteadyClock::now() + wait;
}

}  // namespace

// --- Polls ---

std::int64_t Service::poll_workflow_task(PollWorkflowTaskQueueRequest request,
                                         Done<PollWorkflowTaskQueueResponse> done) {
  const std::int64_t id = ++last_wait_id_;
  submit(done, [this, id, request = std::move(request), done, connection = caller_.connection] {
    check_poll(request.namespace_, request.task_queue, request.identity, options_.limits);
    if (gone_early_.contains(id)) return;
    const Matching::QueueKey queue{TaskQueueType::workflow, request.task_queue.name};
    const bool sticky = request.task_queue.kind == TaskQueueKind::sticky;
    const std::string normal = sticky ? request.task_queue.normal_name : "";
    matching_.note_poll(queue, request.identity, now_, connection, normal);
    while (const auto offer = matching_.take_offer(queue)) {
      if (offer->query != 0) {
        auto task = take_query(*offer);
        if (!task) continue;
        reply(done, std::move(*task));
        return;
      }
      Change change(parts_, now_);
      if (!change.take(queue, *offer, request.identity)) continue;
      finish(change);
      matching_.note_dispatched(queue, now_);
      reply(done, task_for(change.run(offer->run)));
      return;
    }
    if (matching_.parked() >= options_.polls_parked_max) {
      throw resource_exhausted("POLLS_LIMIT", "too many polls are waiting; try again later");
    }
    matching_.park(
        queue, {id, request.identity, poll_deadline(request.poll_wait, options_.poll_wait_max)});
    const std::string& label = normal.empty() ? queue.name : normal;
    workflow_polls_.emplace(id, ParkedPoll{done, &meter_.metrics.queues.of({queue.type, label})});
  });
  return id;
}

std::int64_t Service::poll_activity_task(PollActivityTaskQueueRequest request,
                                         Done<PollActivityTaskQueueResponse> done) {
  const std::int64_t id = ++last_wait_id_;
  submit(done, [this, id, request = std::move(request), done, connection = caller_.connection] {
    check_poll(request.namespace_, request.task_queue, request.identity, options_.limits);
    if (gone_early_.contains(id)) return;
    const Matching::QueueKey queue{TaskQueueType::activity, request.task_queue.name};
    matching_.note_poll(queue, request.identity, now_, connection);
    while (const auto offer = matching_.take_offer(queue)) {
      Change change(parts_, now_);
      if (!change.take(queue, *offer, request.identity)) continue;
      finish(change);
      matching_.note_dispatched(queue, now_);
      reply(done, activity_for(change.run(offer->run), offer->scheduled_event_id));
      return;
    }
    if (matching_.parked() >= options_.polls_parked_max) {
      throw resource_exhausted("POLLS_LIMIT", "too many polls are waiting; try again later");
    }
    matching_.park(
        queue, {id, request.identity, poll_deadline(request.poll_wait, options_.poll_wait_max)});
    activity_polls_.emplace(id,
                            ParkedPoll{done, &meter_.metrics.queues.of({queue.type, queue.name})});
  });
  return id;
}

void Service::answer_matches(const Change& change) {
  for (const Change::Match& match : change.matches()) {
    const core::RunState* run = cache_.find(match.offer.run);
    ENSURE(run != nullptr);
    if (match.offer.scheduled_event_id == 0) {
      PollWorkflowTaskQueueResponse task = task_for(*run);
      const auto poll = workflow_polls_.extract(match.poller.id);
      ENSURE(!poll.empty());
      reply(poll.mapped().done, std::move(task));
    } else {
      PollActivityTaskQueueResponse task = activity_for(*run, match.offer.scheduled_event_id);
      const auto poll = activity_polls_.extract(match.poller.id);
      ENSURE(!poll.empty());
      reply(poll.mapped().done, std::move(task));
    }
  }
}

void Service::forget_poll(std::int64_t id) {
  if (!jobs_.empty()) gone_early_.insert(id);
  matching_.remove_poller(id, time());
  workflow_polls_.erase(id);
  activity_polls_.erase(id);
  query_waits_.erase(id);
  const auto history = history_waits_.find(id);
  if (history != history_waits_.end()) {
    const auto [begin, end] = history_waits_by_run_.equal_range(history->second.run);
    for (auto it = begin; it != end; ++it) {
      if (it->second != id) continue;
      history_waits_by_run_.erase(it);
      break;
    }
    history_waits_.erase(history);
  }
  leave_acquire_wait(id);
}

void Service::connection_closed(std::uint64_t connection, Matching::EndedBy end) {
  matching_.connection_closed(connection, end, time());
}

std::optional<SteadyClock::time_point> Service::next_poll_deadline() const {
  std::optional<SteadyClock::time_point> next = matching_.next_deadline();
  const auto consider = [&](SteadyClock::time_point deadline) {
    if (!next || deadline < *next) next = deadline;
  };
  for (const auto& [id, wait] : history_waits_) consider(wait.deadline);
  for (const auto& [id, wait] : acquire_waits_) consider(wait.deadline);
  for (const auto& [id, wait] : query_waits_) consider(wait.deadline);
  return next;
}

// After a batch that came to nothing: what it had handed out is on offer again, and who parked
// meanwhile, or was about to get it, would not see it. They poll again.
void Service::refuse_polls(const Error& error) {
  matching_.take_all_pollers();
  for (const auto& [id, poll] : std::exchange(workflow_polls_, {})) refuse(poll.done, error);
  for (const auto& [id, poll] : std::exchange(activity_polls_, {})) refuse(poll.done, error);
}

// With nothing: their wait is over.
void Service::answer_polls(const std::vector<Poller>& pollers) {
  for (const Poller& poller : pollers) {
    if (const auto poll = workflow_polls_.extract(poller.id)) {
      ++poll.mapped().queue->polls_timed_out;
      poll.mapped().done(PollWorkflowTaskQueueResponse{});
    } else if (const auto activity = activity_polls_.extract(poller.id)) {
      ++activity.mapped().queue->polls_timed_out;
      activity.mapped().done(PollActivityTaskQueueResponse{});
    }
  }
}

void Service::expire_polls(SteadyClock::time_point now) {
  answer_polls(matching_.take_expired(now));
  std::vector<std::int64_t> expired;
  for (const auto& [id, wait] : history_waits_) {
    if (wait.deadline <= now) expired.push_back(id);
  }
  for (const std::int64_t id : expired) {
    HistoryWait wait = history_waits_.at(id);
    forget_poll(id);
    // Nothing new: an empty page with the same place.
    wait.request.wait_new_event = false;
    HistoryPart nothing;
    nothing.next_page_token = wait.request.next_page_token;
    wait.done(std::move(nothing));
  }
  expire_acquire_waits(now);
  expire_queries(now);
}

void Service::answer_all_polls() { expire_polls(SteadyClock::time_point::max()); }

// --- Tasks as workers see them ---

PollWorkflowTaskQueueResponse Service::task_for(const core::RunState& state) {
  const core::WorkflowTaskState& task = state.workflow_task();
  ENSURE(state.task_started());
  PollWorkflowTaskQueueResponse response;
  response.task_token = parts_.tokens.encode({TaskToken::Kind::workflow_task, state.number,
                                              task.scheduled_event_id, task.attempt, task.nonce});
  response.workflow_execution = state.execution();
  response.workflow_type = state.started.workflow_type;
  response.previous_started_event_id = state.last_completed_started_id;
  response.started_event_id = task.started_event_id;
  response.attempt = task.attempt;
  response.workflow_execution_task_queue = state.started.task_queue;
  response.scheduled_time = task.scheduled_time;
  response.started_time = task.started_time;
  // A sticky worker has what came before; others begin at the beginning.
  const bool continues = task.on_sticky_queue && state.last_completed_started_id > 0;
  const std::int64_t from = continues ? state.last_completed_started_id + 1 : 1;
  std::string text = history_text(state, from, state.next_event_id);
  for (const Event& event : core::transient_events(state, options_.limits)) {
    text.pop_back();
    if (text.size() > 1) text += ',';
    write_json(event, text);
    text += ']';
  }
  response.history = RawHistory{RawJson{std::move(text)}};
  return response;
}

PollActivityTaskQueueResponse Service::activity_for(const core::RunState& state, std::int64_t id) {
  const core::ActivityState& activity = state.activities.at(id);
  const event::ActivityTaskScheduled& scheduled = activity.scheduled;
  const core::ActivityAttempt& attempt = activity.attempt;
  PollActivityTaskQueueResponse response;
  response.task_token = parts_.tokens.encode(
      {TaskToken::Kind::activity, state.number, id, attempt.attempt, attempt.nonce});
  response.workflow_namespace = state.namespace_;
  response.workflow_type = state.started.workflow_type;
  response.workflow_execution = state.execution();
  response.activity_type = scheduled.activity_type;
  response.activity_id = scheduled.activity_id;
  response.header = scheduled.header;
  response.input = scheduled.input;
  response.heartbeat_details = attempt.heartbeat_details;
  response.scheduled_time = activity.scheduled_time;
  response.current_attempt_scheduled_time = attempt.scheduled_time;
  response.started_time = attempt.started_time;
  response.attempt = attempt.attempt;
  response.schedule_to_close_timeout = scheduled.schedule_to_close_timeout;
  response.start_to_close_timeout = scheduled.start_to_close_timeout;
  response.heartbeat_timeout = scheduled.heartbeat_timeout;
  response.retry_policy = scheduled.retry_policy;
  response.priority = scheduled.priority;
  return response;
}

// --- Workflow task completions ---

namespace {

// The run whose started task this token is for.
core::RunState& run_of_task(Change& change, const Bytes& bytes) {
  const auto token = change.parts().tokens.decode(bytes, TaskToken::Kind::workflow_task);
  if (!token) throw task_stale("the task token is not one that this server gave");
  core::RunState* run = change.find(token->run);
  if (run == nullptr) throw task_stale("Workflow task not found.");
  if (!run->is_open()) throw task_stale("workflow execution already completed");
  const core::WorkflowTaskState& task = run->workflow_task();
  const bool current = run->task_started() && task.nonce == token->nonce &&
                       task.attempt == token->attempt &&
                       task.scheduled_event_id == token->scheduled_event_id;
  if (!current) throw task_stale("Workflow task not found.");
  return *run;
}

Failure failure_of(const core::CommandRejected& rejected, const std::string& cause) {
  Failure failure;
  failure.message = cause + ": " + rejected.message;
  failure.source = "Server";
  failure.server_failure_info = ServerFailureInfo{true};
  return failure;
}

// "BAD_START_TIMER_ATTRIBUTES" → "BadStartTimerAttributes", as Temporal's messages say it.
std::string name_of(WorkflowTaskFailedCause cause) {
  std::string name;
  boost::mp11::mp_for_each<boost::describe::describe_enumerators<WorkflowTaskFailedCause>>(
      [&](auto enumerator) {
        if (enumerator.value == cause) name = enumerator.name;
      });
  std::string camel;
  bool begins_word = true;
  for (const char c : name) {
    if (c == '_') {
      begins_word = true;
      continue;
    }
    camel += begins_word ? static_cast<char>(c - 'a' + 'A') : c;
    begins_word = false;
  }
  return camel;
}

}  // namespace

// A completion with a command that may not be: the task fails with that cause and is offered again.
// A repeated failure writes nothing; the task is left to time out, which slows the worker down.
void Service::reject_completion(const RespondWorkflowTaskCompletedRequest& request,
                                const core::CommandRejected& rejected) {
  const std::string cause = name_of(rejected.cause);
  const bool unhandled = rejected.cause == WorkflowTaskFailedCause::unhandled_command;
  {
    Change change(parts_, now_);
    core::RunState& run = run_of_task(change, request.task_token);
    if (rejected.terminates_run) {
      event::WorkflowExecutionTerminated terminated;
      terminated.reason = rejected.message;
      terminated.identity = "permit-server";
      change.step(run, [&](core::Transition& t) { core::terminate(t, std::move(terminated)); });
      finish(change);
    } else if (run.workflow_task().attempt == 1 || unhandled) {
      change.step(run, [&](core::Transition& t) {
        core::fail_workflow_task(t,
                                 {rejected.cause, failure_of(rejected, cause), request.identity});
      });
      finish(change);
    }
    meter_.task_failed(run, rejected.cause, news_.tally);
  }
  throw invalid_argument("COMMAND_REJECTED",
                         unhandled ? "UnhandledCommand" : cause + ": " + rejected.message);
}

void Service::complete_workflow_task(RespondWorkflowTaskCompletedRequest request,
                                     Done<RespondWorkflowTaskCompletedResponse> done) {
  submit(done, [this, request = std::move(request), done, is_admin = caller_.is_admin] {
    core::check_optional_name(request.identity, "identity", options_.limits);
    try {
      Change change(parts_, now_);
      change.spare_tokens(!is_admin);
      core::RunState& run = run_of_task(change, request.task_token);
      const RunNumber number = run.number;
      auto completion = core::Completion::done;
      change.step(run, [&](core::Transition& t) {
        completion = core::complete_workflow_task(t, request, options_.limits);
      });
      if (completion == core::Completion::timed_out) {
        change.send(core::TaskClosed{number});
        finish(change);
        throw task_stale("Workflow task heartbeat timeout: it was kept alive for too long.");
      }
      if (request.return_new_workflow_task) change.claim_workflow_task(number, request.identity);
      change.send(core::TaskClosed{number});  // behind what its commands ask for
      finish(change);
      RespondWorkflowTaskCompletedResponse response;
      if (change.claimed(number)) response.workflow_task = task_for(change.run(number));
      reply(done, std::move(response));
    } catch (const core::CommandRejected& rejected) {
      reject_completion(request, rejected);
    }
  });
}

void Service::fail_workflow_task(RespondWorkflowTaskFailedRequest request,
                                 Done<EmptyResponse> done) {
  submit(done, [this, request = std::move(request), done] {
    core::check_optional_name(request.identity, "identity", options_.limits);
    Change change(parts_, now_);
    core::RunState& run = run_of_task(change, request.task_token);
    const RunNumber number = run.number;
    change.step(run, [&](core::Transition& t) {
      if (request.cause == WorkflowTaskFailedCause::grpc_message_too_large) {
        // No retry would make the answer smaller.
        event::WorkflowExecutionTerminated terminated;
        terminated.reason = "the worker's answer is larger than a message may be";
        terminated.identity = "permit-server";
        core::terminate(t, std::move(terminated));
        return;
      }
      core::fail_workflow_task(t, {request.cause, request.failure, request.identity});
    });
    change.send(core::TaskClosed{number});
    finish(change);
    meter_.task_failed(change.run(number), request.cause, news_.tally);
    reply(done, EmptyResponse{});
  });
}

void Service::reset_sticky(ResetStickyTaskQueueRequest request, Done<EmptyResponse> done) {
  submit(done, [this, request = std::move(request), done] {
    Change change(parts_, now_);
    core::RunState& run = open_target(change, request.namespace_, request.execution);
    if (!run.has_task() || run.task_started()) {
      run.volatile_state.sticky = {};
      change.touch(run);
    }
    finish(change);
    reply(done, EmptyResponse{});
  });
}

// --- Workers and their queues ---

void Service::shutdown_worker(ShutdownWorkerRequest request, Done<EmptyResponse> done) {
  submit(done, [this, request = std::move(request), done] {
    core::check_optional_name(request.sticky_task_queue, "stickyTaskQueue", options_.limits);
    const Matching::QueueKey queue{TaskQueueType::workflow, request.sticky_task_queue};
    core::check_optional_name(request.identity, "identity", options_.limits);
    note_goodbye(request);
    matching_.forget_polls(queue, now_);
    if (!request.identity.empty()) {
      answer_polls(matching_.take_pollers_of(request.identity));
    }
    // What is on offer there goes to the normal queue at once.
    std::vector<Offer> offers;
    while (const auto offer = matching_.take_offer(queue)) offers.push_back(*offer);
    for (const Offer& offer : offers) {
      Change change(parts_, now_);
      core::RunState* run = change.find(offer.run);
      if (run == nullptr) continue;
      if (offer.query != 0) {
        offer_query_again(*run, offer.query);
        continue;
      }
      if (!run->is_open() || !run->has_task() || run->task_started()) continue;
      if (core::task_queue_of(*run) != queue.name) continue;
      if (!run->workflow_task().on_sticky_queue) {
        matching_.offer(queue, offer);  // the request named a queue that is not sticky
        continue;
      }
      change.step(*run, [](core::Transition& t) { core::time_out_workflow_task(t); });
      finish(change);
    }
    reply(done, EmptyResponse{});
  });
}

void Service::describe_task_queue(DescribeTaskQueueRequest request,
                                  Done<DescribeTaskQueueResponse> done) {
  submit_read(done, [this, request = std::move(request), done] {
    check_poll(request.namespace_, request.task_queue, "", options_.limits);
    const bool activity = request.task_queue_type == TaskQueueType::activity;
    const Matching::QueueKey queue{activity ? TaskQueueType::activity : TaskQueueType::workflow,
                                   request.task_queue.name};
    DescribeTaskQueueResponse response;
    for (const auto& [identity, at] : matching_.pollers(queue, now_ - std::chrono::minutes(5))) {
      response.pollers.push_back({at, identity});
    }
    if (request.report_stats) {
      const TaskQueueInfo info = queue_info(queue);
      TaskQueueStats& stats = response.stats.emplace();
      stats.approximate_backlog_count = info.backlog;
      if (is_set(info.oldest_task)) stats.approximate_backlog_age = now_ - info.oldest_task;
      stats.tasks_add_rate = info.added_per_second;
      stats.tasks_dispatch_rate = info.dispatched_per_second;
    }
    reply(done, std::move(response));
  });
}

void Service::list_task_queues(ListTaskQueuesRequest request, Done<ListTaskQueuesResponse> done) {
  submit_read(done, [this, request = std::move(request), done] {
    check_namespace(request.namespace_);
    reply(done, ListTaskQueuesResponse{queues()});
  });
}

}  // namespace permit::service
