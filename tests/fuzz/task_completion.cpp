// Everything that clients, workers, holders and operators may ask of a server, in any order and
// with anything in it: each answer is what a caller has brought about, never a 5xx; memory and
// database agree after every batch; histories and invariants hold at the end.
//
// Two bytes or so for each call. Names come from short lists, so that calls meet each other.
#include <algorithm>
#include <array>

#include "orchestrator/protocol/json.h"
#include "tests/fuzz/choices.h"
#include "tests/fuzz/commands.h"
#include "tests/fuzz/engine.h"
#include "tests/fuzz/targets.h"

namespace permit::fuzz {

namespace {

using service::Result;
using service::Service;

// What the callers remember, to hand it back rightly or wrongly.
struct Memory {
  std::vector<Bytes> tasks;  // the last one is the one to be answered
  std::vector<Bytes> activities;
  struct Permit {
    WorkflowId id;
    std::string token;
  };
  std::vector<Permit> permits;
  std::vector<RunId> runs;
  std::vector<std::string> request_ids;
  std::vector<Fence> waiters;
};

template <class T>
const T& some_of(const std::vector<T>& known, Choices& choices) {
  static const T none{};
  return known.empty() ? none : known[choices.byte() % known.size()];
}

class Callers {
 public:
  Callers(Engine& engine, Choices& choices) : engine_(engine), choices_(choices) {}

  // Two pools, one of them in some detail.
  void open_pools();
  void act();

 private:
  // The request goes through its JSON first, as it does for those who are not in this process.
  template <class Response, class Request, class R>
  std::optional<Result<Response>> ask(Request request,
                                      R (Service::*method)(Request, service::Done<Response>)) {
    try {
      request = read_json<Request>(to_json(request));
    } catch (const Error& error) {
      check_error(error);
      return std::nullopt;
    }
    std::int64_t wait = 0;
    auto answer = engine_.call<Response>([&](service::Done<Response> done) {
      if constexpr (std::is_void_v<R>) {
        (engine_.service().*method)(std::move(request), std::move(done));
      } else {
        wait = (engine_.service().*method)(std::move(request), std::move(done));
      }
    });
    if (!answer && wait != 0) {
      engine_.service().forget_poll(wait);
      engine_.settle();
    }
    return answer;
  }

  WorkflowExecution execution();
  std::string request_id();
  void start();
  void signal();
  void end_run();
  void look();
  void poll_workflow_task();
  void complete();
  void fail_task();
  void poll_activity();
  void answer_activity();
  void set_pool();
  void acquire();
  void use_permit();
  void operate();
  void pass_time();

  Engine& engine_;
  Choices& choices_;
  Memory memory_;
};

WorkflowExecution Callers::execution() {
  WorkflowExecution execution;
  execution.workflow_id = WorkflowId(choices_.pick(workflow_ids));
  if (choices_.one_in(3)) execution.run_id = some_of(memory_.runs, choices_);
  return execution;
}

// Mostly a new one.
std::string Callers::request_id() {
  if (choices_.one_in(6)) return some_of(memory_.request_ids, choices_);
  memory_.request_ids.push_back("r" + std::to_string(memory_.request_ids.size()));
  return memory_.request_ids.back();
}

void Callers::open_pools() {
  SetPoolRequest request;
  request.namespace_ = "default";
  request.pool = PoolName("p");
  request.capacity = 2;
  ask(request, &Service::set_pool);
  request.pool = PoolName("q");
  request.capacity.reset();
  request.slots = {SlotName("a"), SlotName("b")};
  ask(request, &Service::set_pool);
}

void Callers::start() {
  StartWorkflowExecutionRequest request;
  request.namespace_ = "default";
  request.workflow_id = WorkflowId(choices_.pick(workflow_ids));
  const bool is_permit = request.workflow_id.value.starts_with("permit:");
  request.workflow_type.name = is_permit != choices_.one_in(16) ? "PermitSlotWorkflow" : "T";
  request.task_queue.name = choices_.pick(queues);
  request.request_id = request_id();
  const std::size_t how = choices_.byte();
  if (how % 4 == 3) {
    request.workflow_id_reuse_policy = static_cast<WorkflowIdReusePolicy>(how / 4 % 5);
    request.workflow_id_conflict_policy = static_cast<WorkflowIdConflictPolicy>(how / 20 % 4);
  }
  if (is_permit || how / 20 % 4 == 0) request.workflow_execution_timeout = some_duration(choices_);
  if (how / 80 == 1) request.input = some_payloads(choices_);
  if (choices_.one_in(5)) {
    request.permit = some_permit_request(choices_);
    if (!choices_.one_in(8)) request.workflow_id = WorkflowId();
  }
  const auto answer = ask(std::move(request), &Service::start);
  const auto* started = answer ? std::get_if<StartWorkflowExecutionResponse>(&*answer) : nullptr;
  if (started != nullptr) memory_.runs.push_back(started->run_id);
}

void Callers::signal() {
  if (choices_.one_in(3)) {
    SignalWithStartWorkflowExecutionRequest request;
    request.namespace_ = "default";
    request.workflow_id = WorkflowId(choices_.pick(workflow_ids));
    request.workflow_type.name = "T";
    request.task_queue.name = choices_.pick(queues);
    request.signal_name = choices_.pick(signal_names);
    request.request_id = request_id();
    ask(std::move(request), &Service::signal_with_start);
    return;
  }
  SignalWorkflowExecutionRequest request;
  request.namespace_ = "default";
  request.workflow_execution = execution();
  request.signal_name = choices_.pick(signal_names);
  request.request_id = request_id();
  request.input = some_payloads(choices_);
  ask(std::move(request), &Service::signal);
}

void Callers::end_run() {
  if (choices_.one_in(2)) {
    RequestCancelWorkflowExecutionRequest request;
    request.namespace_ = "default";
    request.workflow_execution = execution();
    request.request_id = request_id();
    ask(std::move(request), &Service::request_cancel);
    return;
  }
  TerminateWorkflowExecutionRequest request;
  request.namespace_ = "default";
  request.workflow_execution = execution();
  if (choices_.one_in(4)) request.first_execution_run_id = some_of(memory_.runs, choices_);
  ask(std::move(request), &Service::terminate);
}

void Callers::look() {
  switch (choices_.below(5)) {
    case 0: {
      ask(DescribeWorkflowExecutionRequest{"default", execution()}, &Service::describe);
      return;
    }
    case 1: {
      GetWorkflowExecutionHistoryRequest request;
      request.namespace_ = "default";
      request.execution = execution();
      request.maximum_page_size = static_cast<std::int32_t>(choices_.below(4));
      request.wait_new_event = choices_.one_in(2);
      ask(std::move(request), &Service::history);
      return;
    }
    case 2: {
      QueryWorkflowRequest request;
      request.namespace_ = "default";
      request.execution = execution();
      request.query.query_type = "q";
      ask(std::move(request), &Service::query);
      return;
    }
    case 3: {
      const auto answer =
          ask(PoolRequest{"default", PoolName(choices_.pick(pools))}, &Service::list_waiters);
      const auto* line = answer ? std::get_if<ListWaitersResponse>(&*answer) : nullptr;
      if (line != nullptr && !line->waiters.empty()) {
        memory_.waiters.push_back(line->waiters.front().id);
      }
      ask(ListPoolsRequest{"default"}, &Service::list_pools);
      return;
    }
    default:
      engine_.service().snapshot(PoolName());
      engine_.service().alerts();
      engine_.service().queues();
  }
}

// On all queues, until there is one.
void Callers::poll_workflow_task() {
  const std::size_t first = choices_.byte();
  for (std::size_t i = 0; i < std::size(queues); i += 2) {
    PollWorkflowTaskQueueRequest request;
    request.namespace_ = "default";
    request.task_queue.name = queues[(first + i) % std::size(queues)];
    request.identity = "worker";
    const auto answer = ask(std::move(request), &Service::poll_workflow_task);
    const auto* task = answer ? std::get_if<PollWorkflowTaskQueueResponse>(&*answer) : nullptr;
    if (task == nullptr || task->task_token.value.empty()) continue;
    memory_.tasks.push_back(task->task_token);
    if (task->workflow_execution) memory_.runs.push_back(task->workflow_execution->run_id);
    return;
  }
}

void Callers::complete() {
  if (memory_.tasks.empty() || choices_.one_in(3)) poll_workflow_task();
  if (memory_.tasks.empty()) return;
  RespondWorkflowTaskCompletedRequest request;
  request.namespace_ = "default";
  const bool stale = choices_.one_in(16);
  request.task_token = stale ? some_of(memory_.tasks, choices_) : memory_.tasks.back();
  const std::size_t how = choices_.byte();
  request.return_new_workflow_task = how % 2 == 1;
  request.force_create_new_workflow_task = how / 2 % 8 == 7;
  if (how / 16 % 4 == 3) {
    request.sticky_attributes.emplace();
    request.sticky_attributes->worker_task_queue.name = "sticky";
    request.sticky_attributes->schedule_to_start_timeout = some_duration(choices_);
  }
  for (std::size_t count = choices_.below(4); count > 0; --count) {
    request.commands.push_back(some_command(choices_, some_of(memory_.runs, choices_)));
  }
  const auto answer = ask(std::move(request), &Service::complete_workflow_task);
  if (!stale) {  // one that may be used again, wrongly
    std::rotate(memory_.tasks.begin(), memory_.tasks.end() - 1, memory_.tasks.end());
    if (memory_.tasks.size() > 1 && !choices_.one_in(8)) memory_.tasks.erase(memory_.tasks.begin());
  }
  const auto* done = answer ? std::get_if<RespondWorkflowTaskCompletedResponse>(&*answer) : nullptr;
  if (done != nullptr && done->workflow_task) {
    memory_.tasks.push_back(done->workflow_task->task_token);
  }
}

void Callers::fail_task() {
  RespondWorkflowTaskFailedRequest request;
  request.namespace_ = "default";
  request.task_token = some_of(memory_.tasks, choices_);
  request.failure = some_failure(choices_);
  ask(std::move(request), &Service::fail_workflow_task);
}

void Callers::poll_activity() {
  for (const char* queue : {"x", "y", "permits"}) {
    PollActivityTaskQueueRequest request;
    request.namespace_ = "default";
    request.task_queue.name = queue;
    const auto answer = ask(std::move(request), &Service::poll_activity_task);
    const auto* task = answer ? std::get_if<PollActivityTaskQueueResponse>(&*answer) : nullptr;
    if (task == nullptr || task->task_token.value.empty()) continue;
    memory_.activities.push_back(task->task_token);
    return;
  }
}

void Callers::answer_activity() {
  if (memory_.activities.empty()) poll_activity();
  const Bytes token =
      choices_.one_in(8) ? some_of(memory_.tasks, choices_) : some_of(memory_.activities, choices_);
  switch (choices_.below(5)) {
    case 0: {
      RecordActivityTaskHeartbeatRequest request;
      request.namespace_ = "default";
      request.task_token = token;
      request.details = some_payloads(choices_);
      ask(std::move(request), &Service::heartbeat);
      return;
    }
    case 1: {
      RespondActivityTaskFailedRequest request;
      request.namespace_ = "default";
      request.task_token = token;
      request.failure = some_failure(choices_);
      ask(std::move(request), &Service::fail_activity);
      return;
    }
    case 2: {
      RespondActivityTaskCanceledRequest request;
      request.namespace_ = "default";
      request.task_token = token;
      ask(std::move(request), &Service::cancel_activity);
      return;
    }
    case 3: {
      RespondActivityTaskCompletedByIdRequest request;
      request.namespace_ = "default";
      request.workflow_id = WorkflowId(choices_.pick(workflow_ids));
      request.activity_id = choices_.pick(short_names);
      ask(std::move(request), &Service::complete_activity_by_id);
      return;
    }
    default: {
      RespondActivityTaskCompletedRequest request;
      request.namespace_ = "default";
      request.task_token = token;
      request.result = some_payloads(choices_);
      ask(std::move(request), &Service::complete_activity);
    }
  }
}

void Callers::set_pool() {
  SetPoolRequest request;
  request.namespace_ = "default";
  request.pool = PoolName(choices_.pick(pools));
  const std::size_t how = choices_.byte();
  if (how % 4 == 0) {
    request.slots.emplace();
    for (std::size_t i = 0; i < how / 4 % 4; ++i) request.slots->emplace_back(short_names[i]);
  } else {
    request.capacity = static_cast<std::int32_t>(how / 4 % 10) - 1;
  }
  request.order = static_cast<PermitOrder>(how / 40 % 3);
  if (choices_.one_in(4)) {
    request.rate = PoolRate{static_cast<double>(choices_.byte()) / 16, 1.0 + choices_.byte() % 4};
  }
  ask(std::move(request), &Service::set_pool);
}

void Callers::acquire() {
  AcquireRequest request;
  request.namespace_ = "default";
  request.pool = PoolName(choices_.pick(pools));
  request.request_id = request_id();
  request.holder = choices_.pick(short_names);
  const PermitRequest permit = some_permit_request(choices_);
  request.slots = permit.slots;
  request.only = permit.only;
  request.count = permit.count;
  request.lease = permit.lease;
  request.max_hold = permit.max_hold;
  request.order = permit.order;
  request.wait_timeout = permit.wait_timeout;
  request.priority = static_cast<std::int32_t>(choices_.below(7)) - 1;
  if (choices_.one_in(2)) request.wait = Duration(0);
  std::int64_t wait = 0;
  const auto answer = engine_.call<AcquireResponse>([&](service::Done<AcquireResponse> done) {
    wait = engine_.service().acquire(std::move(request), std::move(done));
  });
  if (!answer) {
    if (choices_.one_in(2)) engine_.service().forget_poll(wait);
    engine_.settle();
    return;
  }
  const auto* granted = std::get_if<AcquireResponse>(&*answer);
  if (granted == nullptr) return;
  for (const GrantedSlot& slot : granted->slots) {
    memory_.permits.push_back({slot.id, granted->token});
  }
}

void Callers::use_permit() {
  HolderRequest request;
  request.namespace_ = "default";
  const Memory::Permit permit = some_of(memory_.permits, choices_);
  request.id = choices_.one_in(8) ? WorkflowId(choices_.pick(permit_ids)) : permit.id;
  request.token = permit.token;
  if (choices_.one_in(2)) {
    request.lease = choices_.one_in(3) ? some_duration(choices_) : Duration(0);
    ask(std::move(request), &Service::renew);
  } else {
    ask(std::move(request), &Service::release);
  }
}

void Callers::operate() {
  const PoolName pool(choices_.pick(pools));
  switch (choices_.below(5)) {
    case 0:
      ask(PoolRequest{"default", pool}, &Service::delete_pool);
      return;
    case 1: {
      ForceReleaseRequest request;
      request.namespace_ = "default";
      request.id = WorkflowId(choices_.pick(permit_ids));
      request.fence = Fence{choices_.byte() % 32};
      ask(std::move(request), &Service::force_release);
      return;
    }
    case 2:
      ask(RemoveWaiterRequest{"default", some_of(memory_.waiters, choices_)},
          &Service::remove_waiter);
      return;
    case 3:
      ask(WaiterRequest{"default", some_of(memory_.waiters, choices_)}, &Service::why);
      return;
    default: {
      DrainRequest request;
      request.namespace_ = "default";
      request.pool = pool;
      if (choices_.one_in(2)) request.slot = SlotName(choices_.pick(short_names));
      const auto drain =
          choices_.one_in(2) ? service::Pools::Drain::off : service::Pools::Drain::on;
      engine_.call<PoolInfo>(
          [&](auto done) { engine_.service().drain(request, drain, std::move(done)); });
    }
  }
}

void Callers::pass_time() {
  if (choices_.one_in(12)) {
    engine_.restart();
    return;
  }
  engine_.advance(some_duration(choices_));
  engine_.service().expire_polls(std::chrono::steady_clock::now() + std::chrono::seconds(61));
  engine_.settle();
}

void Callers::act() {
  using Action = void (Callers::*)();
  constexpr std::array<Action, 24> actions = {&Callers::start,
                                              &Callers::start,
                                              &Callers::poll_workflow_task,
                                              &Callers::complete,
                                              &Callers::complete,
                                              &Callers::complete,
                                              &Callers::signal,
                                              &Callers::end_run,
                                              &Callers::look,
                                              &Callers::fail_task,
                                              &Callers::poll_activity,
                                              &Callers::answer_activity,
                                              &Callers::set_pool,
                                              &Callers::acquire,
                                              &Callers::acquire,
                                              &Callers::use_permit,
                                              &Callers::operate,
                                              &Callers::pass_time,
                                              &Callers::pass_time,
                                              &Callers::use_permit,
                                              &Callers::poll_workflow_task,
                                              &Callers::poll_workflow_task,
                                              &Callers::poll_activity,
                                              &Callers::start};
  (this->*actions[choices_.below(actions.size())])();
}

}  // namespace

void task_completion(std::string_view input) {
  constexpr int calls_max = 60;
  static std::unique_ptr<Engine> engine;
  Engine::renew(engine);
  Choices choices(input);
  Callers callers(*engine, choices);
  callers.open_pools();
  for (int calls = 0; calls < calls_max && !choices.at_end(); ++calls) callers.act();
  engine->check();
}

}  // namespace permit::fuzz
