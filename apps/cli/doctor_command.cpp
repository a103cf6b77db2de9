// permit doctor: looks for what is wrong, and says nothing when all is well.
#include <algorithm>
#include <chrono>
#include <iostream>

#include "apps/cli/command.h"
#include "apps/cli/duration_text.h"
#include "apps/cli/exit_codes.h"
#include "apps/cli/gpu.h"
#include "apps/cli/help.h"
#include "apps/cli/session.h"
#include "orchestrator/protocol/error.h"
#include "orchestrator/protocol/json_writer.h"

namespace permit::cli {

namespace {

using namespace std::chrono_literals;

constexpr Duration skew_max = 2s;
constexpr Duration wait_max = 30min;
constexpr Duration poll_silence_max = 90s;  // more than a long poll takes

class Doctor {
 public:
  explicit Doctor(Session& session) : session_(session) {}

  std::vector<std::string> problems() {
    check_environment();
    if (!check_server()) return problems_;
    check_queues();
    for (const PoolInfo& pool : session_.pools().list()) check_pool(pool);
    check_gpus();
    return problems_;
  }

 private:
  void say(std::string problem) { problems_.push_back(std::move(problem)); }

  void check_environment() {
    if (environment_variable("TEMPORAL_ADDRESS") && !environment_variable("PERMIT_ADDRESS")) {
      say("TEMPORAL_ADDRESS is set and PERMIT_ADDRESS is not: permit reads its own variables only, "
          "and asks " +
          session_.settings().text("address"));
    }
  }

  bool check_server() {
    const auto asked = std::chrono::system_clock::now();
    ServerStatus status;
    try {
      // A health check has no time for a server that hangs.
      worker::HttpTransport prompt(session_.settings().text("address"), {2s, 5s}, session_.tls());
      prompt.set_api_key(session_.api_key());
      status = permits::PoolClient(prompt, session_.identity(), session_.namespace_name()).status();
    } catch (const Error& error) {
      if (error.code() != ErrorCode::unavailable) {  // it is there, and said no
        say(error.message());
        return false;
      }
      const Settings::Value& address = session_.settings().get("address");
      const bool is_there = error.reason() != "SERVER_UNREACHABLE";
      say(error.message() + "; the address is from " + address.origin +
          (is_there ? "" : ". Is it running? Try: permit server start-dev"));
      return false;
    }
    const auto here = asked + (std::chrono::system_clock::now() - asked) / 2;
    now_ = status.now;
    const Duration skew = std::chrono::duration_cast<Duration>(here.time_since_epoch()) -
                          status.now.time_since_epoch();
    if (skew > skew_max || skew < -skew_max) {
      say("the clock of this host is " + show_duration(skew > Duration(0) ? skew : -skew) +
          (skew > Duration(0) ? " ahead of" : " behind") + " the server's");
    }
    if (status.version != client_version) {
      say("this is permit " + std::string(client_version) + " and the server is " + status.version);
    }
    if (!status.ready) say("the server is not ready");
    for (const std::string& warning : status.warnings) say(warning);
    return true;
  }

  void check_queues() {
    for (const TaskQueueInfo& queue : session_.pools().task_queues()) {
      const bool polled =
          std::any_of(queue.pollers.begin(), queue.pollers.end(), [&](const PollerInfo& poller) {
            return poller.last_access_time > now_ - poll_silence_max;
          });
      if (polled || queue.backlog == 0) continue;
      say("no worker polls the " + queue.kind + " queue " + queue.name + ", where " +
          std::to_string(queue.backlog) + (queue.backlog == 1 ? " task waits" : " tasks wait"));
    }
  }

  void check_pool(const PoolInfo& pool) {
    const std::string name = "pool " + pool.pool.value;
    if (pool.alert) {
      say(name + " has " + std::to_string(pool.capacity) + " slots, but " +
          printable(pool.alert->by) + " believes that it has " + std::to_string(pool.alert->slots));
    }
    if (pool.waiting == 0) return;
    if (pool.drained) say(name + " is drained, and " + std::to_string(pool.waiting) + " wait");
    Time oldest = now_;
    for (const WaiterInfo& waiter : session_.pools().waiters(pool.pool)) {
      oldest = std::min(oldest, waiter.since);
    }
    if (now_ - oldest > wait_max) {
      say("somebody has waited for " + name + " for " + show_duration(now_ - oldest) +
          "; see: permit who " + pool.pool.value);
    }
  }

  // Where there are GPUs that are slots.
  void check_gpus() {
    const std::vector<PoolInfo> pools = session_.pools().list();
    const bool has_devices = std::any_of(pools.begin(), pools.end(), [](const PoolInfo& pool) {
      return std::any_of(pool.slots.begin(), pool.slots.end(),
                         [](const SlotInfo& slot) { return !slot.device.empty(); });
    });
    if (!has_devices) return;
    try {
      for (const GpuProcess& process : without_permit(pools, find_gpus(), find_gpu_processes())) {
        say("process " + std::to_string(process.pid) + " (" + printable(process.name, 60) +
            ") uses " + process.uuid + " without a permit");
      }
    } catch (const Error& error) {
      if (error.reason() != "NO_GPU_TOOL") throw;  // not a host with GPUs
    }
  }

  Session& session_;
  Time now_{};
  std::vector<std::string> problems_;
};

int run_doctor(Session& session) {
  const std::vector<std::string> problems = Doctor(session).problems();
  std::string document;
  std::vector<std::string> lines;
  for (const std::string& problem : problems) {
    std::string line = "{\"problem\":";
    append_json_string(problem, line);
    line += "}";
    document += (document.empty() ? "" : ",") + line;
    lines.push_back(line);
    if (session.out().is_text()) std::cerr << "permit: " << problem << "\n";
  }
  session.out().json("{\"problems\":[" + document + "]}", lines);
  return problems.empty() ? exit_ok : exit_failed;
}

}  // namespace

std::vector<Command> doctor_commands() {
  return {{"doctor",
           "look for what is wrong; silent when all is well",
           "Asks whether the server answers, is ready and of this version; whether the clocks "
           "agree; whether every queue with tasks has a worker; whether callers agree on the size "
           "of pools; who waits too long; and on a host with GPUs, whether processes use one "
           "without a permit. One line on stderr for each problem, and exit code 1: fit for a "
           "container's health check.",
           {{"permit doctor", ""}, {"permit doctor -o json | jq -r '.problems[].problem'", ""}},
           {},
           {},
           run_doctor}};
}

}  // namespace permit::cli
