#include "worker/pulse.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "orchestrator/protocol/json.h"
#include "worker/worker.h"

using namespace permit;
using namespace permit::worker;
using namespace std::chrono_literals;

namespace {

constexpr ActivityName<std::string(bool)> report{"report"};

// A server that remembers the heartbeats, or refuses them, and hands out one activity task.
class Listener : public Transport {
 public:
  std::optional<Error> refusal;
  bool fails = false;  // what the activity is to do

  std::string call(std::string_view rpc, const std::string& request) override {
    std::unique_lock lock(mutex_);
    if (rpc == "RecordWorkerHeartbeat") {
      sent_.push_back(read_json<RecordWorkerHeartbeatRequest>(request));
      changed_.notify_all();
      if (refusal) throw *refusal;
    } else if (rpc == "ShutdownWorker") {
      goodbye_ = read_json<ShutdownWorkerRequest>(request);
      changed_.notify_all();
    } else if (rpc == "PollActivityTaskQueue") {
      return poll(lock);
    }
    return "{}";
  }

  // Once there are so many.
  std::vector<RecordWorkerHeartbeatRequest> sent(std::size_t count) {
    std::unique_lock lock(mutex_);
    REQUIRE(changed_.wait_for(lock, 20s, [&] { return sent_.size() >= count; }));
    return sent_;
  }
  std::size_t sent_so_far() {
    const std::lock_guard lock(mutex_);
    return sent_.size();
  }
  // Once the activity has been answered, and there is a poll for more.
  void wait_for_second_poll() {
    std::unique_lock lock(mutex_);
    REQUIRE(changed_.wait_for(lock, 20s, [&] { return polls_ == 2; }));
  }
  const std::optional<ShutdownWorkerRequest>& goodbye() const { return goodbye_; }

 private:
  std::string poll(std::unique_lock<std::mutex>& lock) {
    ++polls_;
    changed_.notify_all();
    PollActivityTaskQueueResponse task;
    if (polls_ == 1) {
      task.task_token.value = "token";
      task.activity_type = ActivityType{"report"};
      task.attempt = 1;
      task.input = to_payloads(fails);
    } else {
      changed_.wait(lock, [&] { return goodbye_.has_value(); });
    }
    return to_json(task);
  }

  std::mutex mutex_;
  std::condition_variable changed_;  // all below
  std::vector<RecordWorkerHeartbeatRequest> sent_;
  std::optional<ShutdownWorkerRequest> goodbye_;
  int polls_ = 0;
};

WorkerHeartbeat nobody() {
  WorkerHeartbeat heartbeat;
  heartbeat.worker_instance_key = "key";
  heartbeat.worker_identity = "me";
  return heartbeat;
}

std::vector<WorkerStatus> statuses(const std::vector<RecordWorkerHeartbeatRequest>& sent) {
  std::vector<WorkerStatus> found;
  for (const auto& request : sent) found.push_back(request.worker_heartbeat.at(0).status);
  return found;
}

using Statuses = std::vector<WorkerStatus>;
constexpr auto running = WorkerStatus::running;
constexpr auto shutting_down = WorkerStatus::shutting_down;
constexpr auto shutdown = WorkerStatus::shutdown;

}  // namespace

TEST_SUITE_BEGIN("pulse");

TEST_CASE("a pulse beats at its start, when the worker begins to stop, and at its end") {
  Listener server;
  {
    Pulse pulse(server, "default", nobody);
    server.sent(1);
    pulse.begin_to_stop();
    server.sent(2);
  }
  const auto sent = server.sent(3);
  CHECK(statuses(sent) == Statuses{running, shutting_down, shutdown});
  for (const auto& request : sent) {
    const WorkerHeartbeat& heartbeat = request.worker_heartbeat.at(0);
    CHECK(request.namespace_ == "default");
    CHECK(request.identity == "me");
    CHECK(heartbeat.start_time == sent[0].worker_heartbeat[0].start_time);
    CHECK(heartbeat.heartbeat_time >= heartbeat.start_time);
  }
  CHECK(sent[0].worker_heartbeat[0].elapsed_since_last_heartbeat == 0s);
  CHECK(sent[1].worker_heartbeat[0].elapsed_since_last_heartbeat > 0s);
}

TEST_CASE("a pulse is silent for good when the server does not know the call") {
  const Error stock[] = {not_found("", "Not Found"),
                         Error(ErrorCode::unimplemented, "NOT_OFFERED", "not offered"),
                         Error(ErrorCode::unknown, "HTTP_404", "HTTP status 404"),
                         Error(ErrorCode::unknown, "HTTP_501", "HTTP status 501")};
  for (const Error& refusal : stock) {
    CAPTURE(refusal.reason());
    Listener server;
    server.refusal = refusal;
    {
      Pulse pulse(server, "default", nobody);
      server.sent(1);
      pulse.begin_to_stop();
    }
    CHECK(server.sent_so_far() == 1);
  }
}

TEST_CASE("a pulse goes on when the server is away, and does not wait ten seconds for it") {
  Listener server;
  server.refusal = Error(ErrorCode::unavailable, "SERVER_UNREACHABLE", "nobody is there");
  const auto begun = std::chrono::steady_clock::now();
  {
    const Pulse pulse(server, "default", nobody);
    const auto sent = server.sent(2);
    CHECK(sent[1].worker_heartbeat[0].elapsed_since_last_heartbeat == 0s);  // none has arrived
  }
  CHECK(std::chrono::steady_clock::now() - begun < 9s);
  CHECK(statuses(server.sent(3)).back() == shutdown);
}

TEST_CASE("slots are in use for as long as somebody has one, and never fewer than none are free") {
  TaskCounts counts;
  {
    const TaskCounts::Slot one(counts);
    const TaskCounts::Slot two(counts);
    CHECK(counts.info(8).current_used_slots == 2);
    CHECK(counts.info(8).current_available_slots == 6);
    CHECK(counts.info(0).current_available_slots == 0);  // it stops
    counts.note(TaskCounts::End::failed);
    counts.note(TaskCounts::End::done);
  }
  const WorkerSlotsInfo info = counts.info(8);
  CHECK(info.current_used_slots == 0);
  CHECK(info.total_processed_tasks.value == 2);
  CHECK(info.total_failed_tasks.value == 1);
}

TEST_CASE("a worker tells what it is and what it has done, and says goodbye under the same key") {
  for (const bool fails : {false, true}) {
    CAPTURE(fails);
    Listener server;
    server.fails = fails;
    Registry registry;
    registry.activity(report, [](ActivityContext&, bool bad) -> std::string {
      if (bad) throw ApplicationFailed("as it was told");
      return "done";
    });
    WorkerOptions options("queue");
    options.activity_threads = 1;
    options.identity = "me";
    options.build_id = "b1";
    {
      Worker worker(server, registry, options);
      worker.start();
      server.sent(1);
      server.wait_for_second_poll();
    }
    const auto sent = server.sent(2);
    CHECK(statuses(sent).front() == running);
    CHECK(statuses(sent).back() == shutdown);
    const WorkerHeartbeat& last = sent.back().worker_heartbeat[0];
    CHECK(last.worker_identity == "me");
    CHECK(last.task_queue == "queue");
    CHECK(last.deployment_version.build_id == "b1");
    CHECK(last.sdk_name == "permit-cpp");
    CHECK(!last.sdk_version.empty());
    CHECK(!last.host_info.host_name.empty());
    CHECK(last.host_info.process_id == std::to_string(getpid()));
    CHECK(!last.workflow_task_slots_info);
    REQUIRE(last.activity_task_slots_info);
    CHECK(last.activity_task_slots_info->current_used_slots == 0);
    CHECK(last.activity_task_slots_info->current_available_slots == 0);
    CHECK(last.activity_task_slots_info->total_processed_tasks.value == 1);
    CHECK(last.activity_task_slots_info->total_failed_tasks.value == (fails ? 1 : 0));
    const WorkerHeartbeat& first = sent.front().worker_heartbeat[0];
    CHECK(first.worker_instance_key == last.worker_instance_key);
    CHECK(server.goodbye()->worker_instance_key == last.worker_instance_key);
  }
}

TEST_SUITE_END();
