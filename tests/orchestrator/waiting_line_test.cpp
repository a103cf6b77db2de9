// The line of a pool at its full length: who is next, when, and who is not in it any more. The
// scenarios tell the rules one by one; this is a thousand waiters under them.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/support/cluster.h"

namespace permit::test {
namespace {

using std::chrono::seconds;

const std::string default_namespace = "default";
const PoolName gpu("gpu");

std::string waiter_name(int i) { return "w" + std::to_string(i); }

// 0 to count - 1 in an order that is not that of the runs' numbers.
std::vector<int> scattered(int count) {
  std::vector<int> order;
  for (int i = 0; i < count; ++i) order.push_back(i * 7 % count);
  REQUIRE(std::set<int>(order.begin(), order.end()).size() == static_cast<std::size_t>(count));
  return order;
}

// Workflows that ask for slots of the pool `gpu`, and what is to be seen of them.
class Line {
 public:
  explicit Line(int capacity) { set_capacity(capacity); }

  Cluster& cluster() { return cluster_; }

  void set_capacity(int capacity) {
    SetPoolRequest request;
    request.namespace_ = default_namespace;
    request.pool = gpu;
    request.capacity = capacity;
    const auto result = cluster_.call<PoolInfo>(
        [&](auto done) { cluster_.service().set_pool(request, std::move(done)); });
    REQUIRE(std::holds_alternative<PoolInfo>(result.value()));
  }

  // Starts the workflows and takes their first tasks, which they keep until join() or sleep().
  void start(const std::vector<int>& waiters, Duration run_timeout = {}) {
    for (const int i : waiters) {
      StartWorkflowExecutionRequest request;
      request.namespace_ = default_namespace;
      request.workflow_id = WorkflowId(waiter_name(i));
      request.workflow_type.name = "T";
      request.task_queue.name = "work";
      request.workflow_task_timeout = seconds(120);
      request.workflow_run_timeout = run_timeout;
      cluster_.service().start(request, expect<StartWorkflowExecutionResponse>());
    }
    cluster_.settle();
    take_tasks(static_cast<int>(waiters.size()));
  }

  struct Ask {
    int waiter = 0;
    int priority = 0;
    int count = 1;
  };
  // In this order, all in one batch.
  void join(const std::vector<Ask>& asks) {
    for (const Ask& ask : asks) {
      command::StartChildWorkflowExecution command;
      command.permit = PermitRequest{};
      command.permit->pool = gpu;
      command.permit->count = ask.count;
      command.permit->order = PermitOrder::fair;
      command.permit->lease = std::chrono::hours(1);
      if (ask.priority != 0) command.priority = Priority{ask.priority, "", 0};
      complete_task(waiter_name(ask.waiter), {std::move(command)});
    }
    cluster_.settle();
  }

  // Backs off with a timer that a free slot of the pool may fire early.
  void sleep(const std::vector<int>& waiters) {
    for (const int i : waiters) {
      complete_task(waiter_name(i), {command::StartTimer{"backoff", seconds(60), gpu}});
    }
    cluster_.settle();
  }

  void complete_task(const std::string& id, std::vector<CommandAttributes> commands) {
    RespondWorkflowTaskCompletedRequest request;
    request.namespace_ = default_namespace;
    request.task_token = tasks_.at(id);
    for (CommandAttributes& command : commands) {
      request.commands.push_back({std::move(command), std::nullopt});
    }
    tasks_.erase(id);
    cluster_.service().complete_workflow_task(request,
                                              expect<RespondWorkflowTaskCompletedResponse>());
  }

  // What is on the queue now; returns whose tasks they were.
  std::vector<std::string> take_tasks(int count_max) {
    std::vector<std::int64_t> polls;
    std::vector<std::string> runs;
    for (int i = 0; i < count_max; ++i) {
      PollWorkflowTaskQueueRequest request;
      request.namespace_ = default_namespace;
      request.task_queue.name = "work";
      request.identity = "worker";
      polls.push_back(cluster_.service().poll_workflow_task(
          request, [this, &runs](service::Result<PollWorkflowTaskQueueResponse> result) {
            const auto& task = std::get<PollWorkflowTaskQueueResponse>(result);
            if (!task.workflow_execution) return;
            runs.push_back(task.workflow_execution->workflow_id.value);
            tasks_[runs.back()] = task.task_token;
          }));
    }
    cluster_.settle();
    for (const std::int64_t poll : polls) cluster_.service().forget_poll(poll);
    return runs;
  }

  void signal(const std::string& id) {
    SignalWorkflowExecutionRequest request;
    request.namespace_ = default_namespace;
    request.workflow_execution.workflow_id = WorkflowId(id);
    request.signal_name = "s";
    cluster_.service().signal(request, expect<EmptyResponse>());
    cluster_.settle();
  }

  void terminate(const std::string& id) {
    TerminateWorkflowExecutionRequest request;
    request.namespace_ = default_namespace;
    request.workflow_execution.workflow_id = WorkflowId(id);
    cluster_.service().terminate(request, expect<EmptyResponse>());
    cluster_.settle();
  }

  void force_release(const std::string& slot) {
    ForceReleaseRequest request;
    request.namespace_ = default_namespace;
    request.id = WorkflowId("permit:gpu:" + slot);
    request.fence = pool().at(slot).fence;
    cluster_.service().force_release(request, expect<PermitInfo>());
    cluster_.settle();
  }

  struct Slot {
    std::string holder;  // empty: free
    Fence fence;
  };
  std::map<std::string, Slot> pool() {
    const auto info = cluster_.call<PoolInfo>([&](auto done) {
      cluster_.service().describe_pool(PoolRequest{default_namespace, gpu}, std::move(done));
    });
    std::map<std::string, Slot> slots;
    for (const SlotInfo& slot : std::get<PoolInfo>(info.value()).slots) {
      slots[slot.slot.value] = slot.permit ? Slot{slot.permit->holder, slot.permit->fence} : Slot{};
    }
    return slots;
  }
  std::string holder(const std::string& slot) { return pool().at(slot).holder; }
  std::set<std::string> holders() {
    std::set<std::string> holders;
    for (const auto& [slot, held] : pool()) {
      if (!held.holder.empty()) holders.insert(held.holder);
    }
    return holders;
  }

  // The first thousand in line.
  std::vector<std::string> waiting() {
    const auto answer = cluster_.call<ListWaitersResponse>([&](auto done) {
      cluster_.service().list_waiters(PoolRequest{default_namespace, gpu}, std::move(done));
    });
    std::vector<std::string> names;
    for (const WaiterInfo& waiter : std::get<ListWaitersResponse>(answer.value()).waiters) {
      names.push_back(waiter.holder);
    }
    return names;
  }

 private:
  template <class T>
  static service::Done<T> expect() {
    return service::Done<T>([](service::Result<T> result) {
      if (const auto* error = std::get_if<Error>(&result)) FAIL(error->message());
    });
  }

  Cluster cluster_;
  std::map<std::string, Bytes> tasks_;  // of runs whose task a worker has
};

std::vector<Line::Ask> in_order(const std::vector<int>& waiters) {
  std::vector<Line::Ask> asks;
  for (const int i : waiters) asks.push_back({i});
  return asks;
}

std::vector<std::string> names(const std::vector<int>& waiters, std::size_t from = 0) {
  std::vector<std::string> names;
  for (std::size_t i = from; i < waiters.size(); ++i) names.push_back(waiter_name(waiters[i]));
  return names;
}

// The pool's slots that end and that start in a commit, by the names of the permits' runs.
struct Turnover {
  std::set<std::string> ended;
  std::set<std::string> granted;
};

Turnover turnover(const Cluster::Commit& commit) {
  Turnover turnover;
  for (const auto& [run, event] : commit.events) {
    if (run.rfind("permit:gpu:", 0) != 0) continue;
    const std::string slot = run.substr(0, run.find('#'));
    if (event.get_if<event::WorkflowExecutionStarted>()) turnover.granted.insert(slot);
    if (core::is_close_event(event)) turnover.ended.insert(slot);
  }
  return turnover;
}

TEST_CASE("a thousand waiters have four slots in order, each in the commit that frees it") {
  constexpr int count = 1'000;
  Line line(4);
  line.start(scattered(count));
  // By priority, then by arrival; the first four find the pool empty.
  std::vector<Line::Ask> asks;
  for (int i = 0; i < count; ++i) asks.push_back({i * 13 % count, 1 + i % 5});
  line.join(asks);
  for (int i = 0; i < 4; ++i) {
    CHECK(line.holders().contains(waiter_name(asks[static_cast<std::size_t>(i)].waiter)));
  }
  std::stable_sort(asks.begin() + 4, asks.end(),
                   [](const auto& a, const auto& b) { return a.priority < b.priority; });
  std::vector<std::string> expected;
  for (auto ask = asks.begin() + 4; ask != asks.end(); ++ask) {
    expected.push_back(waiter_name(ask->waiter));
  }
  REQUIRE(line.waiting() == expected);

  line.cluster().new_commits();
  std::size_t turns = 0;
  const auto check_commits = [&] {
    for (const Cluster::Commit& commit : line.cluster().new_commits()) {
      const Turnover turn = turnover(commit);
      CHECK(turn.ended == turn.granted);
      turns += turn.granted.size();
    }
  };
  for (std::size_t next = 0; next < expected.size(); ++next) {
    // A slot frees because its holder goes, or because an operator takes it away.
    const std::string slot = std::to_string(next * 3 % 4);
    if (next % 2 == 0) {
      line.terminate(line.holder(slot));
    } else {
      line.force_release(slot);
    }
    const std::string holder = line.holder(slot);
    if (holder != expected[next]) FAIL(holder << " has turn " << next << " of " << expected[next]);
    if (next % 400 == 200) {
      line.cluster().restart(seconds(1));
      CHECK(line.waiting() ==
            std::vector<std::string>(expected.begin() + static_cast<std::ptrdiff_t>(next) + 1,
                                     expected.end()));
    }
    if (next % 400 == 399) line.cluster().crash(seconds(1));
    if (next % 100 == 99) check_commits();
  }
  check_commits();
  CHECK(turns == expected.size());
  CHECK(line.waiting().empty());
  CHECK(line.holders().size() == 4);
}

TEST_CASE("waiters whose run ends leave the line at once") {
  constexpr int count = 300;
  const std::vector<int> order = scattered(count);
  Line line(1);
  line.start(order);
  line.join(in_order(order));
  std::vector<std::string> expected = names(order, 1);
  const std::string holder = waiter_name(order[0]);
  REQUIRE(line.holder("0") == holder);
  REQUIRE(line.take_tasks(2) == std::vector<std::string>{holder});  // out of the others' way
  for (std::size_t round = 0; expected.size() > 20; ++round) {
    const std::size_t at = round * 31 % expected.size();
    const std::string leaver = expected[at];
    if (round % 3 == 0) {
      line.terminate(leaver);
    } else {
      line.signal(leaver);
      REQUIRE(line.take_tasks(1) == std::vector<std::string>{leaver});
      if (round % 3 == 1) {
        line.complete_task(leaver, {command::CompleteWorkflowExecution{}});
      } else {
        line.complete_task(leaver, {command::FailWorkflowExecution{Failure{}}});
      }
      line.cluster().settle();
    }
    expected.erase(expected.begin() + static_cast<std::ptrdiff_t>(at));
    if (round % 100 == 50) line.cluster().restart(seconds(1));
    if (line.waiting() != expected) FAIL("the line is wrong after departure " << round);
  }
  CHECK(line.holder("0") == holder);
  // Nobody is served in place of one who has left.
  line.terminate(holder);
  CHECK(line.holder("0") == expected.front());
}

TEST_CASE("a whole line leaves when its runs time out together") {
  constexpr int count = 600;  // more than time ends in one batch
  for (const bool restarts : {false, true}) {
    CAPTURE(restarts);
    Line line(0);
    const std::vector<int> order = scattered(count);
    line.start(order, seconds(60));
    line.join(in_order(order));
    CHECK(line.waiting() == names(order));
    line.start({count});
    line.join({{count}});
    if (restarts) line.cluster().restart(seconds(1));
    line.cluster().step_to(line.cluster().now() + seconds(60));
    CHECK(line.waiting() == std::vector<std::string>{waiter_name(count)});
  }
}

TEST_CASE("when a head that slots were kept for leaves, they go to the next in the same commit") {
  for (const bool restarts : {false, true}) {
    CAPTURE(restarts);
    Line line(4);
    line.start({0, 1, 2, 3, 4, 5, 6});
    line.join({{0}, {1}, {2}, {3}, {4, 0, 4}, {5}, {6}});
    line.terminate("w0");
    line.terminate("w1");
    CHECK(line.holders() == std::set<std::string>{"w2", "w3"});
    if (restarts) line.cluster().restart(seconds(1));
    CHECK(line.waiting() == std::vector<std::string>{"w4", "w5", "w6"});
    line.cluster().new_commits();
    line.terminate("w4");
    const auto commits = line.cluster().new_commits();
    REQUIRE(commits.size() == 1);
    CHECK(turnover(commits.front()).granted.size() == 2);
    CHECK(line.holders() == std::set<std::string>{"w2", "w3", "w5", "w6"});
    CHECK(line.waiting().empty());
  }
}

TEST_CASE("more capacity serves as many as fit; less lets holders finish; none makes all wait") {
  constexpr int count = 100;
  for (const bool restarts : {false, true}) {
    CAPTURE(restarts);
    const std::vector<int> order = scattered(count);
    Line line(4);
    const auto maybe_restart = [&] {
      if (restarts) line.cluster().restart(seconds(1));
    };
    line.start(order);
    line.join(in_order(order));
    std::size_t served = 4;
    CHECK(line.waiting() == names(order, served));

    // Up: as many as fit, in one commit, and no more.
    maybe_restart();
    line.cluster().new_commits();
    line.set_capacity(10);
    const auto commits = line.cluster().new_commits();
    REQUIRE(commits.size() == 1);
    CHECK(turnover(commits.front()).granted.size() == 6);
    served = 10;
    CHECK(line.holders().size() == 10);
    CHECK(line.waiting() == names(order, served));

    // Down: nobody is thrown out; slots that are going are not granted again.
    line.set_capacity(3);
    maybe_restart();
    CHECK(line.holders().size() == 10);
    for (int slot = 3; slot < 10; ++slot) line.terminate(line.holder(std::to_string(slot)));
    CHECK(line.holders().size() == 3);
    CHECK(line.waiting() == names(order, served));
    line.terminate(line.holder("1"));
    ++served;
    CHECK(line.holder("1") == waiter_name(order[served - 1]));

    // None: the last finish, and everybody waits.
    line.set_capacity(0);
    maybe_restart();
    for (const char* slot : {"0", "1", "2"}) line.terminate(line.holder(slot));
    CHECK(line.holders().empty());
    CHECK(line.waiting() == names(order, served));

    // Back: the line has kept its order.
    maybe_restart();
    line.set_capacity(2);
    served += 2;
    CHECK(line.holders().size() == 2);
    CHECK(line.waiting() == names(order, served));
  }
}

TEST_CASE("more capacity wakes as many sleepers as there are slots to try for") {
  for (const bool restarts : {false, true}) {
    CAPTURE(restarts);
    Line line(0);
    std::vector<int> sleepers;
    for (int i = 0; i < 20; ++i) sleepers.push_back(i);
    line.start(sleepers);
    line.sleep(sleepers);
    if (restarts) line.cluster().restart(seconds(1));
    CHECK(line.take_tasks(20).empty());
    // Those asleep longest. When their tasks close and the slots are still free, the next.
    line.set_capacity(3);
    CHECK(line.take_tasks(20) == names({0, 1, 2}));
    line.set_capacity(3);
    CHECK(line.take_tasks(20).empty());
    line.sleep({0, 1, 2});
    CHECK(line.take_tasks(20) == names({3, 4, 5}));
  }
}

}  // namespace
}  // namespace permit::test
