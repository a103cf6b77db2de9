// What workers answer, and what must come of it.
#include "orchestrator/protocol/json.h"
#include "tests/simulation/workers.h"
#include "tests/simulation/workflows.h"

namespace permit::simulation {

using namespace std::chrono_literals;

void Workers::take_up(Worker& worker) {
  const std::size_t index = world_.chance.below(worker.tasks.size());
  Task& task = worker.tasks[index];
  if (task.resumes > world_.now()) return;
  sometimes(is_set(task.resumes), "a paused worker wakes up with its task");
  if (worker.queue == Queue::activities && world_.chance.percent(50)) {
    if (world_.chance.percent(70)) heartbeat(task);  // else it is still at work, and silent
    return;
  }
  const Task taken = task;
  worker.tasks.erase(worker.tasks.begin() + static_cast<std::ptrdiff_t>(index));
  if (world_.fault(world_.plan.invalid / 3)) answer_garbage(taken);
  answer(worker, taken);
}

void Workers::answer(Worker& worker, const Task& task) {
  past_.emplace_back(static_cast<std::size_t>(&worker - workers_.data()), task);
  if (past_.size() > 40) past_.erase(past_.begin());
  if (worker.queue == Queue::activities) {
    answer_activity(task);
  } else {
    answer_workflow_task(worker, task);
  }
}

// A task that somebody had once: answered already, timed out, or of a run that has closed.
void Workers::answer_stale() {
  const auto& [index, task] = world_.chance.pick(past_);
  const Task stale = task;
  world_.say("(again)");
  if (workers_[index].queue == Queue::activities) {
    if (world_.chance.percent(40)) {
      heartbeat(stale);
    } else {
      answer_activity(stale);
    }
  } else {
    answer_workflow_task(workers_[index], stale);
  }
}

// With a token that is nobody's.
void Workers::answer_garbage(const Task& task) {
  RespondWorkflowTaskCompletedRequest request;
  request.namespace_ = "default";
  request.task_token = task.token;
  std::string& token = request.task_token.value;
  token[world_.chance.below(token.size())] = static_cast<char>('0' + world_.chance.below(10));
  if (token == task.token.value) return;
  world_.say("garbage token");
  world_.ask(rpc::complete_workflow_task, request,
             std::function([](service::Result<RespondWorkflowTaskCompletedResponse> result) {
               require(std::holds_alternative<Error>(result), "a token that is nobody's was taken");
               sometimes("a token that is nobody's is refused");
             }));
}

// Whether the server does at once what is due.
bool Workers::is_punctual() const {
  return !world_.server_->disk_is_full() && world_.batch_time > world_.disk_freed + 2s;
}

// --- Workflow tasks ---

void Workers::answer_workflow_task(Worker& worker, const Task& task) {
  const auto index = static_cast<std::size_t>(&worker - workers_.data());
  const RunTrace* run = world_.ledger.find(task.run);
  require(run != nullptr, "a task of a run that is not there was handed out");
  world_.say(worker.identity + " answers for " + run->workflow_id.value);
  if (worker.runner) {
    answer_by_code(index, task);
  } else if (world_.fault(world_.plan.invalid)) {
    fail(task);
  } else {
    RespondWorkflowTaskCompletedRequest request;
    request.commands =
        worker.queue == Queue::permits ? play_permit(world_, *run) : play_parent(world_, *run);
    request.return_new_workflow_task = world_.chance.percent(20);
    request.force_create_new_workflow_task = !world_.draining && world_.chance.percent(5);
    complete(index, task, std::move(request));
  }
}

void Workers::answer_by_code(std::size_t index, const Task& task) {
  worker::WorkflowTaskAnswer answer = workers_[index].runner->run(*task.response);
  if (auto* completed = std::get_if<RespondWorkflowTaskCompletedRequest>(&answer)) {
    complete(index, task, std::move(*completed));
  } else if (auto* failed = std::get_if<RespondWorkflowTaskFailedRequest>(&answer)) {
    world_.send([this, request = *failed] { world_.ask(rpc::fail_workflow_task, request); });
  }
}

void Workers::fail(const Task& task) {
  RespondWorkflowTaskFailedRequest request;
  request.task_token = task.token;
  request.namespace_ = "default";
  request.cause = WorkflowTaskFailedCause::workflow_worker_unhandled_failure;
  sometimes("a worker says that it cannot do its task");
  world_.send([this, request] { world_.ask(rpc::fail_workflow_task, request); });
}

void Workers::complete(std::size_t index, const Task& task,
                       RespondWorkflowTaskCompletedRequest request) {
  using Response = RespondWorkflowTaskCompletedResponse;
  const auto promise = world_.promises.make(Trace::task_completed);
  promise->once = true;
  promise->named = task.run_id;
  request.task_token = task.token;
  request.namespace_ = "default";
  request.identity = promise->mark;
  const auto runner = workers_[index].runner;
  const std::string text = runner ? text_of(request.commands) : "";
  world_.send([this, request, promise, index, task, runner, text] {
    world_.ask(rpc::complete_workflow_task, request, promise,
               std::function([this, index, task, runner, text,
                              mark = promise->mark](service::Result<Response> result) {
                 const auto* response = std::get_if<Response>(&result);
                 if (response == nullptr) {
                   ++world_.totals.stale_tokens_refused;
                   const Error& error = std::get<Error>(result);
                   sometimes(error.reason() == "TASK_NOT_FOUND", "a stale task token is refused");
                   sometimes(error.reason() == "COMMAND_REJECTED",
                             "a completion with a bad command is refused");
                   sometimes(error.message() == "UnhandledCommand",
                             "a close is refused, since there is news that it has not seen");
                   require(!runner || error.reason() != "COMMAND_REJECTED" ||
                               error.message() == "UnhandledCommand",
                           "a command of the SDK was refused: " + error.message());
                   if (runner) runner->evict(task.run_id);
                   return;
                 }
                 answered_tasks_[mark] = {task.run, task.started_event_id};
                 if (runner) {
                   commands_[task.run_id][task.started_event_id] = text;
                   runner->accepted(task.run_id, task.token);
                 }
                 if (!response->workflow_task) return;
                 sometimes("a completion is answered with the next task");
                 got(index, *response->workflow_task);
               }));
  });
}

// --- Activities ---

template <class Request>
void Workers::send_end(const Task& task, const Rpc<Request, EmptyResponse>& rpc, Request request,
                       bool leaves) {
  const auto promise = world_.promises.make(Trace::activity_end);
  promise->once = true;
  promise->named = task.run_id;
  promise->leaves = leaves;
  request.task_token = task.token;
  request.identity = promise->mark;
  answered_attempts_[promise->mark] = task.attempt;
  world_.send([this, &rpc, request, promise, task] {
    world_.ask(rpc, request, promise,
               std::function([this, task](service::Result<EmptyResponse> result) {
                 const bool late = world_.batch_time >= task.ends;
                 if (std::holds_alternative<Error>(result)) {
                   sometimes(late, "an activity's end after its time is refused");
                   return;
                 }
                 require(!late || !is_punctual(), "an activity's end was taken after its time");
               }));
  });
}

void Workers::answer_activity(const Task& task) {
  const RunTrace* run = world_.ledger.find(task.run);
  const auto activity = run == nullptr ? decltype(run->activities.end()){}
                                       : run->activities.find(task.scheduled_event_id);
  const bool cancel = run != nullptr && activity != run->activities.end() &&
                      activity->second.cancel_requested && world_.chance.percent(50);
  world_.say("an activity ends");
  if (cancel) {
    sometimes("an activity ends as canceled");
    send_end(task, rpc::cancel_activity, RespondActivityTaskCanceledRequest(), true);
    return;
  }
  if (!world_.draining && world_.chance.percent(50)) {
    RespondActivityTaskFailedRequest request;
    request.failure = Failure{};
    request.failure->message = "simulated";
    send_end(task, rpc::fail_activity, std::move(request), false);  // it may be retried
    return;
  }
  send_end(task, rpc::complete_activity, RespondActivityTaskCompletedRequest(), true);
}

void Workers::heartbeat(const Task& task) {
  RecordActivityTaskHeartbeatRequest request;
  request.task_token = task.token;
  const std::string said = "\"h" + std::to_string(world_.chance.below(1'000)) + "\"";
  request.details = json_payloads(said);
  details_[{task.run.value, task.scheduled_event_id}].sent.insert(said);
  world_.say("an activity's heartbeat");
  using Response = RecordActivityTaskHeartbeatResponse;
  world_.send([this, request, task] {
    const RunTrace* run = world_.ledger.find(task.run);
    if (run != nullptr) note_heartbeat(world_, *run, task.scheduled_event_id);
    world_.ask(rpc::heartbeat, request,
               std::function([this, task](service::Result<Response> result) {
                 const bool late = world_.batch_time >= task.ends;
                 const auto* response = std::get_if<Response>(&result);
                 if (response == nullptr) {
                   sometimes(late, "a heartbeat after the attempt's time is refused");
                   return;
                 }
                 require(!late || !is_punctual(), "a heartbeat was taken after the attempt's time");
                 sometimes(response->cancel_requested, "a heartbeat hears of a cancellation");
                 details_[{task.run.value, task.scheduled_event_id}].acknowledged = true;
               }));
  });
}

}  // namespace permit::simulation
