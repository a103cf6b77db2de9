// A worker for tests/end_to_end/worker.py to start, stop and kill. Usage: permit_test_worker
// ADDRESS QUEUE
#include <unistd.h>

#include <chrono>
#include <exception>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include "worker/http_client.h"
#include "worker/worker.h"

namespace permit::worker {

namespace {

using namespace std::chrono_literals;

constexpr ActivityName<int(int)> twice{"twice"};
constexpr ActivityName<int(int, int)> steps{"steps"};
constexpr ActivityName<std::string()> later{"later"};
constexpr WorkflowName<int(int)> sum{"Sum"};
constexpr WorkflowName<int(int, int)> slow{"Slow"};
constexpr WorkflowName<std::string()> wait_for_later{"Later"};
constexpr WorkflowName<void()> stuck{"Stuck"};

// One activity after the other, a timer between.
Async<int> run_sum(Workflow workflow, int n) {
  int total = 0;
  workflow.on_query("total", [&total] { return total; });
  const auto options = ActivityOptions().start_to_close(10s);
  for (int i = 1; i <= n; ++i) {
    const int doubled = co_await workflow.execute_activity(twice, options, i);
    total += doubled;
    co_await workflow.sleep(20ms);
  }
  co_return total;
}

Async<int> run_slow(Workflow workflow, int count, int pause_ms) {
  const auto options =
      ActivityOptions().start_to_close(1min).heartbeat(3s).on_cancel(OnCancel::wait);
  const int begun_at = co_await workflow.execute_activity(steps, options, count, pause_ms);
  co_return begun_at;
}

Async<std::string> run_later(Workflow workflow) {
  const auto options = ActivityOptions().start_to_close(1min);
  std::string text = co_await workflow.execute_activity(later, options);
  co_return text;
}

Async<void> run_stuck(Workflow workflow) {
  std::this_thread::sleep_for(3s);
  co_await workflow.sleep(1h);
}

// Says where this attempt began: behind the last step that the one before had reported.
int take_steps(ActivityContext& context, int count, int pause_ms) {
  const int begun_at = context.last_heartbeat<int>().value_or(0);
  for (int step = begun_at; step < count; ++step) {
    std::cout << "step " << step << " of attempt " << context.info().attempt << std::endl;
    std::this_thread::sleep_for(std::chrono::milliseconds(pause_ms));
    context.heartbeat(step + 1);
  }
  return begun_at;
}

int run(const std::string& address, const std::string& queue) {
  Registry registry;
  registry.workflow(sum, run_sum)
      .workflow(slow, run_slow)
      .workflow(wait_for_later, run_later)
      .workflow(stuck, run_stuck);
  registry.activity(twice, [](ActivityContext&, int n) { return 2 * n; })
      .activity(steps, take_steps)
      .activity(later, [](ActivityContext& context) -> std::string { context.complete_later(); });
  HttpTransport transport(address);
  Worker worker(transport, registry, WorkerOptions(queue));
  std::cout << "worker " << worker.identity() << std::endl;
  return worker.run_until_signal();
}

}  // namespace

}  // namespace permit::worker

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: permit_test_worker ADDRESS QUEUE\n";
    return 2;
  }
  try {
    return permit::worker::run(argv[1], argv[2]);
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
