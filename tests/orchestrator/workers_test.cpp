// What the server knows of its workers: by their heartbeats, in memory, for a while.
#include "orchestrator/service/workers.h"

#include <doctest/doctest.h>

#include <limits>
#include <string>

#include "tests/support/cluster.h"

namespace permit::test {
namespace {

using namespace std::chrono_literals;
using service::Workers;
using service::WorkerTotals;

constexpr Time start{Duration(1'785'585'600'000'000)};

WorkerHeartbeat heartbeat_of(const std::string& key, const std::string& queue = "q",
                             WorkerStatus status = WorkerStatus::running) {
  WorkerHeartbeat heartbeat;
  heartbeat.worker_instance_key = key;
  heartbeat.worker_identity = "1@host";
  heartbeat.task_queue = queue;
  heartbeat.status = status;
  return heartbeat;
}

std::string keys_of(const Workers& workers, Time now) {
  std::string keys;
  for (const WorkerInfo& worker : workers.list("", 100, now)) {
    keys += worker.worker_heartbeat.worker_instance_key + (worker.silent ? "! " : " ");
  }
  return keys;
}

// --- How long a worker is known ---

TEST_CASE("a worker that falls silent is called so after 30 s, and forgotten after 10 minutes") {
  Workers workers;
  workers.record(heartbeat_of("a"), start);
  workers.record(heartbeat_of("b"), start);
  workers.record(heartbeat_of("b"), start + 10s);
  CHECK(keys_of(workers, start + 30s) == "a b ");
  CHECK(keys_of(workers, start + 31s) == "a! b ");
  workers.forget_silent(start + 10min - 1us);
  CHECK(keys_of(workers, start + 10min) == "a! b! ");
  workers.forget_silent(start + 10min);
  CHECK(keys_of(workers, start + 10min) == "b! ");
  workers.record(heartbeat_of("b"), start + 10min + 9s);
  workers.forget_silent(start + 10min + 10s);
  CHECK(keys_of(workers, start + 10min + 10s) == "b ");
}

TEST_CASE("a worker that has ended is never silent, and forgotten after a minute") {
  Workers workers;
  workers.record(heartbeat_of("a"), start);
  workers.record(heartbeat_of("a", "q", WorkerStatus::shutdown), start + 1s);
  CHECK(keys_of(workers, start + 60s) == "a ");
  workers.forget_silent(start + 61s);
  CHECK(workers.size() == 0);
  CHECK(workers.totals(start + 61s).empty());
}

TEST_CASE("who sends a heartbeat a minute is silent after three minutes") {
  Workers workers;
  WorkerHeartbeat heartbeat = heartbeat_of("a");
  heartbeat.elapsed_since_last_heartbeat = 60s;
  workers.record(heartbeat, start);
  CHECK(keys_of(workers, start + 180s) == "a ");
  CHECK(keys_of(workers, start + 181s) == "a! ");
  heartbeat.elapsed_since_last_heartbeat = 24h;  // the server was away, say
  workers.record(heartbeat, start);
  CHECK(keys_of(workers, start + 181s) == "a! ");
}

TEST_CASE("times are the server's own, whatever the worker's clock says") {
  Workers workers;
  WorkerHeartbeat heartbeat = heartbeat_of("a");
  heartbeat.heartbeat_time = start + 24h;
  workers.record(heartbeat, start);
  CHECK(workers.find("a")->heartbeat_time == start);
}

TEST_CASE("one worker too many costs the one that would be forgotten next") {
  Workers workers;
  const auto key = [](std::size_t i) { return std::to_string(100'000 + i); };
  for (std::size_t i = 0; i < Workers::workers_max; ++i) {
    workers.record(heartbeat_of(key(i), "q" + std::to_string(i)), start + i * 1us);
  }
  workers.record(heartbeat_of(key(0), "q0"), start + 1s);  // and so 1 is the oldest
  workers.record(heartbeat_of("new"), start + 1s);
  CHECK(workers.size() == Workers::workers_max);
  CHECK(workers.find(key(0)) != nullptr);
  CHECK(workers.find(key(1)) == nullptr);
  CHECK(workers.find("new") != nullptr);
  const auto totals = workers.totals(start + 1s);
  CHECK(totals.size() == Workers::workers_max);
  CHECK(!totals.contains("q1"));
}

// --- Totals ---

TEST_CASE("totals add up what lives, by queue, and count the others") {
  Workers workers;
  WorkerHeartbeat busy = heartbeat_of("a");
  busy.workflow_task_slots_info.emplace().current_used_slots = 1;
  busy.workflow_task_slots_info->current_available_slots = 7;
  busy.activity_task_slots_info.emplace().current_used_slots = 3;
  busy.activity_task_slots_info->current_available_slots = -1;  // it knows no bound
  busy.current_sticky_cache_size = 12;
  workers.record(busy, start);
  busy.worker_instance_key = "b";
  workers.record(busy, start + 20s);
  busy.worker_instance_key = "c";
  busy.status = WorkerStatus::shutting_down;
  workers.record(busy, start + 20s);
  workers.record(heartbeat_of("d", "q", WorkerStatus::shutdown), start + 20s);
  workers.record(heartbeat_of("e", "other"), start + 20s);

  const auto totals = workers.totals(start + 40s);  // a is silent
  REQUIRE(totals.size() == 2);
  const WorkerTotals& total = totals.at("q");
  CHECK(total.workflow.used == 2);
  CHECK(total.workflow.available == 14);
  CHECK(total.activity.used == 6);
  CHECK(total.activity.available == 0);
  CHECK(total.cached_runs == 24);
  CHECK(total.running == 1);
  CHECK(total.shutting_down == 1);
  CHECK(total.shutdown == 1);
  CHECK(total.silent == 1);
  CHECK(totals.at("other").running == 1);
}

TEST_CASE("the totals of the cache never fall while a queue has workers") {
  Workers workers;
  const auto hits = [&](const std::string& key, std::int64_t count, Time now) {
    WorkerHeartbeat heartbeat = heartbeat_of(key);
    heartbeat.total_sticky_cache_hit = Count{count};
    heartbeat.total_sticky_cache_miss = Count{1};
    workers.record(heartbeat, now);
    return workers.totals(now).at("q").cache_hits;
  };
  CHECK(hits("a", 5, start) == 5);
  CHECK(hits("a", 5, start) == 5);  // told again
  CHECK(hits("b", 10, start + 9min) == 15);
  CHECK(hits("a", 8, start + 9min) == 18);
  CHECK(hits("a", 2, start + 9min) == 20);    // it has begun anew
  CHECK(hits("b", 10, start + 18min) == 20);  // nothing new
  CHECK(hits("b", 11, start + 19min) == 21);  // a has been forgotten
  CHECK(workers.size() == 1);
  CHECK(workers.totals(start + 19min).at("q").cache_misses == 2 + 0);
}

TEST_CASE("a worker that changes its queue is counted there only") {
  Workers workers;
  WorkerHeartbeat heartbeat = heartbeat_of("a", "one");
  heartbeat.total_sticky_cache_hit = Count{100};
  workers.record(heartbeat, start);
  heartbeat.task_queue = "two";
  heartbeat.total_sticky_cache_hit = Count{101};
  workers.record(heartbeat, start);
  const auto totals = workers.totals(start);
  CHECK(totals.size() == 1);
  CHECK(totals.at("two").running == 1);
  CHECK(totals.at("two").cache_hits == 1);  // the others were at its first queue
}

TEST_CASE("totals that are too large to add stay at the largest number") {
  Workers workers;
  constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();
  for (const char* key : {"a", "b"}) {
    WorkerHeartbeat heartbeat = heartbeat_of(key);
    heartbeat.total_sticky_cache_hit = Count{largest};
    workers.record(heartbeat, start);
  }
  WorkerTotals totals = workers.totals(start).at("q");
  CHECK(totals.cache_hits == largest);
  totals.add(totals);
  CHECK(totals.cache_hits == largest);
}

// --- As calls ---

RecordWorkerHeartbeatRequest record_of(std::vector<WorkerHeartbeat> heartbeats) {
  RecordWorkerHeartbeatRequest request;
  request.namespace_ = "default";
  request.identity = "caller";
  request.worker_heartbeat = std::move(heartbeats);
  return request;
}

// "ok", or the reason of the refusal.
std::string record(Cluster& cluster, const RecordWorkerHeartbeatRequest& request) {
  const auto result = cluster.call<EmptyResponse>(
      [&](auto done) { cluster.service().record_worker_heartbeat(request, std::move(done)); });
  REQUIRE(result);
  const auto* error = std::get_if<Error>(&*result);
  return error == nullptr ? "ok" : error->reason();
}

ListWorkersResponse list(Cluster& cluster, std::int32_t page_size = 0, const Bytes& token = {}) {
  ListWorkersRequest request;
  request.namespace_ = "default";
  request.page_size = page_size;
  request.next_page_token = token;
  const auto result = cluster.call<ListWorkersResponse>(
      [&](auto done) { cluster.service().list_workers(request, std::move(done)); });
  return std::get<ListWorkersResponse>(result.value());
}

TEST_CASE("a heartbeat is listed, described, and forgotten by the server's clock") {
  Cluster cluster;
  WorkerHeartbeat nameless = heartbeat_of("b");
  nameless.worker_identity.clear();
  CHECK(record(cluster, record_of({heartbeat_of("a"), nameless})) == "ok");
  const ListWorkersResponse found = list(cluster);
  REQUIRE(found.workers_info.size() == 2);
  CHECK(found.workers_info[0].worker_heartbeat.worker_identity == "1@host");
  CHECK(found.workers_info[1].worker_heartbeat.worker_identity == "caller");
  CHECK(found.workers_info[0].worker_heartbeat.heartbeat_time == cluster.now());
  CHECK(cluster.service().worker_totals().at("q").running == 2);

  const auto describe = [&](const std::string& key) {
    return cluster
        .call<DescribeWorkerResponse>([&](auto done) {
          cluster.service().describe_worker({"default", key}, std::move(done));
        })
        .value();
  };
  CHECK(std::get<DescribeWorkerResponse>(describe("a")).worker_info.worker_heartbeat.task_queue ==
        "q");
  CHECK(std::get<Error>(describe("c")).reason() == "WORKER_NOT_FOUND");

  const Time begun = cluster.now();
  cluster.step_to(begun + 31s);
  CHECK(list(cluster).workers_info[0].silent);
  CHECK(cluster.service().worker_totals().at("q").silent == 2);
  cluster.step_to(begun + 10min - 1s);
  CHECK(list(cluster).workers_info.size() == 2);
  cluster.step_to(begun + 10min);
  CHECK(list(cluster).workers_info.empty());
  CHECK(cluster.service().worker_totals().empty());
}

TEST_CASE("workers are listed by pages") {
  Cluster cluster;
  std::vector<WorkerHeartbeat> heartbeats;
  for (int i = 0; i < 5; ++i) heartbeats.push_back(heartbeat_of(std::to_string(i)));
  REQUIRE(record(cluster, record_of(heartbeats)) == "ok");
  std::string keys;
  Bytes token;
  do {
    const ListWorkersResponse page = list(cluster, 2, token);
    for (const WorkerInfo& worker : page.workers_info) {
      keys += worker.worker_heartbeat.worker_instance_key;
    }
    keys += ".";
    token = page.next_page_token;
  } while (!token.value.empty());
  CHECK(keys == "01.23.4.");
}

TEST_CASE("a heartbeat that makes no sense is refused, with all others of its request") {
  Cluster cluster;
  const auto refused = [&](auto change) {
    WorkerHeartbeat heartbeat = heartbeat_of("bad");
    heartbeat.workflow_task_slots_info.emplace();
    change(heartbeat);
    const std::string reason = record(cluster, record_of({heartbeat_of("good"), heartbeat}));
    CHECK(list(cluster).workers_info.empty());
    return reason;
  };
  const std::string long_text(256, 'x');
  CHECK(refused([](auto& bad) { bad.worker_instance_key.clear(); }) == "NAME_INVALID");
  CHECK(refused([&](auto& bad) { bad.worker_instance_key = long_text; }) == "NAME_INVALID");
  CHECK(refused([&](auto& bad) { bad.worker_identity = long_text; }) == "NAME_INVALID");
  CHECK(refused([&](auto& bad) { bad.host_info.host_name = long_text; }) == "NAME_INVALID");
  CHECK(refused([&](auto& bad) { bad.host_info.process_id = long_text; }) == "NAME_INVALID");
  CHECK(refused([](auto& bad) { bad.task_queue = "a\nb"; }) == "NAME_INVALID");
  CHECK(refused([&](auto& bad) { bad.deployment_version.build_id = long_text; }) == "NAME_INVALID");
  CHECK(refused([&](auto& bad) { bad.sdk_version = long_text; }) == "NAME_INVALID");
  CHECK(refused([](auto& bad) { bad.elapsed_since_last_heartbeat = -1s; }) == "DURATION_INVALID");
  const std::string invalid = "WORKER_HEARTBEAT_INVALID";
  CHECK(refused([](auto& bad) { bad.workflow_task_slots_info->current_used_slots = -1; }) ==
        invalid);
  CHECK(refused([](auto& bad) { bad.workflow_task_slots_info->current_available_slots = -2; }) ==
        invalid);
  CHECK(refused([](auto& bad) { bad.total_sticky_cache_hit.value = -1; }) == invalid);
  CHECK(refused([](auto& bad) { bad.current_sticky_cache_size = -1; }) == invalid);
}

TEST_CASE("a request with too many heartbeats, or of another namespace, is refused") {
  Cluster cluster;
  std::vector<WorkerHeartbeat> heartbeats;
  for (int i = 0; i < 101; ++i) heartbeats.push_back(heartbeat_of(std::to_string(i)));
  CHECK(record(cluster, record_of(heartbeats)) == "WORKER_HEARTBEATS_TOO_MANY");
  heartbeats.pop_back();
  CHECK(record(cluster, record_of(heartbeats)) == "ok");
  auto elsewhere = record_of({heartbeat_of("a")});
  elsewhere.namespace_ = "other";
  CHECK(record(cluster, elsewhere) == "NAMESPACE_NOT_FOUND");
}

TEST_CASE("a heartbeat is kept although the batch that it came with was not") {
  Cluster cluster;
  SetPoolRequest pool;
  pool.namespace_ = "default";
  pool.pool = PoolName("gpu");
  pool.capacity = 1;
  cluster.fill_disk();
  std::string answers;
  const auto note = [&](auto result) {
    const auto* error = std::get_if<Error>(&result);
    answers += error == nullptr ? "ok " : error->reason() + " ";
  };
  pool.reason = std::string(900, 'x');
  for (int i = 0; i < 100; ++i) {  // more than there is space for
    pool.pool = PoolName("gpu" + std::to_string(i));
    cluster.service().set_pool(pool, [&](service::Result<PoolInfo> result) {
      CHECK(std::get<Error>(result).reason() == "DISK_FULL");
    });
  }
  cluster.service().record_worker_heartbeat(record_of({heartbeat_of("a")}), note);
  cluster.settle();
  cluster.free_disk();
  CHECK(answers == "ok ");
  CHECK(list(cluster).workers_info.size() == 1);
}

// --- Goodbyes ---

WorkerStatus status_of(Cluster& cluster, const std::string& key) {
  for (const WorkerInfo& worker : list(cluster).workers_info) {
    if (worker.worker_heartbeat.worker_instance_key == key) return worker.worker_heartbeat.status;
  }
  return WorkerStatus::unspecified;
}

TEST_CASE("a goodbye says that the worker shuts down, or what its heartbeat says") {
  Cluster cluster;
  REQUIRE(record(cluster, record_of({heartbeat_of("a"), heartbeat_of("b")})) == "ok");
  ShutdownWorkerRequest goodbye;
  goodbye.namespace_ = "default";
  goodbye.identity = "1@host";
  const auto say = [&] {
    const auto result = cluster.call<EmptyResponse>(
        [&](auto done) { cluster.service().shutdown_worker(goodbye, std::move(done)); });
    const auto* error = std::get_if<Error>(&*result);
    return error == nullptr ? "ok" : error->reason();
  };
  CHECK(say() == "ok");  // by identity alone nobody is meant in particular
  CHECK(status_of(cluster, "a") == WorkerStatus::running);
  goodbye.worker_instance_key = "a";
  CHECK(say() == "ok");
  CHECK(status_of(cluster, "a") == WorkerStatus::shutting_down);
  CHECK(status_of(cluster, "b") == WorkerStatus::running);

  goodbye.worker_heartbeat = heartbeat_of("a", "q", WorkerStatus::shutdown);
  CHECK(say() == "ok");
  CHECK(status_of(cluster, "a") == WorkerStatus::shutdown);
  goodbye.worker_heartbeat.reset();
  CHECK(say() == "ok");
  CHECK(status_of(cluster, "a") == WorkerStatus::shutdown);  // it is over

  goodbye.worker_heartbeat = heartbeat_of("", "q");
  CHECK(say() == "NAME_INVALID");
}

// --- Rates of queues ---

TEST_CASE("a queue tells how many tasks came and went, waiting or not") {
  Cluster cluster;
  const auto begin = [&](const std::string& id) {
    StartWorkflowExecutionRequest request;
    request.namespace_ = "default";
    request.workflow_id = WorkflowId(id);
    request.workflow_type.name = "T";
    request.task_queue.name = "q";
    cluster.service().start(request, [](auto) {});
    cluster.settle();
  };
  const auto poll = [&] {
    PollWorkflowTaskQueueRequest request;
    request.namespace_ = "default";
    request.task_queue.name = "q";
    cluster.service().poll_workflow_task(request, [](auto) {});
    cluster.settle();
  };
  const auto queue = [&] {
    const auto queues = cluster.service().queues();
    REQUIRE(queues.size() == 1);
    return queues[0];
  };
  for (int i = 0; i < 10; ++i) begin("waits" + std::to_string(i));
  CHECK(queue().added_per_second == 2);  // ten in five seconds
  CHECK(queue().dispatched_per_second == 0);
  for (int i = 0; i < 5; ++i) poll();
  CHECK(queue().dispatched_per_second == 1);

  for (int i = 0; i < 6; ++i) poll();  // the last one parks
  CHECK(queue().backlog == 0);
  begin("awaited");
  CHECK(queue().added_per_second == 2.2);
  CHECK(queue().dispatched_per_second == 2.2);

  DescribeTaskQueueRequest request;
  request.namespace_ = "default";
  request.task_queue.name = "q";
  request.report_stats = true;
  const auto stats = [&] {
    const auto result = cluster.call<DescribeTaskQueueResponse>(
        [&](auto done) { cluster.service().describe_task_queue(request, std::move(done)); });
    return std::get<DescribeTaskQueueResponse>(result.value()).stats.value();
  };
  CHECK(stats().tasks_add_rate == 2.2);
  CHECK(stats().tasks_dispatch_rate == 2.2);
  CHECK(stats().approximate_backlog_age == 0s);
  begin("waits");
  const Time now = cluster.now();
  cluster.step_to(now + 3s);
  CHECK(stats().approximate_backlog_count == 1);
  CHECK(stats().approximate_backlog_age == 3s);
}

TEST_CASE("a backlog that is loaded again was not added again") {
  Cluster cluster;
  for (int i = 0; i < 10; ++i) {
    StartWorkflowExecutionRequest request;
    request.namespace_ = "default";
    request.workflow_id = WorkflowId("w" + std::to_string(i));
    request.workflow_type.name = "T";
    request.task_queue.name = "q";
    cluster.service().start(request, [](auto) {});
  }
  cluster.settle();
  cluster.restart(1s);
  const auto queues = cluster.service().queues();
  REQUIRE(queues.size() == 1);
  CHECK(queues[0].backlog == 10);
  CHECK(queues[0].added_per_second == 0);
}

}  // namespace
}  // namespace permit::test
