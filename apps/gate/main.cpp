// A throttled gate: a vendor whose API bears three calls at a time, and many workflows that call
// it. Each takes one of three permits for its call. This is starter, worker and vendor in one, so
// that it can tell how many were inside at once; the pool would do the same for workers on many
// machines.
//
//   gate --calls 40 --time-scale 1000
//   gate --calls 40 --time-scale 1000 --per-second 10    no more than ten begin in a second, too
//   gate --calls 40 --time-scale 1000 --gate no          what would happen without
//
// Exit code 1: more than three were inside.
#include <algorithm>
#include <iostream>
#include <mutex>
#include <string>
#include <syncstream>
#include <thread>
#include <vector>

#include "apps/arguments.h"
#include "permits/pool_client.h"
#include "permits/semaphore.h"
#include "worker/http_client.h"
#include "worker/worker.h"

namespace gate {

namespace {

using examples::Arguments;
using examples::BadArguments;
using permit::Duration;
using permit::permits::Held;
using permit::permits::PermitOptions;
using permit::permits::PoolClient;
using permit::permits::Semaphore;
using permit::worker::ActivityContext;
using permit::worker::ActivityName;
using permit::worker::ActivityOptions;
using permit::worker::Async;
using permit::worker::Client;
using permit::worker::HttpTransport;
using permit::worker::Registry;
using permit::worker::StartOptions;
using permit::worker::TypedRunHandle;
using permit::worker::Workflow;
using permit::worker::WorkflowName;
using namespace std::chrono_literals;

constexpr const char* usage =
    R"(usage: gate [--calls N] [--time-scale N] [--per-second N] [--gate yes|no] [--pool POOL]
The server is the one at --address, else at PERMIT_ADDRESS, else at 127.0.0.1:7376.
)";

constexpr int at_once_max = 3;

// --- The vendor ---

// Bears anything, in truth, but counts.
class Vendor {
 public:
  void call(const std::string& who, Duration duration) {
    const int inside = enter();
    std::osyncstream(std::cout) << who << " calls the vendor, " << inside << " inside" << "\n"
                                << std::flush;
    std::this_thread::sleep_for(duration);
    leave();
  }
  int calls() const {
    const std::lock_guard lock(mutex_);
    return calls_;
  }
  int most() const {
    const std::lock_guard lock(mutex_);
    return most_;
  }

 private:
  int enter() {
    const std::lock_guard lock(mutex_);
    ++calls_;
    most_ = std::max(most_, ++inside_);
    return inside_;
  }
  void leave() {
    const std::lock_guard lock(mutex_);
    --inside_;
  }

  mutable std::mutex mutex_;  // guards the counts
  int calls_ = 0;
  int inside_ = 0;
  int most_ = 0;
};

// --- The workflow ---

struct Call {
  std::string pool;  // empty: past the gate
  double time_scale = 1;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Call, pool, time_scale)

constexpr WorkflowName<void(Call)> call_vendor{"CallVendor"};
constexpr ActivityName<void(Call)> call_activity{"call_vendor"};

// Not below the floor: however fast the time, a busy machine needs a while to say a word.
Duration scaled(Duration full, double time_scale, Duration floor) {
  const auto divided = std::chrono::duration<double>(full) / time_scale;
  return std::max(std::chrono::round<Duration>(divided), std::min(full, floor));
}

ActivityOptions limits_of(const Call& call) {
  // A call takes a minute: after five, nobody believes in it any more.
  return ActivityOptions().start_to_close(scaled(5min, call.time_scale, 5s));
}

Async<void> run_call(Workflow workflow, Call call) {
  if (call.pool.empty()) {
    const auto options = limits_of(call).retry(1);
    co_await workflow.execute_activity(call_activity, options, call);
    co_return;
  }
  // with_permit keeps the closure for as long as its coroutine runs.
  // NOLINTNEXTLINE(cppcoreguidelines-avoid-capturing-lambda-coroutines)
  const auto inside_gate = [call](Workflow inside, Held permit) -> Async<void> {
    // Tried once: a call that failed may have come through, and is not to be made again blindly.
    const ActivityOptions options = permit.cover(limits_of(call));
    co_await inside.execute_activity(call_activity, options, call);
  };
  // A call says nothing while it lasts, so nothing renews the permit, and cover() makes sure that
  // the call is over before the lease is. Ten minutes: twice a call's longest, since a worker has
  // to be found first. If the worker dies, five minutes later the call has failed and the permit is
  // free.
  const auto options = PermitOptions()
                           .lease(scaled(10min, call.time_scale, 10s))
                           .renewed_by_heartbeats(false)
                           .fair();
  const Semaphore vendor(workflow, call.pool, at_once_max);
  co_await vendor.with_permit(options, inside_gate);
}

// --- The program ---

// How fast calls may begin is the pool's own business: it holds for whoever asks, and however.
void set_rate(HttpTransport& transport, const std::string& pool, double per_second) {
  permit::SetPoolRequest request;
  request.pool = permit::PoolName(pool);
  request.capacity = at_once_max;
  request.rate = permit::PoolRate{per_second, 1};
  PoolClient(transport, "gate").set(request);
}

int run(const Arguments& arguments) {
  const int calls = arguments.count("--calls", 20);
  const double per_second = arguments.number("--per-second", 0);
  const std::string pool = arguments.text("--pool", "vendor");
  const std::string gated = arguments.text("--gate", "yes");
  if (gated != "yes" && gated != "no") throw BadArguments("--gate is yes or no");
  Call call;
  call.time_scale = arguments.number("--time-scale", 1);
  if (call.time_scale <= 0) throw BadArguments("--time-scale is to be above 0");
  if (gated == "yes") call.pool = pool;

  HttpTransport transport(arguments.text("--address", permit::worker::default_address()));
  if (per_second > 0) set_rate(transport, pool, per_second);
  Vendor vendor;
  Registry registry;
  registry.workflow(call_vendor, run_call)
      .activity(call_activity, [&vendor](const ActivityContext& context, const Call& what) {
        vendor.call(context.info().workflow.workflow_id.value, scaled(1min, what.time_scale, 50ms));
      });
  // Of its own, so that two gates on one server do not take each other's calls. It can do more
  // than three at once: what keeps them back is the pool, and nothing else.
  const std::string queue = "gate-" + permit::worker::new_request_id().substr(0, 8);
  permit::worker::WorkerOptions options(queue);
  options.activity_threads = 3 * at_once_max;
  options.print = [](const std::string&) {};
  permit::worker::Worker worker(transport, registry, options);
  worker.start();

  Client client(transport);
  std::vector<TypedRunHandle<void>> runs;
  for (int i = 1; i <= calls; ++i) {
    const auto start = StartOptions(queue + "-call-" + std::to_string(i)).task_queue(queue);
    runs.push_back(client.start(call_vendor, start, call));
  }
  for (const auto& one : runs) one.result();
  worker.stop();

  std::cout << vendor.calls() << " calls, " << vendor.most() << " inside at most, of "
            << at_once_max << " that the vendor bears\n";
  return vendor.most() > at_once_max ? 1 : 0;
}

}  // namespace

}  // namespace gate

int main(int argc, char** argv) {
  try {
    const examples::Arguments arguments(
        argc, argv, 1,
        {"--address", "--calls", "--time-scale", "--per-second", "--gate", "--pool"});
    return gate::run(arguments);
  } catch (const examples::BadArguments& bad) {
    std::cerr << "gate: " << bad.what() << "\n" << gate::usage;
    return 2;
  } catch (const std::exception& error) {
    std::cerr << "gate: " << error.what() << "\n";
    return 1;
  }
}
