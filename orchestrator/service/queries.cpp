// Queries: a question to a run's workflow code, answered by a worker, leaving no trace in history.
// A query waits until the run has no workflow task outstanding, so that it sees what that did, and
// is then handed to a worker as a task of its own.
#include "orchestrator/core/validate.h"
#include "orchestrator/protocol/ensure.h"
#include "orchestrator/service/service.h"
#include "orchestrator/service/task_token.h"

namespace permit::service {

namespace {

constexpr auto query_time_max = std::chrono::seconds(10);

bool rejects(QueryRejectCondition condition, WorkflowExecutionStatus status) {
  if (status == WorkflowExecutionStatus::running) return false;
  if (condition == QueryRejectCondition::not_open) return true;
  return condition == QueryRejectCondition::not_completed_cleanly &&
         status != WorkflowExecutionStatus::completed;
}

}  // namespace

std::int64_t Service::query(QueryWorkflowRequest request, Done<QueryWorkflowResponse> done) {
  const std::int64_t id = ++last_wait_id_;
  submit(done, [this, id, request = std::move(request), done] {
    core::check_name(request.query.query_type, "query.queryType", options_.limits);
    core::check_payloads(request.query.query_args, "query.queryArgs", options_.limits);
    Change change(parts_, now_);
    const core::RunState& run = target(change, request.namespace_, request.execution);
    if (rejects(request.query_reject_condition, run.status)) {
      reply(done, QueryWorkflowResponse{std::nullopt, QueryRejected{run.status}});
      return;
    }
    if (gone_early_.contains(id)) return;
    QueryWait wait;
    wait.run = run.number;
    wait.query = request.query;
    wait.done = done;
    wait.deadline = std::chrono::steady_clock::now() + query_time_max;
    query_waits_.emplace(id, std::move(wait));
    hand_out_queries(run);
  });
  return id;
}

// To a parked worker, or on the queue; once nothing is outstanding that the answer should reflect.
void Service::hand_out_queries(const core::RunState& run) {
  if (run.has_task()) return;
  for (auto& [id, wait] : query_waits_) {
    if (wait.run != run.number || wait.handed_out) continue;
    wait.handed_out = true;
    const std::string& sticky = run.volatile_state.sticky.name;
    const bool on_sticky =
        run.is_open() && !sticky.empty() &&
        matching_.polled_since({TaskQueueType::workflow, sticky}, now_ - std::chrono::seconds(10));
    const Matching::QueueKey queue{TaskQueueType::workflow,
                                   on_sticky ? sticky : run.started.task_queue.name};
    if (const auto poller = matching_.take_poller(queue)) {
      const auto poll = workflow_polls_.extract(poller->id);
      ENSURE(!poll.empty());
      reply(poll.mapped().done, query_task_for(run, id));
    } else {
      matching_.offer(queue, Offer{run.number, 0, id, now_});
    }
  }
}

// Its queue's worker has left.
void Service::offer_query_again(const core::RunState& run, std::int64_t id) {
  const auto found = query_waits_.find(id);
  if (found == query_waits_.end()) return;
  found->second.handed_out = false;
  hand_out_queries(run);
}

// After a batch that came to nothing and took all offers with it. Workers that have a query from an
// earlier batch may still answer it.
void Service::offer_queries_again(const Error& error) {
  std::set<RunNumber> runs;
  for (auto it = query_waits_.begin(); it != query_waits_.end();) {
    if (cache_.find(it->second.run) == nullptr) {  // that batch had started it
      refuse(it->second.done, error);
      it = query_waits_.erase(it);
      continue;
    }
    it->second.handed_out = false;
    runs.insert(it->second.run);
    ++it;
  }
  for (const RunNumber run : runs) hand_out_queries(*cache_.find(run));
}

PollWorkflowTaskQueueResponse Service::query_task_for(const core::RunState& run, std::int64_t id) {
  QueryWait& wait = query_waits_.at(id);
  if (wait.nonce == 0) wait.nonce = ids_.nonce();
  news_.tally.counters.push_back(
      &meter_.metrics.queues.of({TaskQueueType::workflow, run.started.task_queue.name})
           .polls_served);
  PollWorkflowTaskQueueResponse response;
  response.task_token =
      parts_.tokens.encode({TaskToken::Kind::query, run.number, id, 1, wait.nonce});
  response.workflow_execution = run.execution();
  response.workflow_type = run.started.workflow_type;
  response.previous_started_event_id = run.last_completed_started_id;
  response.started_event_id = run.last_completed_started_id;
  response.attempt = 1;
  response.workflow_execution_task_queue = run.started.task_queue;
  response.history = RawHistory{RawJson{history_text(run, 1, run.next_event_id)}};
  response.query = wait.query;
  return response;
}

// A poll has taken a query from its queue; nothing if nobody waits for the answer any more.
std::optional<PollWorkflowTaskQueueResponse> Service::take_query(const Offer& offer) {
  if (!query_waits_.contains(offer.query)) return std::nullopt;
  const core::RunState* run = cache_.find(offer.run);
  if (run == nullptr) return std::nullopt;
  return query_task_for(*run, offer.query);
}

void Service::complete_query(RespondQueryTaskCompletedRequest request, Done<EmptyResponse> done) {
  submit(done, [this, request = std::move(request), done] {
    const auto token = parts_.tokens.decode(request.task_token, TaskToken::Kind::query);
    const auto found = token ? query_waits_.find(token->scheduled_event_id) : query_waits_.end();
    if (found == query_waits_.end() || found->second.nonce != token->nonce) {
      throw not_found("TASK_NOT_FOUND", "query task not found: it was answered, or given up");
    }
    core::check_payloads(request.query_result, "queryResult", options_.limits);
    const Done<QueryWorkflowResponse> asker = found->second.done;
    query_waits_.erase(found);
    if (request.completed_type == QueryResultType::answered) {
      reply(asker, QueryWorkflowResponse{request.query_result, std::nullopt});
    } else {
      std::string message = request.error_message.empty() ? "the query failed"
                                                          : request.error_message.substr(0, 4'096);
      refuse(asker, invalid_argument("QUERY_FAILED", std::move(message)));
    }
    reply(done, EmptyResponse{});
  });
}

void Service::expire_queries(std::chrono::steady_clock::time_point now) {
  std::vector<Done<QueryWorkflowResponse>> expired;
  for (auto it = query_waits_.begin(); it != query_waits_.end();) {
    if (it->second.deadline > now) {
      ++it;
      continue;
    }
    expired.push_back(std::move(it->second.done));
    it = query_waits_.erase(it);
  }
  for (const auto& done : expired) {
    done(Error(ErrorCode::deadline_exceeded, "QUERY_TIMED_OUT",
               "no worker answered the query in time; is one polling the workflow's task queue?"));
  }
}

}  // namespace permit::service
