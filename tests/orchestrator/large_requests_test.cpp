// The limits of requests agree with each other, and with what is made of requests: it is written
// wrapped into more, and must be read back after a restart. (The cluster also compares what each
// batch touched with the database.)
#include <doctest/doctest.h>

#include <string>

#include "orchestrator/protocol/json.h"
#include "tests/support/cluster.h"

namespace permit::test {
namespace {

const std::string default_namespace = "default";
const std::string namespace_member = R"({"namespace":"default")";
constexpr int values_max = 50'000;  // of one request

std::string repeat(const std::string& text, int count) {
  std::string all;
  for (int i = 0; i < count; ++i) all += text;
  return all;
}

// As many payloads as fit in a request, beside a few other values.
std::string many_payloads() { return "[0" + repeat(",0", values_max - 20) + "]"; }

// A failure with as many causes as fit in a request.
std::string deep_failure() { return repeat("{\"cause\":", 61) + "{}" + repeat("}", 61); }

template <class T, class Request>
T ask(Cluster& cluster, const std::string& json,
      void (service::Service::*method)(Request, service::Done<T>)) {
  auto result = cluster.call<T>([&](auto done) {
    (cluster.service().*method)(read_json<Request>(namespace_member + json + "}"), std::move(done));
  });
  if (const auto* error = std::get_if<Error>(&result.value())) FAIL(error->message());
  return std::get<T>(std::move(*result));
}

// A poll that finds a task at once.
template <class T, class Request>
T take(Cluster& cluster, std::int64_t (service::Service::*poll)(Request, service::Done<T>)) {
  const auto request = read_json<Request>(namespace_member + R"(,"taskQueue":{"name":"q"}})");
  auto result =
      cluster.call<T>([&](auto done) { (cluster.service().*poll)(request, std::move(done)); });
  return std::get<T>(std::move(result.value()));
}

PollWorkflowTaskQueueResponse start(Cluster& cluster) {
  ask(cluster, R"(,"workflowId":"w","workflowType":{"name":"T"},"taskQueue":{"name":"q"})",
      &service::Service::start);
  return take(cluster, &service::Service::poll_workflow_task);
}

std::string with_token(const Bytes& token, const std::string& members) {
  RespondQueryTaskCompletedRequest only_token;
  only_token.task_token = token;
  std::string json = to_json(only_token);
  json.front() = ',';
  json.back() = ',';
  return json + members;
}

std::int64_t events(Cluster& cluster) {
  return ask(cluster, R"(,"execution":{"workflowId":"w"})", &service::Service::describe)
      .workflow_execution_info.history_length;
}

TEST_CASE("a signal of many payloads that is buffered is read back") {
  Cluster cluster;
  start(cluster);
  ask(cluster,
      R"(,"workflowExecution":{"workflowId":"w"},"signalName":"s","input":)" + many_payloads(),
      &service::Service::signal);
  cluster.restart(Duration(0));
  CHECK(events(cluster) == 3);
}

TEST_CASE("an activity's heartbeat of many payloads and its deep failures are read back") {
  Cluster cluster;
  const auto task = start(cluster);
  ask(cluster,
      with_token(task.task_token,
                 R"("commands":[{"scheduleActivityTaskCommandAttributes":{"activityId":"a",)"
                 R"("activityType":{"name":"A"},"startToCloseTimeout":"60s",)"
                 R"("retryPolicy":{"maximumAttempts":2}}}])"),
      &service::Service::complete_workflow_task);
  const auto first = take(cluster, &service::Service::poll_activity_task);
  ask(cluster, with_token(first.task_token, R"("details":)" + many_payloads()),
      &service::Service::heartbeat);
  cluster.restart(Duration(0));
  // A failure that is retried is kept with the attempt; the last one is buffered here.
  ask(cluster, with_token(first.task_token, R"("failure":)" + deep_failure()),
      &service::Service::fail_activity);
  cluster.restart(std::chrono::seconds(2));
  const auto second = take(cluster, &service::Service::poll_activity_task);
  ask(cluster, R"(,"workflowExecution":{"workflowId":"w"},"signalName":"s")",
      &service::Service::signal);
  take(cluster, &service::Service::poll_workflow_task);
  ask(cluster, with_token(second.task_token, R"("failure":)" + deep_failure()),
      &service::Service::fail_activity);
  cluster.restart(Duration(0));
  // Nothing of that failure is in history yet: the worker still has its task.
  CHECK(events(cluster) == 8);
}

TEST_CASE("a waiter that names the slots of a large pool is read back") {
  Cluster cluster;
  const auto task = start(cluster);
  ask(cluster, R"(,"pool":"gpu","capacity":0)", &service::Service::set_pool);
  std::string slots = "[\"0\"";
  std::string memo = R"({"fields":{"0":0)";
  for (int i = 1; i < 10'000; ++i) slots += ",\"" + std::to_string(i) + "\"";
  for (int i = 1; i < 5'000; ++i) memo += ",\"" + std::to_string(i) + "\":0";
  ask(cluster,
      with_token(task.task_token,
                 R"("commands":[{"startChildWorkflowExecutionCommandAttributes":{"permit":)"
                 R"({"pool":"gpu","order":"fair","slots":)" +
                     slots + R"(],"only":)" + slots + R"(]},"memo":)" + memo + "}}}}]"),
      &service::Service::complete_workflow_task);
  cluster.restart(Duration(0));
  const PoolRequest pool{default_namespace, PoolName("gpu")};
  const auto line = cluster.call<ListWaitersResponse>(
      [&](auto done) { cluster.service().list_waiters(pool, std::move(done)); });
  CHECK(std::get<ListWaitersResponse>(line.value()).waiters.size() == 1);
}

TEST_CASE("a completion carries 10,000 commands of some size, and no more") {
  Cluster cluster;
  const auto task = start(cluster);
  const std::string marker =
      R"({"commandType":"COMMAND_TYPE_RECORD_MARKER","recordMarkerCommandAttributes":)"
      R"({"markerName":"m","details":{"data":[1,2,3,4],"type":["a"]},"header":{"fields":)"
      R"({"a":0,"b":1}}}})";
  const auto completion = [&](int commands) {
    return with_token(task.task_token,
                      "\"commands\":[" + marker + repeat("," + marker, commands - 1) + "]");
  };
  const auto complete = [&](int commands) {
    const std::string json = completion(commands);
    return ask(cluster, json, &service::Service::complete_workflow_task);
  };
  try {
    complete(10'001);
    FAIL("10,001 commands were taken");
  } catch (const Error& error) {
    CHECK(error.reason() == "COMMANDS_LIMIT");
  }
  complete(10'000);
  CHECK(events(cluster) == 10'004);
}

}  // namespace
}  // namespace permit::test
