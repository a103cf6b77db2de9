#include "worker/worker.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <future>
#include <iostream>

#include "orchestrator/protocol/error.h"
#include "orchestrator/protocol/version.h"

namespace permit::worker {

namespace {

using namespace std::chrono_literals;

std::string host_name() {
  char host[256] = "localhost";
  gethostname(host, sizeof host - 1);
  return host;
}

bool has_failed(const WorkflowTaskAnswer& answer) {
  return std::holds_alternative<RespondWorkflowTaskFailedRequest>(answer) ||
         std::holds_alternative<std::monostate>(answer);
}

}  // namespace

// How long to wait before the next try while the server is away.
class Worker::Backoff {
 public:
  void succeeded() { next_ = first; }
  Duration failed() {
    const Duration wait = next_;
    next_ = std::min<Duration>(next_ * 2, max);
    return wait;
  }

 private:
  static constexpr Duration first = 100ms;
  static constexpr Duration max = 5s;
  Duration next_ = first;
};

Worker::Worker(Transport& transport, const Registry& registry, WorkerOptions options)
    : transport_(transport),
      registry_(registry),
      options_(std::move(options)),
      instance_key_(new_request_id()) {
  if (!registry_.has_workflows() && !registry_.has_activities()) {
    throw Misuse(
        "a worker with nothing registered has nothing to do; register a workflow or an "
        "activity first");
  }
  if (options_.identity.empty()) {
    options_.identity = std::to_string(getpid()) + "@" + host_name();
  }
  if (options_.runs_cached_max > 0) {
    sticky_queue_ = "sticky:" + options_.identity + ":" + new_request_id();
  }
}

Worker::~Worker() { stop(); }

void Worker::start() {
  TaskRunner::Options options;
  options.namespace_name = options_.namespace_name;
  options.identity = options_.identity;
  options.sticky_queue = sticky_queue_;
  options.runs_cached_max = options_.runs_cached_max;
  options.log = options_.log;
  options.fetch_history = [this](const WorkflowExecution& execution) {
    return fetch_history(transport_, options_.namespace_name, execution);
  };
  runner_ = std::make_unique<TaskRunner>(registry_, std::move(options));
  heartbeats_ = std::make_unique<Heartbeats>(
      [this](const Bytes& token, const std::optional<Payloads>& details) {
        return send_heartbeat(token, details);
      });
  workflow_thread_ = std::thread([this] {
    while (const auto job = workflow_queue_.pop()) {
      (*job)();
      runs_cached_ = static_cast<int>(runner_->runs_cached());
      cache_hits_ = runner_->cache_hits();
      cache_misses_ = runner_->cache_misses();
    }
    runner_.reset();  // frames are destroyed on the thread that ran them
    runs_cached_ = 0;
  });
  const auto begin = [this](auto poll) {
    {
      const std::lock_guard lock(mutex_);
      ++polling_;
    }
    pollers_.emplace_back([this, poll] {
      poll();
      const std::lock_guard lock(mutex_);
      --polling_;
      changed_.notify_all();
    });
  };
  if (registry_.has_workflows()) {
    for (int i = 0; i < options_.workflow_pollers; ++i) {
      // Half of them for runs that are here already, if runs are kept.
      const bool sticky = !sticky_queue_.empty() && i % 2 == 1;
      begin([this, sticky] {
        poll_workflow_tasks(sticky ? sticky_queue_ : options_.task_queue, sticky);
      });
    }
  }
  if (registry_.has_activities()) {
    for (int i = 0; i < options_.activity_threads; ++i) begin([this] { poll_activities(); });
  }
  pulse_ =
      std::make_unique<Pulse>(transport_, options_.namespace_name, [this] { return measure(); });
}

WorkerHeartbeat Worker::measure() const {
  WorkerHeartbeat heartbeat;
  heartbeat.worker_instance_key = instance_key_;
  heartbeat.worker_identity = options_.identity;
  heartbeat.host_info.host_name = host_name();
  heartbeat.host_info.process_id = std::to_string(getpid());
  heartbeat.task_queue = options_.task_queue;
  heartbeat.deployment_version.build_id = options_.build_id;
  heartbeat.sdk_name = "permit-cpp";
  heartbeat.sdk_version = version;
  // Who stops has no slot for a new task.
  if (registry_.has_workflows()) {
    heartbeat.workflow_task_slots_info =
        workflow_tasks_.info(stopping_ ? 0 : options_.workflow_pollers);
  }
  if (registry_.has_activities()) {
    heartbeat.activity_task_slots_info =
        activity_tasks_.info(stopping_ ? 0 : options_.activity_threads);
  }
  heartbeat.current_sticky_cache_size = runs_cached_;
  heartbeat.total_sticky_cache_hit = Count{cache_hits_};
  heartbeat.total_sticky_cache_miss = Count{cache_misses_};
  return heartbeat;
}

// --- Stopping ---

void Worker::stop() {
  if (!runner_ && !workflow_thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (pulse_) pulse_->begin_to_stop();
  drain_activities();
  for (std::thread& poller : pollers_) poller.join();
  pollers_.clear();
  workflow_queue_.close();
  if (workflow_thread_.joinable()) workflow_thread_.join();
  heartbeats_.reset();
  pulse_.reset();
}

// Parked polls are sent away by the server, at our asking; who polls at this very moment is asked
// for again.
void Worker::drain_activities() {
  const auto begun = std::chrono::steady_clock::now();
  bool told = false;
  std::unique_lock lock(mutex_);
  while (polling_ > 0) {
    lock.unlock();
    tell_server_goodbye();
    if (!told && std::chrono::steady_clock::now() > begun + options_.drain_timeout) {
      told = true;
      heartbeats_->cancel_all();
    }
    lock.lock();
    changed_.wait_for(lock, 100ms, [&] { return polling_ == 0; });
  }
}

void Worker::tell_server_goodbye() {
  ShutdownWorkerRequest request;
  request.namespace_ = options_.namespace_name;
  request.sticky_task_queue = sticky_queue_;
  request.identity = options_.identity;
  request.worker_instance_key = instance_key_;
  try {
    call<EmptyResponse>(transport_, "ShutdownWorker", request);
  } catch (const Error&) {
    // It is away, and knows nobody's polls any more.
  }
}

int Worker::run_until_signal() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  start();
  if (options_.on_started) options_.on_started();
  int received = 0;
  sigwait(&signals, &received);
  if (options_.on_stopping) options_.on_stopping();
  print("stopping: no new tasks, waiting for those that run; again to stop at once");
  std::thread impatient([signals, this] {
    int second = 0;
    sigwait(&signals, &second);
    if (second != SIGTERM && second != SIGINT) return;
    print("stopped at once; what ran here will be tried again elsewhere");
    std::_Exit(128 + second);
  });
  impatient.detach();
  stop();
  return 0;
}

void Worker::pause(Duration duration) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, duration, [&] { return stopping_.load(); });
}

void Worker::print(const std::string& line) {
  if (options_.print) {
    options_.print(line);
  } else {
    std::cerr << "permit worker: " + line + "\n" << std::flush;
  }
}

// --- Workflow tasks ---

void Worker::poll_workflow_tasks(const std::string& queue, bool sticky) {
  PollWorkflowTaskQueueRequest request;
  request.namespace_ = options_.namespace_name;
  request.task_queue.name = queue;
  if (sticky) {
    request.task_queue.kind = TaskQueueKind::sticky;
    request.task_queue.normal_name = options_.task_queue;
  }
  request.identity = options_.identity;
  Backoff backoff;
  while (!stopping_) {
    try {
      auto task = call<PollWorkflowTaskQueueResponse>(transport_, "PollWorkflowTaskQueue", request);
      backoff.succeeded();
      if (!task.task_token.value.empty()) run_workflow_task(std::move(task));
    } catch (const Error& error) {
      const Duration wait = backoff.failed();
      if (wait >= 1s) print("cannot poll " + queue + ": " + error.message() + "; trying again");
      pause(wait);
    }
  }
}

// And those that come back with the answers, until the run has nothing to do.
void Worker::run_workflow_task(PollWorkflowTaskQueueResponse task) {
  const TaskCounts::Slot slot(workflow_tasks_);
  for (;;) {
    WorkflowTaskAnswer result = run_on_workflow_thread(task);
    workflow_tasks_.note(has_failed(result) ? TaskCounts::End::failed : TaskCounts::End::done);
    const RunId run = task.workflow_execution->run_id;
    std::optional<PollWorkflowTaskQueueResponse> next;
    try {
      next = answer(std::move(result));
    } catch (const Error& error) {
      evict(run);
      if (error.code() != ErrorCode::not_found) {
        print("an answer was not taken: " + error.message() + " (" + error.reason() + ")");
      }
      return;
    }
    workflow_queue_.push([this, run, token = task.task_token] { runner_->accepted(run, token); });
    if (!next) return;
    task = std::move(*next);
  }
}

std::optional<PollWorkflowTaskQueueResponse> Worker::answer(WorkflowTaskAnswer answer) {
  if (auto* completed = std::get_if<RespondWorkflowTaskCompletedRequest>(&answer)) {
    completed->return_new_workflow_task = !stopping_;
    return call<RespondWorkflowTaskCompletedResponse>(transport_, "RespondWorkflowTaskCompleted",
                                                      *completed)
        .workflow_task;
  }
  if (const auto* failed = std::get_if<RespondWorkflowTaskFailedRequest>(&answer)) {
    call<EmptyResponse>(transport_, "RespondWorkflowTaskFailed", *failed);
  } else if (const auto* query = std::get_if<RespondQueryTaskCompletedRequest>(&answer)) {
    call<EmptyResponse>(transport_, "RespondQueryTaskCompleted", *query);
  }
  return std::nullopt;
}

struct Worker::Running {
  std::promise<WorkflowTaskAnswer> answer;
  std::atomic<bool> begun{false};
};

WorkflowTaskAnswer Worker::run_on_workflow_thread(const PollWorkflowTaskQueueResponse& task) {
  const auto running = std::make_shared<Running>();
  std::future<WorkflowTaskAnswer> answer = running->answer.get_future();
  workflow_queue_.push([this, running, &task] {
    running->begun = true;
    running->answer.set_value(runner_->run(task));
  });
  // What waits in the queue is no deadlock.
  while (!running->begun && answer.wait_for(10ms) == std::future_status::timeout) {
  }
  if (answer.wait_for(options_.deadlock_timeout) == std::future_status::ready) return answer.get();
  report_deadlock(task);
  answer.wait();
  evict(task.workflow_execution->run_id);
  return std::monostate();
}

void Worker::report_deadlock(const PollWorkflowTaskQueueResponse& task) {
  RespondWorkflowTaskFailedRequest request;
  request.task_token = task.task_token;
  request.namespace_ = options_.namespace_name;
  request.identity = options_.identity;
  request.cause = WorkflowTaskFailedCause::workflow_worker_unhandled_failure;
  Failure& failure = request.failure.emplace();
  failure.message = "potential deadlock: workflow \"" + task.workflow_type->name + "\" (" +
                    task.workflow_execution->workflow_id.value + ", run " +
                    task.workflow_execution->run_id.value + ") has not given way for " +
                    std::to_string(options_.deadlock_timeout.count() / 1000) +
                    " ms. Workflow code must not block or compute long: put that into an activity";
  failure.application_failure_info.emplace().type = "PotentialDeadlock";
  print(failure.message);
  try {
    call<EmptyResponse>(transport_, "RespondWorkflowTaskFailed", request);
  } catch (const Error&) {
    // It times out instead.
  }
}

void Worker::evict(const RunId& run) {
  workflow_queue_.push([this, run] { runner_->evict(run); });
}

// --- Activities ---

void Worker::poll_activities() {
  PollActivityTaskQueueRequest request;
  request.namespace_ = options_.namespace_name;
  request.task_queue.name = options_.task_queue;
  request.identity = options_.identity;
  Backoff backoff;
  while (!stopping_) {
    try {
      const auto task =
          call<PollActivityTaskQueueResponse>(transport_, "PollActivityTaskQueue", request);
      backoff.succeeded();
      if (!task.task_token.value.empty()) run_activity_task(task);
    } catch (const Error& error) {
      const Duration wait = backoff.failed();
      if (wait >= 1s) {
        print("cannot poll " + options_.task_queue + ": " + error.message() + "; trying again");
      }
      pause(wait);
    }
  }
}

void Worker::run_activity_task(const PollActivityTaskQueueResponse& task) {
  const TaskCounts::Slot slot(activity_tasks_);
  std::int64_t id = 0;
  ActivityContext context(
      activity_info_of(task), task.heartbeat_details,
      [&](std::optional<Payloads> details) { heartbeats_->record(id, std::move(details)); });
  id = heartbeats_->add(context);
  ActivityTaskAnswer result = run_activity(registry_, task, context);
  const bool failed = std::holds_alternative<RespondActivityTaskFailedRequest>(result);
  activity_tasks_.note(failed ? TaskCounts::End::failed : TaskCounts::End::done);
  answer_activity(std::move(result), heartbeats_->remove(id));
}

// Tried again while the server is away: a token is good for one answer only. Returns the server's
// words if it refuses this answer for what it is.
template <class Request>
std::string Worker::send_activity_answer(std::string_view rpc, Request request) {
  request.identity = options_.identity;
  request.namespace_ = options_.namespace_name;
  Backoff backoff;
  for (int attempt = 1;; ++attempt) {
    try {
      call<EmptyResponse>(transport_, rpc, request);
      return {};
    } catch (const Error& error) {
      if (error.code() == ErrorCode::not_found) return {};  // timed out, or its run is over
      const bool away =
          error.code() == ErrorCode::unavailable || error.code() == ErrorCode::resource_exhausted;
      if (away && attempt < 10 && !stopping_) {
        pause(backoff.failed());
        continue;
      }
      print("an activity's answer was not taken: " + error.message());
      return away ? std::string() : error.message();
    }
  }
}

void Worker::answer_activity(ActivityTaskAnswer answer, std::optional<Payloads> last_details) {
  if (auto* completed = std::get_if<RespondActivityTaskCompletedRequest>(&answer)) {
    const Bytes token = completed->task_token;
    const std::string refused =
        send_activity_answer("RespondActivityTaskCompleted", std::move(*completed));
    if (refused.empty()) return;
    // A result that is too large stays so.
    RespondActivityTaskFailedRequest failed;
    failed.task_token = token;
    failed.failure = ApplicationFailed("the result was refused: " + refused)
                         .type("ResultRefused")
                         .non_retryable()
                         .failure();
    send_activity_answer("RespondActivityTaskFailed", std::move(failed));
  } else if (auto* failed = std::get_if<RespondActivityTaskFailedRequest>(&answer)) {
    failed->last_heartbeat_details = std::move(last_details);
    send_activity_answer("RespondActivityTaskFailed", std::move(*failed));
  } else if (auto* canceled = std::get_if<RespondActivityTaskCanceledRequest>(&answer)) {
    send_activity_answer("RespondActivityTaskCanceled", std::move(*canceled));
  }
}

bool Worker::send_heartbeat(const Bytes& token, const std::optional<Payloads>& details) {
  RecordActivityTaskHeartbeatRequest request;
  request.task_token = token;
  request.details = details;
  request.identity = options_.identity;
  request.namespace_ = options_.namespace_name;
  try {
    return call<RecordActivityTaskHeartbeatResponse>(transport_, "RecordActivityTaskHeartbeat",
                                                     request)
        .cancel_requested;
  } catch (const Error& error) {
    return error.code() == ErrorCode::not_found;
  }
}

}  // namespace permit::worker
