// A worker whose workflows hold permits, for tests/end_to_end/permits.py and python_worker.py.
// While it is in a section it is connected to an overseer, another process, and says there what it
// holds.
// Usage: permit_test_holder ADDRESS QUEUE OVERSEER_PORT
#include <boost/asio/connect.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/streambuf.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <exception>
#include <iostream>
#include <string>
#include <thread>

#include "permits/semaphore.h"
#include "worker/http_client.h"
#include "worker/worker.h"

namespace permit::permits {

namespace {

namespace asio = boost::asio;
using worker::ActivityContext;
using worker::ActivityFailed;
using worker::ActivityName;
using worker::ActivityOptions;
using worker::Async;
using worker::Workflow;
using worker::WorkflowName;
using namespace std::chrono_literals;

constexpr ActivityName<void(std::string, std::int64_t, int)> section{"section"};
constexpr WorkflowName<int(int)> contend{"Contend"};
constexpr WorkflowName<std::string(double)> silent{"Silent"};
constexpr WorkflowName<std::string(double)> hold{"Hold"};
constexpr WorkflowName<std::string(std::string)> train{"Train"};
constexpr ActivityName<std::string(std::string, std::string)> train_model{"train_model"};

// Gets into a section of one of four slots and out again, however often its worker dies inside.
// Returns how many tries it took.
Async<int> run_contend(Workflow workflow, int number) {
  const Semaphore pool(workflow, "contended", 4);
  PermitOptions options;
  options.lease(15s).backoff(500ms, 2s);
  if (number % 2 == 0) options.fair();
  const auto body = [](Workflow inside, Held permit) -> Async<void> {
    const auto under =
        permit.cover(ActivityOptions().start_to_close(1min).heartbeat(4s).task_queue("work"));
    const int milliseconds = 20 + static_cast<int>(inside.random("body").below(200));
    co_await inside.execute_activity(section, under, permit.id(), permit.fence(), milliseconds);
  };
  for (int tries = 1;; ++tries) {
    bool died = false;
    try {
      co_await pool.with_permit(options, body);
    } catch (const ActivityFailed&) {
      died = true;
    } catch (const PermitLost&) {
      died = true;
    }
    if (!died) co_return tries;
  }
}

// Holds a permit without a sign of life, and says how and when it noticed that it was lost.
Async<std::string> run_silent(Workflow workflow, double lease) {
  const Mutex mutex(workflow, "silent");
  const auto options = PermitOptions().lease(PermitOptions::Seconds(lease));
  const auto body = [](Workflow inside, Held) -> Async<void> { co_await inside.sleep(1h); };
  try {
    co_await mutex.with_permit(options, body);
  } catch (const PermitLost& lost) {
    const auto after = (workflow.now() - workflow.start_time()) / 1ms;
    const char* how = lost.outcome() == Outcome::lease_expired ? "lease_expired" : "force_released";
    co_return std::string(how) + " " + std::to_string(after);
  }
  co_return "not lost";
}

// Until a signal says to end.
Async<std::string> run_hold(Workflow workflow, double lease) {
  const Mutex mutex(workflow, "silent");
  const auto options = PermitOptions().lease(PermitOptions::Seconds(lease)).fair();
  const Permit permit = co_await mutex.acquire(options);
  bool done = false;
  workflow.on_signal("done", [&done] { done = true; });
  const auto is_done = [&done] { return done; };
  co_await workflow.wait_until(is_done);
  co_return permit.slot();
}

// Its step is a program in another language, which takes its work from another queue.
Async<std::string> run_train(Workflow workflow, std::string model) {
  const Semaphore gpus(workflow, "training", 1);
  const auto options = PermitOptions().lease(2s).fair();
  // NOLINTNEXTLINE(cppcoreguidelines-avoid-capturing-lambda-coroutines): with_permit keeps it
  const auto on_gpu = [&](Workflow inside, Held permit) -> Async<std::string> {
    const auto under = permit.cover(
        ActivityOptions().start_to_close(1min).heartbeat(1s).task_queue("python").retry(3));
    std::string checkpoint =
        co_await inside.execute_activity(train_model, under, model, permit.slot());
    co_return checkpoint;
  };
  std::string checkpoint = co_await gpus.with_permit(options, on_gpu);
  co_return checkpoint;
}

// "enter <permit> <fence>", "ok", then the connection is open for as long as it is inside.
void run_section(ActivityContext& context, const std::string& overseer, const std::string& permit,
                 std::int64_t fence, int milliseconds) {
  asio::io_context io;
  asio::ip::tcp::socket socket(io);
  asio::ip::tcp::resolver resolver(io);
  asio::connect(socket, resolver.resolve("127.0.0.1", overseer));
  asio::write(socket, asio::buffer("enter " + permit + " " + std::to_string(fence) + "\n"));
  asio::streambuf answer;
  answer.consume(asio::read_until(socket, answer, '\n'));
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds);
  while (std::chrono::steady_clock::now() < end) {
    context.heartbeat();
    std::this_thread::sleep_for(10ms);
  }
  asio::write(socket, asio::buffer(std::string("exit\n")));
  asio::read_until(socket, answer, '\n');
}

int run(const std::string& address, const std::string& queue, const std::string& overseer) {
  worker::HttpTransport transport(address);
  worker::Registry registry;
  registry.workflow(contend, run_contend);
  registry.workflow(silent, run_silent);
  registry.workflow(hold, run_hold);
  registry.workflow(train, run_train);
  registry.activity(section, [overseer](ActivityContext& context, const std::string& permit,
                                        std::int64_t fence, int milliseconds) {
    run_section(context, overseer, permit, fence, milliseconds);
  });
  worker::Worker worker(transport, registry, worker::WorkerOptions(queue));
  std::cout << "ready" << std::endl;
  return worker.run_until_signal();
}

}  // namespace

}  // namespace permit::permits

int main(int argc, char** argv) {
  try {
    if (argc != 4) throw std::invalid_argument("usage: permit_test_holder ADDRESS QUEUE OVERSEER");
    return permit::permits::run(argv[1], argv[2], argv[3]);
  } catch (const std::exception& error) {
    std::cerr << error.what() << std::endl;
    return 1;
  }
}
