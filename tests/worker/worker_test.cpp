#include "worker/worker.h"

#include <doctest/doctest.h>

#include <condition_variable>
#include <future>
#include <mutex>
#include <string>
#include <vector>

#include "orchestrator/protocol/json.h"

using namespace permit;
using namespace permit::worker;
using namespace std::chrono_literals;

namespace {

constexpr ActivityName<std::string()> report{"report"};

// A server with a single activity task. It answers the results it is sent with `errors`, one after
// the other, and takes what comes after them.
class OneActivity : public Transport {
 public:
  explicit OneActivity(std::vector<Error> errors) : errors_(std::move(errors)) {}

  std::string call(std::string_view rpc, const std::string& request) override {
    std::unique_lock lock(mutex_);
    if (rpc == "PollActivityTaskQueue") return poll(lock);
    if (rpc == "ShutdownWorker") {
      shut_down_ = true;
      changed_.notify_all();
    } else if (rpc == "RespondActivityTaskCompleted") {
      const auto sent = read_json<RespondActivityTaskCompletedRequest>(request);
      sent_.push_back("completed " + sent.task_token.value + " with " +
                      sent.result->payloads.front().data.value);
      if (sent_.size() <= errors_.size()) throw errors_[sent_.size() - 1];
    } else if (rpc == "RespondActivityTaskFailed") {
      const auto sent = read_json<RespondActivityTaskFailedRequest>(request);
      const ApplicationFailureInfo& info = *sent.failure->application_failure_info;
      sent_.push_back("failed " + sent.task_token.value + " with " + info.type + ", " +
                      (info.non_retryable ? "for good" : "for now") + ": " + sent.failure->message);
    }
    return "{}";
  }

  // Once the worker has answered and asks for more.
  std::vector<std::string> sent() {
    std::unique_lock lock(mutex_);
    REQUIRE(changed_.wait_for(lock, 10s, [&] { return polls_ == 2; }));
    return sent_;
  }

 private:
  std::string poll(std::unique_lock<std::mutex>& lock) {
    ++polls_;
    changed_.notify_all();
    PollActivityTaskQueueResponse task;
    if (polls_ == 1) {
      task.task_token.value = "token";
      task.activity_type = ActivityType{"report"};
      task.attempt = 1;
    } else {
      changed_.wait(lock, [&] { return shut_down_; });
    }
    return to_json(task);
  }

  std::mutex mutex_;
  std::condition_variable changed_;  // polls_, shut_down_
  const std::vector<Error> errors_;
  std::vector<std::string> sent_;
  int polls_ = 0;
  bool shut_down_ = false;
};

// What a worker sends when its answers meet these errors.
std::vector<std::string> sent_after(std::vector<Error> errors) {
  Registry registry;
  registry.activity(report, [](ActivityContext&) { return std::string("long"); });
  OneActivity server(std::move(errors));
  WorkerOptions options("test");
  options.activity_threads = 1;
  options.print = [](const std::string&) {};
  Worker worker(server, registry, options);
  worker.start();
  return server.sent();
}

}  // namespace

TEST_SUITE_BEGIN("worker");

TEST_CASE("a result that the server refuses fails the activity for good") {
  const auto too_large = invalid_argument("PAYLOAD_TOO_LARGE", "the payload is too large");
  CHECK(sent_after({too_large}) ==
        std::vector<std::string>{
            R"(completed token with "long")",
            "failed token with ResultRefused, for good: the result was refused: the payload is too "
            "large"});
}

TEST_CASE("a result is sent again while the server is away, and dropped if nobody waits for it") {
  const std::string completed = R"(completed token with "long")";
  const Error away(ErrorCode::unavailable, "UNAVAILABLE", "nobody answers");
  CHECK(sent_after({}) == std::vector<std::string>{completed});
  CHECK(sent_after({away}) == std::vector<std::string>{completed, completed});
  CHECK(sent_after({not_found("TASK_NOT_FOUND", "too late")}) ==
        std::vector<std::string>{completed});
}

TEST_SUITE_END();
