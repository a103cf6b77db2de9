#include "tests/simulation/workers.h"

#include "tests/simulation/workflows.h"

namespace permit::simulation {

using namespace std::chrono_literals;

Workers::Workers(World& world) : world_(world) {
  const auto add = [&](Queue queue, int count) {
    for (int i = 0; i < count; ++i) {
      workers_.push_back({queue, "w" + std::to_string(workers_.size()), 0, false, {}});
    }
  };
  add(Queue::parents, world.chance.between(1, 3));
  add(Queue::activities, world.plan.activities > 0 ? world.chance.between(1, 2) : 1);
  add(Queue::permits, std::max(1, world.plan.permit_workers));
}

void Workers::step() {
  if (world_.fault(world_.plan.requests_twice / 3 + 1) && !past_.empty()) {
    answer_stale();
    return;
  }
  const std::size_t index = world_.chance.below(workers_.size());
  Worker& worker = workers_[index];
  if (worker.queue == Queue::permits && world_.plan.permit_workers == 0 && !world_.draining) {
    return;
  }
  if (worker.polling && world_.fault(5)) {
    lose_connection(worker);
  } else if (!worker.tasks.empty() && world_.chance.percent(80)) {
    take_up(worker);
  } else if (!worker.polling) {
    poll(index);
  }
}

bool Workers::work() {
  bool busy = false;
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    Worker& worker = workers_[i];
    while (!worker.tasks.empty()) {
      const Task task = worker.tasks.back();
      worker.tasks.pop_back();
      answer(worker, task);
      busy = true;
    }
    if (!worker.polling) poll(i);
  }
  return busy;
}

void Workers::disconnected() {
  for (Worker& worker : workers_) worker.polling = false;
}

void Workers::check() const {
  for (const auto& [mark, task] : answered_tasks_) {
    const RunTrace* run = world_.ledger.find(task.first);
    require(run != nullptr, "a completion was taken for a run that is not there");
    for (const Event& event : run->events) {
      const auto* completed = event.get_if<event::WorkflowTaskCompleted>();
      if (completed == nullptr || completed->identity != mark) continue;
      require(completed->started_event_id == task.second,
              "completion " + mark + " was for another task than the one it completed");
    }
  }
}

// --- Polling ---

void Workers::poll(std::size_t index) {
  using service::Service;
  switch (workers_[index].queue) {
    case Queue::permits:
      return poll_on(index, "permits", &Service::poll_workflow_task);
    case Queue::parents:
      return poll_on(index, "work", &Service::poll_workflow_task);
    case Queue::activities:
      return poll_on(index, "work", &Service::poll_activity_task);
  }
}

template <class Request, class Response>
void Workers::poll_on(std::size_t index, const char* queue,
                      std::int64_t (service::Service::*method)(Request, service::Done<Response>)) {
  Worker& worker = workers_[index];
  Request request;
  request.namespace_ = "default";
  request.task_queue.name = queue;
  request.identity = worker.identity;
  worker.polling = true;
  ++world_.totals.requests;
  worker.poll =
      (world_.service().*method)(request, [this, index](service::Result<Response> result) {
        workers_[index].polling = false;
        if (const Error* error = std::get_if<Error>(&result)) {
          world_.promises.check_error(*error);
          return;
        }
        got(index, std::get<Response>(result));
      });
}

void Workers::lose_connection(Worker& worker) {
  world_.service().forget_poll(worker.poll);
  worker.polling = false;
}

// No task is handed out twice: a second attempt has another number.
void Workers::note_hand_out(const Bytes& token, service::TaskToken::Kind kind) {
  const auto parsed = service::decode(token, kind);
  require(parsed.has_value(), "a task came with a token that is none");
  const std::string key =
      std::to_string(static_cast<int>(kind)) + "." + std::to_string(parsed->run.value) + "." +
      std::to_string(parsed->scheduled_event_id) + "." + std::to_string(parsed->attempt);
  require(handed_out_.insert(key).second, "task " + key + " was handed out twice");
}

void Workers::got(std::size_t worker, const PollWorkflowTaskQueueResponse& response) {
  if (response.task_token.value.empty()) return;  // the wait is over
  const auto kind = service::TaskToken::Kind::workflow_task;
  note_hand_out(response.task_token, kind);
  const auto token = *service::decode(response.task_token, kind);
  Task task{response.task_token,
            token.run,
            response.workflow_execution->run_id,
            token.scheduled_event_id,
            response.started_event_id,
            world_.now(),
            {},
            response.attempt};
  keep(worker, std::move(task));
}

void Workers::got(std::size_t worker, const PollActivityTaskQueueResponse& response) {
  if (response.task_token.value.empty()) return;
  const auto kind = service::TaskToken::Kind::activity;
  note_hand_out(response.task_token, kind);
  const auto token = *service::decode(response.task_token, kind);
  Task task{response.task_token,
            token.run,
            response.workflow_execution->run_id,
            token.scheduled_event_id,
            0,
            world_.now(),
            {},
            response.attempt};
  keep(worker, std::move(task));
}

void Workers::keep(std::size_t index, Task task) {
  if (world_.reply_is_lost() || world_.fault(world_.plan.workers_die)) {
    past_.emplace_back(index, std::move(task));
    return;
  }
  if (world_.fault(world_.plan.pauses)) {
    task.resumes = world_.now() + world_.chance.duration(1s, world_.plan.lease_max * 2 + 10s);
  }
  workers_[index].tasks.push_back(std::move(task));
}

// --- Answering ---

void Workers::take_up(Worker& worker) {
  const std::size_t index = world_.chance.below(worker.tasks.size());
  Task& task = worker.tasks[index];
  if (task.resumes > world_.now()) return;
  if (worker.queue == Queue::activities && world_.chance.percent(30)) {
    heartbeat(task);
    return;
  }
  const Task taken = task;
  worker.tasks.erase(worker.tasks.begin() + static_cast<std::ptrdiff_t>(index));
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

void Workers::answer_workflow_task(Worker& worker, const Task& task) {
  const auto index = static_cast<std::size_t>(&worker - workers_.data());
  const RunTrace* run = world_.ledger.find(task.run);
  require(run != nullptr, "a task of a run that is not there was handed out");
  if (world_.fault(world_.plan.invalid)) {
    RespondWorkflowTaskFailedRequest request;
    request.task_token = task.token;
    request.namespace_ = "default";
    request.cause = WorkflowTaskFailedCause::workflow_worker_unhandled_failure;
    world_.send([this, request] {
      world_.service().fail_workflow_task(request, world_.expect<EmptyResponse>());
    });
    return;
  }
  std::vector<Command> commands =
      worker.queue == Queue::permits ? play_permit(world_, *run) : play_parent(world_, *run);
  complete(index, task, std::move(commands));
}

void Workers::complete(std::size_t index, const Task& task, std::vector<Command> commands) {
  const auto promise = world_.promises.make(Trace::task_completed);
  promise->once = true;
  promise->named = task.run_id;
  RespondWorkflowTaskCompletedRequest request;
  request.task_token = task.token;
  request.namespace_ = "default";
  request.identity = promise->mark;
  request.commands = std::move(commands);
  request.return_new_workflow_task = world_.chance.percent(20);
  request.force_create_new_workflow_task = !world_.draining && world_.chance.percent(5);
  const RunNumber number = task.run;
  const std::int64_t started_id = task.started_event_id;
  world_.send([this, request, promise, index, number, started_id] {
    world_.service().complete_workflow_task(
        request, world_.expect<RespondWorkflowTaskCompletedResponse>(
                     promise, [this, index, number, started_id, mark = promise->mark](
                                  service::Result<RespondWorkflowTaskCompletedResponse> result) {
                       const auto* response =
                           std::get_if<RespondWorkflowTaskCompletedResponse>(&result);
                       if (response == nullptr) {
                         ++world_.totals.stale_tokens_refused;
                         return;
                       }
                       answered_tasks_[mark] = {number, started_id};
                       if (response->workflow_task) got(index, *response->workflow_task);
                     }));
  });
}

// A task that somebody had once: answered already, timed out, or of a run that has closed.
void Workers::answer_stale() {
  const auto& [index, task] = world_.chance.pick(past_);
  const Task stale = task;
  if (workers_[index].queue == Queue::activities) {
    answer_activity(stale);
  } else {
    answer_workflow_task(workers_[index], stale);
  }
}

void Workers::answer_activity(const Task& task) {
  const auto promise = world_.promises.make(Trace::activity_end);
  promise->once = true;
  promise->named = task.run_id;
  const RunTrace* run = world_.ledger.find(task.run);
  const auto activity = run == nullptr ? decltype(run->activities.end()){}
                                       : run->activities.find(task.scheduled_event_id);
  const bool cancel = run != nullptr && activity != run->activities.end() &&
                      activity->second.cancel_requested && world_.chance.percent(50);
  if (cancel) {
    RespondActivityTaskCanceledRequest request;
    request.task_token = task.token;
    request.identity = promise->mark;
    world_.send([this, request, promise] {
      world_.service().cancel_activity(request, world_.expect<EmptyResponse>(promise));
    });
    return;
  }
  if (!world_.draining && world_.chance.percent(50)) {
    promise->leaves = false;  // it may be retried
    RespondActivityTaskFailedRequest request;
    request.task_token = task.token;
    request.identity = promise->mark;
    request.failure = Failure{};
    request.failure->message = "simulated";
    world_.send([this, request, promise] {
      world_.service().fail_activity(request, world_.expect<EmptyResponse>(promise));
    });
    return;
  }
  RespondActivityTaskCompletedRequest request;
  request.task_token = task.token;
  request.identity = promise->mark;
  world_.send([this, request, promise] {
    world_.service().complete_activity(request, world_.expect<EmptyResponse>(promise));
  });
}

void Workers::heartbeat(const Task& task) {
  RecordActivityTaskHeartbeatRequest request;
  request.task_token = task.token;
  const RunTrace* run = world_.ledger.find(task.run);
  if (run != nullptr) note_heartbeat(world_, *run, task.scheduled_event_id);
  world_.send([this, request] {
    world_.service().heartbeat(request, world_.expect<RecordActivityTaskHeartbeatResponse>());
  });
}

}  // namespace permit::simulation
