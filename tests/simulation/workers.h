// Workers that poll, play the permit workflow and random parents, answer late, twice or never.
#pragma once

#include <set>

#include "orchestrator/service/task_token.h"
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
  enum class Queue { permits, parents, activities };
  struct Task {
    Bytes token;
    RunNumber run;
    RunId run_id;
    std::int64_t scheduled_event_id = 0;
    std::int64_t started_event_id = 0;
    Time since{};
    Time resumes{};  // a pause: the worker does not look at it before
    int attempt = 1;
  };
  struct Worker {
    Queue queue = Queue::parents;
    std::string identity;
    std::int64_t poll = 0;
    bool polling = false;
    std::vector<Task> tasks;
  };

  void poll(std::size_t index);
  template <class Request, class Response>
  void poll_on(std::size_t index, const char* queue,
               std::int64_t (service::Service::*method)(Request, service::Done<Response>));
  void lose_connection(Worker& worker);
  void got(std::size_t worker, const PollWorkflowTaskQueueResponse& response);
  void got(std::size_t worker, const PollActivityTaskQueueResponse& response);
  void keep(std::size_t index, Task task);
  void note_hand_out(const Bytes& token, service::TaskToken::Kind kind);
  void take_up(Worker& worker);
  void answer(Worker& worker, const Task& task);
  void answer_workflow_task(Worker& worker, const Task& task);
  void answer_activity(const Task& task);
  void heartbeat(const Task& task);
  void answer_stale();
  void complete(std::size_t index, const Task& task, std::vector<Command> commands);

  World& world_;
  std::vector<Worker> workers_;
  std::vector<std::pair<std::size_t, Task>> past_;  // answered, timed out or dropped
  std::set<std::string> handed_out_;
  // Completions that were taken, by mark: whose task it must have been.
  std::map<std::string, std::pair<RunNumber, std::int64_t>> answered_tasks_;
};

}  // namespace permit::simulation
