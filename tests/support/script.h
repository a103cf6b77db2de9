// The command language of tests/scenarios: a client, an operator and workers of few words against a
// Cluster. One command a line; what it prints is the scenario's expectation. Run ids never appear:
// "w#2" is the second run of workflow w, and naming it so pins a request to that run.
//
// Clients: start ID... [queue type timeout run-timeout id reuse conflict input] · signal ID NAME
// [id input times] · signal-with-start · cancel · terminate · describe · history [from] · events
// (what these commands committed, a commit at a time) Workers: poll QUEUE [as sticky] · park QUEUE
// (answered when there is a task) · complete RUN: COMMANDS · do RUN: COMMANDS (poll its queue and
// complete) · try: COMMANDS (of a new run) · fail-task RUN CAUSE · poll-activity QUEUE · heartbeat,
// complete-activity, fail-activity, cancel-activity RUN/ACTIVITY · permits on|off (a worker of
// PermitSlotWorkflow that answers at once) · work-permits (once) Pools: pool, line, holds · pool
// set · pool delete · drain, undrain · acquire POOL id · hang-up · renew, release · force-release ·
// remove-waiter Time and failure: advance DURATION · crash · restart · fill-disk · free-disk
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tests/support/cluster.h"
#include "tests/support/words.h"

namespace permit::test {

class Script {
 public:
  // Runs commands and returns the lines they print.
  std::vector<std::string> run(const std::vector<std::string>& commands);

  // Everything there is to check; throws InvariantViolated.
  void check() { cluster_.check(); }
  // "/permit.db" and what is beside it, as they are now.
  Disk disk() const { return cluster_.disk(); }

 private:
  void run_one(const std::string& line);

  using Handler = void (Script::*)(Words&);
  static const std::map<std::string, Handler>& handlers();

  void start(Words& words);
  void signal(Words& words);
  void signal_with_start(Words& words);
  void cancel(Words& words);
  void terminate(Words& words);
  void describe(Words& words);
  void history(Words& words);
  void events(Words& words);

  void poll(Words& words);
  void park(Words& words);
  void fail_task(Words& words);
  void reset_sticky(Words& words);
  void poll_activity(Words& words);
  void heartbeat(Words& words);
  void complete_activity(Words& words);
  void fail_activity(Words& words);
  void cancel_activity(Words& words);
  void permits(Words& words);
  void work_permits(Words& words);

  void pool(Words& words);
  void line(Words& words);
  void holds(Words& words);
  void drain(Words& words);
  void undrain(Words& words);
  void acquire(Words& words);
  void hang_up(Words& words);
  void wait_over(Words& words);
  void renew(Words& words);
  void release(Words& words);
  void force_release(Words& words);
  void remove_waiter(Words& words);
  void why(Words& words);

  void advance(Words& words);
  void crash(Words& words);
  void restart(Words& words);
  void fill_disk(Words& words);
  void free_disk(Words& words);

  struct Task {
    Bytes token;
    WorkflowExecution run;
  };
  struct Holder {
    std::vector<WorkflowId> permits;
    std::string token;
    std::int64_t wait = 0;
  };

  void say(const std::string& text);
  void say(const Error& error);
  void say_commits();
  // What follows every command: the permit worker does its part.
  void after();

  // Calls, and prints the error if it is refused.
  template <class T, class Submit>
  std::optional<T> ask(const Submit& submit);

  void print_task(const PollWorkflowTaskQueueResponse& task);
  void remember(const PollWorkflowTaskQueueResponse& task);
  std::optional<PollWorkflowTaskQueueResponse> take_task(const std::string& queue,
                                                         const std::string& identity);
  bool take_task_of(Words words);
  const Task& task_of(Words& words);
  void complete(Words& words, const std::string& commands);
  void try_commands(const std::string& commands);
  bool work_one_permit();

  Bytes activity_token(const std::string& activity, Words& words);
  template <class T, class ByToken, class ById, class Fill, class Send, class SendById>
  std::optional<T> on_activity(Words& words, const Fill& fill, const Send& send,
                               const SendById& send_by_id);

  void print_pool(const PoolInfo& info);
  void set_pool(Words& words);
  void print_grant(const std::string& id, const AcquireResponse& response);
  HolderRequest holder_request(Words& words);
  WaiterRequest waiter_named(Words& words);

  Cluster cluster_;
  std::vector<std::string> printed_;
  std::map<std::string, std::vector<Task>> tasks_;  // handed out, by run name and by workflow id
  std::map<std::string, std::vector<Bytes>> activity_tokens_;  // handed out, by "w#1/a"
  std::map<std::string, Holder> holders_;                      // by request id
  bool permits_on_ = false;
};

template <class T, class Submit>
std::optional<T> Script::ask(const Submit& submit) {
  auto result = cluster_.call<T>(submit);
  if (!result) fail_script("there is no answer");
  if (auto* error = std::get_if<Error>(&*result)) {
    say(*error);
    return std::nullopt;
  }
  return std::get<T>(std::move(*result));
}

}  // namespace permit::test
