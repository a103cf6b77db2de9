// The process that polls task queues and runs what it gets.
//
// Threads: pollers, each of which has one workflow task at a time, from poll to answer; one thread
// that runs all workflow code; activity threads, each of which polls, runs and answers; one for the
// heartbeats of activities, one for the worker's own. They meet in queue.h, Heartbeats and Pulse.
//
//   HttpTransport transport("127.0.0.1:7376");
//   Worker worker(transport, registry, WorkerOptions("training"));
//   return worker.run_until_signal();
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "worker/client.h"
#include "worker/heartbeats.h"
#include "worker/pulse.h"
#include "worker/queue.h"
#include "worker/registry.h"
#include "worker/task_runner.h"

namespace permit::worker {

struct WorkerOptions {
  explicit WorkerOptions(std::string queue) : task_queue(std::move(queue)) {}

  std::string task_queue;
  std::string namespace_name = "default";
  std::string identity;  // default: pid@host
  std::string build_id;  // of the program, to tell its versions apart in lists
  int workflow_pollers = 8;
  int activity_threads = 8;
  std::size_t runs_cached_max = 1'000;
  // Workflow code that does not give way within this is taken for a bug, and its task fails.
  Duration deadlock_timeout = std::chrono::seconds(1);
  // How long a stop waits for activities before it tells them to stop, and then again as long.
  Duration drain_timeout = std::chrono::seconds(30);
  LogSink log;                                    // of workflow code
  std::function<void(const std::string&)> print;  // of the worker itself; default: stderr
  // Called by run_until_signal(): when it polls, and when a signal has told it to stop.
  std::function<void()> on_started;
  std::function<void()> on_stopping;
};

class Worker {
 public:
  // Both outlive it. Throws Misuse if there is nothing to run.
  Worker(Transport& transport, const Registry& registry, WorkerOptions options);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  void start();
  // Takes no new tasks, lets those that it has end, and returns. Idempotent.
  void stop();

  // start(), then stop() on SIGTERM or SIGINT; a second signal ends the process at once. Returns
  // the exit code.
  int run_until_signal();

  const std::string& identity() const { return options_.identity; }

 private:
  class Backoff;
  struct Running;  // a workflow task on the workflow thread

  void poll_workflow_tasks(const std::string& queue, bool sticky);
  void run_workflow_task(PollWorkflowTaskQueueResponse task);
  std::optional<PollWorkflowTaskQueueResponse> answer(WorkflowTaskAnswer answer);
  WorkflowTaskAnswer run_on_workflow_thread(const PollWorkflowTaskQueueResponse& task);
  void report_deadlock(const PollWorkflowTaskQueueResponse& task);
  void evict(const RunId& run);

  void poll_activities();
  void run_activity_task(const PollActivityTaskQueueResponse& task);
  template <class Request>
  std::string send_activity_answer(std::string_view rpc, Request request);
  void answer_activity(ActivityTaskAnswer answer, std::optional<Payloads> last_details);
  bool send_heartbeat(const Bytes& token, const std::optional<Payloads>& details);

  WorkerHeartbeat measure() const;
  void drain_activities();
  void tell_server_goodbye();
  void pause(Duration duration);
  void print(const std::string& line);

  Transport& transport_;
  const Registry& registry_;
  WorkerOptions options_;
  std::string sticky_queue_;
  const std::string instance_key_;

  std::atomic<bool> stopping_{false};
  std::mutex mutex_;
  std::condition_variable changed_;  // stopping_, polling_
  int polling_ = 0;

  // What is measured; by any thread.
  TaskCounts workflow_tasks_;
  TaskCounts activity_tasks_;
  std::atomic<int> runs_cached_{0};
  std::atomic<std::int64_t> cache_hits_{0};
  std::atomic<std::int64_t> cache_misses_{0};

  Queue workflow_queue_;
  std::unique_ptr<TaskRunner> runner_;  // of the workflow thread
  std::unique_ptr<Heartbeats> heartbeats_;
  std::unique_ptr<Pulse> pulse_;
  std::vector<std::thread> pollers_;
  std::thread workflow_thread_;
};

}  // namespace permit::worker
