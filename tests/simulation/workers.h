// Workers that poll, play the permit workflow and random parents, or run the SDK's code; they
// answer late, twice or never.
#pragma once

#include <set>

#include "orchestrator/service/task_token.h"
#include "tests/simulation/sections.h"
#include "tests/simulation/world.h"

namespace permit::simulation {

class Workers {
 public:
  explicit Workers(World& world);

  // One of them does something.
  void step();
  // Faults are off: everybody polls and answers until there is nothing left to do at this time.
  // Returns whether anybody did anything.
  bool work();
  // The server died, and the connections with it.
  void disconnected();
  // Each completion that was taken completed the task it was given for, and no other.
  void check() const;

 private:
  enum class Queue { permits, parents, activities, sections, sticky };
  struct Task {
    Bytes token;
    RunNumber run;
    RunId run_id;
    std::int64_t scheduled_event_id = 0;
    std::int64_t started_event_id = 0;
    int attempt = 1;
    Time ends = never;  // an activity's attempt: then it is too late
    Time resumes{};     // a pause: the worker does not look at it before
    std::shared_ptr<const PollWorkflowTaskQueueResponse> response;  // for the SDK's code
  };
  struct Worker {
    Queue queue = Queue::parents;
    std::string identity;
    std::shared_ptr<Runner> runner;  // of the SDK's code; shared by the two polls of one process
    std::int64_t poll = 0;
    std::int64_t polls = 0;  // so far
    bool polling = false;
    std::vector<Task> tasks;
  };
  // What an activity's heartbeats have said.
  struct Details {
    std::set<std::string> sent;
    bool acknowledged = false;
  };

  void add(Queue queue, std::shared_ptr<Runner> runner = {});
  std::string next_name() const;
  void poll(std::size_t index);
  template <class Request, class Response>
  void poll_on(std::size_t index, const std::string& queue, const Rpc<Request, Response>& rpc);
  void lose_connection(Worker& worker);
  void got(std::size_t worker, const PollWorkflowTaskQueueResponse& response);
  void got(std::size_t worker, const PollActivityTaskQueueResponse& response);
  void keep(std::size_t index, Task task);
  service::TaskToken note_hand_out(const Bytes& token, service::TaskToken::Kind kind);
  template <class Response>
  Task handed_out(const Response& response, service::TaskToken::Kind kind);
  void check_details(const Task& task, const PollActivityTaskQueueResponse& response) const;
  void take_up(Worker& worker);
  void answer(Worker& worker, const Task& task);
  void answer_workflow_task(Worker& worker, const Task& task);
  void answer_by_code(std::size_t index, const Task& task);
  void fail(const Task& task);
  void answer_activity(const Task& task);
  template <class Request>
  void send_end(const Task& task, const Rpc<Request, EmptyResponse>& rpc, Request request,
                bool leaves);
  void heartbeat(const Task& task);
  void answer_stale();
  void answer_garbage(const Task& task);
  void complete(std::size_t index, const Task& task, RespondWorkflowTaskCompletedRequest request);
  bool is_punctual() const;

  World& world_;
  std::vector<Worker> workers_;
  std::vector<std::pair<std::size_t, Task>> past_;  // answered, timed out or dropped
  std::set<std::string> handed_out_;
  // Completions that were taken, by mark: whose task it must have been.
  std::map<std::string, std::pair<RunNumber, std::int64_t>> answered_tasks_;
  std::map<std::string, int> answered_attempts_;  // of activities
  std::map<std::pair<std::int64_t, std::int64_t>, Details> details_;
  Commands commands_;
};

}  // namespace permit::simulation
