#include "tests/bench/open_runs.h"

#include <algorithm>
#include <stdexcept>

#include "orchestrator/service/service.h"

namespace permit::bench {

namespace {

using service::Result;

store::Database::Options options_of(const std::string& path) {
  store::Database::Options options;
  options.path = path;
  return options;
}

class Maker {
 public:
  Maker(const std::string& database, const std::function<std::vector<Command>()>& commands)
      : store_(options_of(database)),
        clock_(store_.counters().time_max),
        log_(LogFormat::text, LogLine::Level::error, [](std::string_view) {}),
        service_(store_, clock_, options()),
        commands_(commands) {}

  void make(int from, int to) {
    for (int i = from; i < to; ++i) start("open-" + std::to_string(i));
    service_.run_batch();
    for (int i = from; i < to; ++i) poll();
    while (service_.has_work()) service_.run_batch();
    if (completed_ != to - from) throw std::runtime_error("not all open runs were made");
    completed_ = 0;
  }

 private:
  service::Options options() {
    service::Options options;
    options.log = &log_;
    return options;
  }

  void start(const std::string& id) {
    StartWorkflowExecutionRequest request;
    request.namespace_ = "default";
    request.workflow_id = WorkflowId(id);
    request.workflow_type.name = "open";
    request.task_queue.name = "open";
    request.request_id = id;
    service_.start(std::move(request), [](const Result<StartWorkflowExecutionResponse>& result) {
      if (std::holds_alternative<Error>(result)) throw std::runtime_error("a start was refused");
    });
  }

  void poll() {
    PollWorkflowTaskQueueRequest request;
    request.namespace_ = "default";
    request.task_queue.name = "open";
    service_.poll_workflow_task(
        std::move(request), [this](const Result<PollWorkflowTaskQueueResponse>& result) {
          const auto* task = std::get_if<PollWorkflowTaskQueueResponse>(&result);
          if (task == nullptr) throw std::runtime_error("a poll was refused");
          complete(task->task_token);
        });
  }

  void complete(const Bytes& token) {
    RespondWorkflowTaskCompletedRequest request;
    request.namespace_ = "default";
    request.task_token = token;
    if (commands_) request.commands = commands_();
    service_.complete_workflow_task(
        std::move(request), [this](const Result<RespondWorkflowTaskCompletedResponse>& result) {
          if (std::holds_alternative<Error>(result)) throw std::runtime_error("a task was refused");
          ++completed_;
        });
  }

  store::Store store_;
  service::SystemClock clock_;
  Log log_;
  service::Service service_;
  const std::function<std::vector<Command>()>& commands_;
  int completed_ = 0;
};

}  // namespace

void add_open_runs(const std::string& database, int from, int to,
                   const std::function<std::vector<Command>()>& commands) {
  constexpr int at_once = 1'000;
  Maker maker(database, commands);
  for (int i = from; i < to; i += at_once) maker.make(i, std::min(i + at_once, to));
}

}  // namespace permit::bench
