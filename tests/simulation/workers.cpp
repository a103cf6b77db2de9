#include "tests/simulation/workers.h"

namespace permit::simulation {

using namespace std::chrono_literals;

Workers::Workers(World& world) : world_(world) {
  begin_sections();
  const int parents = world.chance.between(1, 3);
  for (int i = 0; i < parents; ++i) add(Queue::parents);
  const int activities = world.plan.activities > 0 ? world.chance.between(1, 2) : 1;
  for (int i = 0; i < activities; ++i) add(Queue::activities);
  const int permits = std::max(1, world.plan.permit_workers);
  for (int i = 0; i < permits; ++i) {
    std::shared_ptr<Runner> runner;
    if (world.plan.permit_runners > 0) runner = std::make_shared<Runner>(world, next_name());
    add(Queue::permits, runner);
  }
  if (world.plan.sections == 0) return;
  const int sections = world.chance.between(1, 2);
  for (int i = 0; i < sections; ++i) {
    add(Queue::sections, std::make_shared<Runner>(world, next_name()));
  }
}

std::string Workers::next_name() const { return "w" + std::to_string(workers_.size()); }

void Workers::add(Queue queue, std::shared_ptr<Runner> runner) {
  Worker worker;
  worker.queue = queue;
  worker.identity = next_name();
  worker.runner = runner;
  workers_.push_back(worker);
  if (!runner) return;
  worker.queue = Queue::sticky;
  workers_.push_back(std::move(worker));
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
  } else if (worker.runner && world_.fault(world_.plan.workers_die / 5)) {
    world_.say(worker.identity + " dies");
    worker.runner->die();
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
  for (Worker& worker : workers_) {
    worker.polling = false;
    ++worker.polls;
  }
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
  for (const auto& [mark, attempt] : answered_attempts_) {
    const auto ended = world_.ledger.activity_ends().find(mark);
    if (ended == world_.ledger.activity_ends().end()) continue;
    require(ended->second == attempt, "request " + mark + " of attempt " + std::to_string(attempt) +
                                          " of an activity has ended attempt " +
                                          std::to_string(ended->second));
  }
  check_sections(world_, commands_);
}

// --- Polling ---

void Workers::poll(std::size_t index) {
  Worker& worker = workers_[index];
  world_.say(worker.identity + " polls");
  switch (worker.queue) {
    case Queue::permits:
      return poll_on(index, "permits", rpc::poll_workflow_task);
    case Queue::parents:
      return poll_on(index, "work", rpc::poll_workflow_task);
    case Queue::activities:
      return poll_on(index, "work", rpc::poll_activity_task);
    case Queue::sections:
      return poll_on(index, "sections", rpc::poll_workflow_task);
    case Queue::sticky:
      if (worker.runner->sticky_queue().empty()) return;
      return poll_on(index, worker.runner->sticky_queue(), rpc::poll_workflow_task);
  }
}

template <class Request, class Response>
void Workers::poll_on(std::size_t index, const std::string& queue,
                      const Rpc<Request, Response>& rpc) {
  Worker& worker = workers_[index];
  Request request;
  request.namespace_ = "default";
  request.task_queue.name = queue;
  request.identity = worker.identity;
  if (worker.queue == Queue::sticky) request.task_queue.kind = TaskQueueKind::sticky;
  worker.polling = true;
  const std::int64_t number = ++worker.polls;
  ++world_.totals.requests;
  const auto lost = [this, index, number] {
    if (workers_[index].polls == number) workers_[index].polling = false;
  };
  worker.poll = world_.call(rpc, std::move(request),
                            std::function([this, index, number](service::Result<Response> result) {
                              require(workers_[index].polls == number && workers_[index].polling,
                                      "a poll whose caller had gone was answered");
                              workers_[index].polling = false;
                              if (const Error* error = std::get_if<Error>(&result)) {
                                world_.promises.check_error(*error);
                                return;
                              }
                              got(index, std::get<Response>(result));
                            }),
                            lost, Wire::Way::own);
}

void Workers::lose_connection(Worker& worker) {
  world_.say(worker.identity + " hangs up");
  sometimes("a parked poll loses its connection");
  worker.polling = false;
  ++worker.polls;
  world_.hang_up(worker.poll);
}

namespace {

// Tokens are opaque to real workers; these look into them, with the server's secret.
const service::TokenSeal& seal() {
  static const service::TokenSeal seal("simulated");
  return seal;
}

}  // namespace

// No task is handed out twice: a second attempt has another number. Returns what the token tells.
service::TaskToken Workers::note_hand_out(const Bytes& token, service::TaskToken::Kind kind) {
  const auto parsed = seal().decode(token, kind);
  require(parsed.has_value(), "a task came with a token that is none");
  const std::string key =
      std::to_string(static_cast<int>(kind)) + "." + std::to_string(parsed->run.value) + "." +
      std::to_string(parsed->scheduled_event_id) + "." + std::to_string(parsed->attempt);
  require(handed_out_.insert(key).second, "task " + key + " was handed out twice");
  const RunTrace* run = world_.ledger.find(parsed->run);
  require(run == nullptr || run->open, "a task of a closed run was handed out");
  sometimes(kind == service::TaskToken::Kind::workflow_task && parsed->attempt > 1,
            "a workflow task is handed out again");
  return *parsed;
}

// What tasks of both kinds have.
template <class Response>
Workers::Task Workers::handed_out(const Response& response, service::TaskToken::Kind kind) {
  const service::TaskToken token = note_hand_out(response.task_token, kind);
  Task task;
  task.token = response.task_token;
  task.run = token.run;
  task.run_id = response.workflow_execution->run_id;
  task.scheduled_event_id = token.scheduled_event_id;
  task.attempt = response.attempt;
  return task;
}

void Workers::got(std::size_t worker, const PollWorkflowTaskQueueResponse& response) {
  if (response.task_token.value.empty()) return;  // the wait is over
  Task task = handed_out(response, service::TaskToken::Kind::workflow_task);
  task.started_event_id = response.started_event_id;
  if (workers_[worker].runner) {
    task.response = std::make_shared<const PollWorkflowTaskQueueResponse>(response);
  }
  keep(worker, std::move(task));
}

void Workers::got(std::size_t worker, const PollActivityTaskQueueResponse& response) {
  if (response.task_token.value.empty()) return;
  Task task = handed_out(response, service::TaskToken::Kind::activity);
  if (response.start_to_close_timeout.count() > 0) {
    task.ends = response.started_time + response.start_to_close_timeout;
  }
  check_details(task, response);
  keep(worker, std::move(task));
}

// What an attempt's heartbeats have said is there for the next one.
void Workers::check_details(const Task& task, const PollActivityTaskQueueResponse& response) const {
  const auto known = details_.find({task.run.value, task.scheduled_event_id});
  if (known == details_.end() || !known->second.acknowledged) return;
  sometimes("a later attempt gets the details of an earlier one's heartbeat");
  require(response.heartbeat_details.has_value(), "the details of a heartbeat are gone");
  const std::string details = response.heartbeat_details->payloads.at(0).data.value;
  require(known->second.sent.contains(details),
          "an attempt got the details of a heartbeat that nobody has sent: " + details);
}

void Workers::keep(std::size_t index, Task task) {
  if (world_.reply_is_lost() || world_.fault(world_.plan.workers_die)) {
    sometimes("a task is lost on its way to a worker, or with it");
    past_.emplace_back(index, std::move(task));
    return;
  }
  if (world_.fault(world_.plan.pauses)) {
    task.resumes = world_.now() + world_.chance.duration(1s, world_.plan.lease_max * 2 + 10s);
  }
  workers_[index].tasks.push_back(std::move(task));
}

}  // namespace permit::simulation
