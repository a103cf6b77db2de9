// Server and worker in one process and one thread, on a clock that moves when told: a lease of 45
// minutes passes in milliseconds, and the same test does the same every time.
//
//   TestEnvironment environment(registry);
//   auto run = environment.client().start(nightly, StartOptions("n"), plan);
//   environment.advance(45min);
//   CHECK(run.result() == ...);              // waits by moving the clock
//
// When it goes, every history is replayed from each of its tasks, and must give the same commands;
// and of every pool, each grant must have ended in one way, or be held.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "worker/client.h"
#include "worker/task_runner.h"

namespace permit::service {
class Service;
template <class T>
class Done;
}  // namespace permit::service

namespace permit::worker {

class TestEnvironment {
 public:
  struct Options {
    std::vector<std::string> task_queues = {"test", "permits"};
    std::size_t runs_cached_max = 1'000;  // 0: every task replays its run from the start
    std::uint64_t seed = 1;
    LogSink log;
    bool replay_at_end = true;
  };

  // `registry` outlives it.
  explicit TestEnvironment(const Registry& registry);
  TestEnvironment(const Registry& registry, Options options);
  // Throws what check() does, unless an exception is on its way already.
  ~TestEnvironment() noexcept(false);
  TestEnvironment(const TestEnvironment&) = delete;
  TestEnvironment& operator=(const TestEnvironment&) = delete;

  // Starts go to the first task queue unless they say otherwise.
  Client& client() { return client_; }

  Time now();
  // Moves the clock, through everything that falls due, and lets server and worker finish.
  void advance(Duration duration);
  // Lets server and worker do all they can at this instant.
  void settle();
  // One thing of that, if there is any to do: a batch of the server's, a task of the worker's.
  bool work();

  // The worker dies: its runs leave memory, its tasks are lost until they time out. A new one
  // polls.
  void restart_worker();
  // The server stops between two commits and starts again on the same database.
  void restart_server();
  // No worker polls; restart_worker() brings one back.
  void stop_worker();

  // Compares every run so far with what the code does now, and the ledger with itself.
  void check();

 private:
  class Server;     // service, store and clock
  class InProcess;  // the Transport

  template <class Request, class Response>
  void begin_poll(const std::string& kind, const std::string& queue,
                  std::int64_t (service::Service::*method)(Request, service::Done<Response>),
                  std::deque<Response>& tasks);
  void begin_polls();
  void check_ledger();
  void run_workflow_task(const PollWorkflowTaskQueueResponse& task);
  void run_activity_task(const PollActivityTaskQueueResponse& task);
  // Until `answered`, moving the clock when there is nothing else to do.
  void wait_for(const std::function<bool()>& answered);

  const Registry& registry_;
  const Options options_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<Transport> transport_;
  Client client_;
  std::unique_ptr<TaskRunner> runner_;
  int worker_number_ = 0;
  bool works_ = true;
  std::map<std::string, std::int64_t> polls_;  // that are parked, by kind and queue
  std::deque<PollWorkflowTaskQueueResponse> workflow_tasks_;
  std::deque<PollActivityTaskQueueResponse> activity_tasks_;
  std::map<RunId, std::vector<std::string>> commands_;  // of each task that counted, as JSON
};

}  // namespace permit::worker
