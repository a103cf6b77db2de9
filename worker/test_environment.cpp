#include "worker/test_environment.h"

#include <exception>
#include <utility>

#include "orchestrator/protocol/ensure.h"
#include "orchestrator/protocol/json.h"
#include "orchestrator/service/reads.h"
#include "orchestrator/service/service.h"
#include "orchestrator/store/store.h"
#include "worker/replayer.h"

namespace permit::worker {

namespace {

constexpr Time beginning{std::chrono::sys_days{std::chrono::year{2026} / 1 / 1}};

store::Database::Options in_memory() {
  store::Database::Options options;
  options.mode = store::Database::Mode::in_memory;
  return options;
}

std::vector<Event> history_of(store::Store& store, RunNumber run) {
  std::string text = "[";
  for (const store::HistoryBatch& batch : store.history(run)) {
    if (text.size() > 1) text += ',';
    text += batch.events;
  }
  return read_json<std::vector<Event>>(text + "]");
}

std::string text_of(const std::vector<Command>& commands) {
  std::string text;
  for (const Command& command : commands) {
    write_json(command, text);
    text += '\n';
  }
  return text;
}

}  // namespace

class TestEnvironment::Server {
 public:
  explicit Server(std::uint64_t seed)
      : seed_(seed),
        clock_(beginning),
        store_(in_memory()),
        log_(LogFormat::text, LogLine::Level::error, [](std::string_view) {}),
        reads_(store_, in_memory(), {}, log_) {
    start();
  }
  void start() {
    service_.reset();
    service::Options options;
    options.seed = seed_++;
    options.token_secret = "test";
    options.retention = std::chrono::hours(24 * 365 * 20);
    service_ = std::make_unique<service::Service>(store_, clock_, std::move(options));
  }
  service::Service& service() { return *service_; }
  store::Store& store() { return store_; }
  service::Reads& reads() { return reads_; }
  service::ManualClock& clock() { return clock_; }

 private:
  std::uint64_t seed_;
  service::ManualClock clock_;
  store::Store store_;
  Log log_;  // of reads: what one of them says, the test sees as a refusal
  service::Reads reads_;
  std::unique_ptr<service::Service> service_;
};

// --- Calls ---

// The calls of a Client, straight into the service.
class TestEnvironment::InProcess : public Transport {
 public:
  explicit InProcess(TestEnvironment& environment) : environment_(environment) {}

  std::string call(std::string_view rpc, const std::string& request) override {
    using service::Service;
    if (rpc == "StartWorkflowExecution") return pass(request, &Service::start);
    if (rpc == "SignalWorkflowExecution") return pass(request, &Service::signal);
    if (rpc == "SignalWithStartWorkflowExecution")
      return pass(request, &Service::signal_with_start);
    if (rpc == "RequestCancelWorkflowExecution") return pass(request, &Service::request_cancel);
    if (rpc == "TerminateWorkflowExecution") return pass(request, &Service::terminate);
    if (rpc == "DescribeWorkflowExecution") return pass(request, &Service::describe);
    if (rpc == "GetWorkflowExecutionHistory") return history(request);
    if (rpc == "QueryWorkflow") return pass(request, &Service::query);
    if (rpc == "RespondActivityTaskCompleted") return pass(request, &Service::complete_activity);
    if (rpc == "RespondActivityTaskFailed") return pass(request, &Service::fail_activity);
    constexpr std::string_view permit_service = "permit.api.v1.PermitService/";
    if (rpc.starts_with(permit_service)) {
      return call_permit_service(rpc.substr(permit_service.size()), request);
    }
    throw not_offered(rpc);
  }

 private:
  static Error not_offered(std::string_view rpc) {
    return Error(ErrorCode::unimplemented, "NOT_IN_TEST",
                 std::string(rpc) + " is not offered by the test environment");
  }

  std::string call_permit_service(std::string_view rpc, const std::string& request) {
    using service::Service;
    if (rpc == "ListPools") return pass(request, &Service::list_pools);
    if (rpc == "DescribePool") return pass(request, &Service::describe_pool);
    if (rpc == "SetPool") return pass(request, &Service::set_pool);
    if (rpc == "ListWaiters") return pass(request, &Service::list_waiters);
    if (rpc == "ExplainWaiter") return pass(request, &Service::why);
    if (rpc == "RemoveWaiter") return pass(request, &Service::remove_waiter);
    if (rpc == "DescribePermit") return pass(request, &Service::describe_permit);
    if (rpc == "ForceReleasePermit") return pass(request, &Service::force_release);
    if (rpc == "DrainPool") return drain(request, service::Pools::Drain::on);
    if (rpc == "UndrainPool") return drain(request, service::Pools::Drain::off);
    if (rpc == "ListPermits") {
      const auto read = read_json<ListPermitsRequest>(request);
      return wait<std::string>([&](auto done) {
        environment_.server_->reads().list_permits(read, PayloadForm::long_form, std::move(done));
      });
    }
    throw not_offered(rpc);
  }

  std::string history(const std::string& request) {
    auto read = read_json<GetWorkflowExecutionHistoryRequest>(request);
    service::Service& service = environment_.server_->service();
    return wait<std::string>([&](service::Done<std::string> done) {
      service.history(std::move(read), [&service,
                                        done](service::Result<service::HistoryPart> part) {
        if (const auto* error = std::get_if<Error>(&part)) return done(*error);
        done(service.written_history(std::get<service::HistoryPart>(part), PayloadForm::long_form));
      });
    });
  }

  std::string drain(const std::string& request, service::Pools::Drain drain) {
    const auto read = read_json<DrainRequest>(request);
    return wait<PoolInfo>(
        [&](auto done) { environment_.server_->service().drain(read, drain, std::move(done)); });
  }

  template <class Request, class Response, class Id>
  std::string pass(const std::string& text,
                   Id (service::Service::*method)(Request, service::Done<Response>)) {
    auto request = read_json<Request>(text);
    if constexpr (requires {
                    request.workflow_type;
                    request.task_queue;
                  }) {
      if (request.task_queue.name.empty()) {
        request.task_queue.name = environment_.options_.task_queues.front();
      }
    }
    return wait<Response>([&](service::Done<Response> done) {
      (environment_.server_->service().*method)(std::move(request), std::move(done));
    });
  }

  // Asks, works until there is an answer, and gives it as JSON; a text is that already.
  template <class Response, class Ask>
  std::string wait(const Ask& ask) {
    const auto answer = std::make_shared<std::optional<service::Result<Response>>>();
    ask([answer](service::Result<Response> result) { *answer = std::move(result); });
    environment_.wait_for([&] { return answer->has_value(); });
    if (const auto* error = std::get_if<Error>(&**answer)) throw *error;
    if constexpr (std::is_same_v<Response, std::string>) {
      return std::get<std::string>(**answer);
    } else {
      return to_json(std::get<Response>(**answer));
    }
  }

  TestEnvironment& environment_;
};

// --- The environment ---

TestEnvironment::TestEnvironment(const Registry& registry) : TestEnvironment(registry, Options()) {}

TestEnvironment::TestEnvironment(const Registry& registry, Options options)
    : registry_(registry),
      options_(std::move(options)),
      server_(std::make_unique<Server>(options_.seed)),
      transport_(std::make_unique<InProcess>(*this)),
      client_(*transport_, "test") {
  restart_worker();
}

TestEnvironment::~TestEnvironment() noexcept(false) {
  if (std::uncaught_exceptions() == 0 && options_.replay_at_end) check();
}

Time TestEnvironment::now() { return server_->clock().now(); }

void TestEnvironment::stop_worker() {
  works_ = false;
  for (const auto& [queue, id] : std::exchange(polls_, {})) server_->service().forget_poll(id);
  workflow_tasks_.clear();
  activity_tasks_.clear();
  runner_.reset();
}

void TestEnvironment::restart_worker() {
  stop_worker();
  works_ = true;
  TaskRunner::Options options;
  options.identity = "worker " + std::to_string(++worker_number_);
  options.runs_cached_max = options_.runs_cached_max;
  if (options_.runs_cached_max > 0) options.sticky_queue = "sticky " + options.identity;
  options.log = options_.log;
  options.fetch_history = [this](const WorkflowExecution& execution) {
    return fetch_history(*transport_, "default", execution);
  };
  runner_ = std::make_unique<TaskRunner>(registry_, std::move(options));
}

void TestEnvironment::restart_server() {
  polls_.clear();
  server_->start();
}

// Parks one poll of that kind on the queue, unless one is there.
template <class Request, class Response>
void TestEnvironment::begin_poll(const std::string& kind, const std::string& queue,
                                 std::int64_t (service::Service::*method)(Request,
                                                                          service::Done<Response>),
                                 std::deque<Response>& tasks) {
  const std::string key = kind + " " + queue;
  if (polls_.contains(key)) return;
  Request request;
  request.namespace_ = "default";
  request.task_queue.name = queue;
  request.identity = "worker " + std::to_string(worker_number_);
  polls_[key] =
      (server_->service().*method)(request, [this, key, &tasks](service::Result<Response> result) {
        polls_.erase(key);
        auto* task = std::get_if<Response>(&result);
        if (task != nullptr && !task->task_token.value.empty()) tasks.push_back(std::move(*task));
      });
}

void TestEnvironment::begin_polls() {
  if (!works_) return;
  using service::Service;
  for (const std::string& queue : options_.task_queues) {
    begin_poll("w", queue, &Service::poll_workflow_task, workflow_tasks_);
    begin_poll("a", queue, &Service::poll_activity_task, activity_tasks_);
  }
  if (options_.runs_cached_max > 0) {
    const std::string sticky = "sticky worker " + std::to_string(worker_number_);
    begin_poll("w", sticky, &Service::poll_workflow_task, workflow_tasks_);
  }
}

bool TestEnvironment::work() {
  begin_polls();
  if (server_->service().run_batch()) return true;
  if (!workflow_tasks_.empty()) {
    const PollWorkflowTaskQueueResponse task = std::move(workflow_tasks_.front());
    workflow_tasks_.pop_front();
    run_workflow_task(task);
    return true;
  }
  if (!activity_tasks_.empty()) {
    const PollActivityTaskQueueResponse task = std::move(activity_tasks_.front());
    activity_tasks_.pop_front();
    run_activity_task(task);
    return true;
  }
  return false;
}

void TestEnvironment::run_workflow_task(const PollWorkflowTaskQueueResponse& task) {
  WorkflowTaskAnswer answer = runner_->run(task);
  service::Service& service = server_->service();
  const RunId run = task.workflow_execution->run_id;
  if (auto* completed = std::get_if<RespondWorkflowTaskCompletedRequest>(&answer)) {
    std::string commands = text_of(completed->commands);
    service.complete_workflow_task(
        std::move(*completed), [this, run, token = task.task_token, commands = std::move(commands)](
                                   service::Result<RespondWorkflowTaskCompletedResponse> result) {
          auto* response = std::get_if<RespondWorkflowTaskCompletedResponse>(&result);
          if (response == nullptr) {
            if (runner_) runner_->evict(run);
            return;
          }
          if (runner_) runner_->accepted(run, token);
          commands_[run].push_back(commands);
          if (response->workflow_task && works_) {
            workflow_tasks_.push_back(std::move(*response->workflow_task));
          }
        });
  } else if (auto* failed = std::get_if<RespondWorkflowTaskFailedRequest>(&answer)) {
    service.fail_workflow_task(std::move(*failed), [](const service::Result<EmptyResponse>&) {});
  } else if (auto* query = std::get_if<RespondQueryTaskCompletedRequest>(&answer)) {
    service.complete_query(std::move(*query), [](const service::Result<EmptyResponse>&) {});
  }
}

void TestEnvironment::run_activity_task(const PollActivityTaskQueueResponse& task) {
  ActivityContext* running = nullptr;
  ActivityContext context(
      activity_info_of(task), task.heartbeat_details, [&](std::optional<Payloads> details) {
        RecordActivityTaskHeartbeatRequest request;
        request.task_token = task.task_token;
        request.details = std::move(details);
        server_->service().heartbeat(
            std::move(request),
            [running](service::Result<RecordActivityTaskHeartbeatResponse> result) {
              const auto* response = std::get_if<RecordActivityTaskHeartbeatResponse>(&result);
              if (response == nullptr || response->cancel_requested) running->cancel();
            });
        while (server_->service().run_batch()) {
        }
      });
  running = &context;
  ActivityTaskAnswer answer = run_activity(registry_, task, context);
  const auto ignore = [](const service::Result<EmptyResponse>&) {};
  service::Service& service = server_->service();
  if (auto* completed = std::get_if<RespondActivityTaskCompletedRequest>(&answer)) {
    service.complete_activity(std::move(*completed), ignore);
  } else if (auto* failed = std::get_if<RespondActivityTaskFailedRequest>(&answer)) {
    service.fail_activity(std::move(*failed), ignore);
  } else if (auto* canceled = std::get_if<RespondActivityTaskCanceledRequest>(&answer)) {
    service.cancel_activity(std::move(*canceled), ignore);
  }
}

void TestEnvironment::settle() {
  constexpr int steps_max = 1'000'000;
  for (int i = 0; i < steps_max; ++i) {
    if (!work()) return;
  }
  throw Misuse("the test never comes to rest: server and worker always have something to do");
}

void TestEnvironment::advance(Duration duration) {
  const Time goal = now() + duration;
  for (;;) {
    settle();
    const Time due = server_->service().next_due();
    if (due > goal) break;
    server_->clock().set(due);
  }
  server_->clock().set(goal);
  settle();
}

void TestEnvironment::wait_for(const std::function<bool()>& answered) {
  for (;;) {
    while (!answered()) {
      if (!work()) break;
    }
    if (answered()) return;
    const Time due = server_->service().next_due();
    if (due == never) throw Misuse("the test waits for what will never come: nothing is due");
    server_->clock().set(due);
  }
}

// --- Checks ---

void TestEnvironment::check_ledger() {
  store::Store& store = server_->store();
  std::map<PoolName, std::int64_t> open;  // what is held, by the counts: grants less outcomes
  for (const store::HoldCount& count : store::Reader(store.database()).hold_counts({})) {
    const bool grants = count.outcome == Outcome::unspecified;
    open[count.pool] += grants ? count.holds : -count.holds;
  }
  std::map<PoolName, std::int64_t> held;  // and by the runs
  for (const RunNumber run : store.open_permits()) ++held[store.run(run).value().permit->pool];
  for (const auto& [pool, holds] : held) open.try_emplace(pool, 0);
  for (const auto& [pool, count] : open) {
    if (count == held[pool]) continue;
    throw Misuse("the ledger of pool " + pool.value +
                 " does not add up: grants less outcomes are " + std::to_string(count) + ", and " +
                 std::to_string(held[pool]) + " are held");
  }
}

namespace {

// What the server began in the name of the permit's workflow, as the command for it.
std::vector<Command> begun_lease(const std::vector<Event>& events) {
  for (const Event& event : events) {
    const auto* timer = event.get_if<event::TimerStarted>();
    if (timer == nullptr) continue;
    return {{command::StartTimer{timer->timer_id, timer->start_to_fire_timeout, {}}, {}}};
  }
  return {};
}

}  // namespace

void TestEnvironment::check() {
  check_ledger();
  for (const auto& [run, recorded] : commands_) {
    const auto number = server_->store().run_by_id(run);
    if (!number) continue;
    const std::vector<Event> events = history_of(server_->store(), *number);
    const auto& started = *events.front().get_if<event::WorkflowExecutionStarted>();
    const WorkflowExecution execution{started.workflow_id, run};
    if (registry_.find_workflow(started.workflow_type.name) == nullptr) continue;
    const auto tasks = replay(registry_, execution, events);
    // The server does the first task of a permit that it has granted: core::begin_lease().
    const bool by_server = started.permit_request.has_value();
    for (std::size_t task = 0; task < tasks.size(); ++task) {
      const std::string commands = text_of(tasks[task]);
      const std::string was = !by_server  ? recorded.at(task)
                              : task == 0 ? text_of(begun_lease(events))
                                          : recorded.at(task - 1);
      if (commands == was) continue;
      std::string what =
          "run " + execution.workflow_id.value + ", task " + std::to_string(task + 1);
      what.append(": its commands were ").append(was);
      throw NondeterminismError(what.append("and on replay they are ").append(commands));
    }
  }
}

}  // namespace permit::worker
