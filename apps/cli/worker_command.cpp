// permit worker start: serves the permits of a server whose own worker is off, or too far away.
#include <iostream>
#include <mutex>

#include "apps/cli/command.h"
#include "apps/cli/log_options.h"
#include "apps/cli/session.h"
#include "apps/cli/systemd.h"
#include "permits/slot_workflow.h"
#include "worker/worker.h"

namespace permit::cli {

namespace {

int run_worker_start(Session& session) {
  const Arguments& arguments = session.arguments();
  const std::string queue =
      arguments.text_or("task-queue", environment_variable("PERMIT_QUEUE").value_or("permits"));
  worker::Registry registry;
  permits::register_permit_slot(registry);
  LogOptions log_options;
  read_log_options(arguments, log_options, [](const std::string&, const std::string&) {});
  StandardLog log(log_options);
  std::mutex log_mutex;  // several threads of a worker have something to say
  worker::WorkerOptions options(queue);
  options.print = [&](const std::string& said) {
    const std::lock_guard lock(log_mutex);
    LogLine line;
    line.level = LogLine::Level::warn;
    line.event = "worker_says";
    line.msg = said;
    line.task_queue = queue;
    log.log.write(line);
    log.finish();
  };
  options.identity = std::to_string(getpid()) + "@" + host_name();
  ServiceManager manager;
  const std::string serving =
      "permits on queue " + queue + " of " + session.settings().text("address");
  options.on_started = [&] {
    manager.ready();
    manager.status(serving);
  };
  const auto drain = std::chrono::duration_cast<std::chrono::seconds>(2 * options.drain_timeout);
  options.on_stopping = [&manager, drain] { manager.stopping(drain + std::chrono::seconds(10)); };
  worker::Worker worker(session.transport(), registry, std::move(options));
  std::cout << "permit worker: " << serving << "\n" << std::flush;
  return worker.run_until_signal();
}

std::vector<Flag> worker_flags() {
  std::vector<Flag> flags = {{"task-queue", 0, ValueType::text, "NAME",
                              "the queue that permits are on ($PERMIT_QUEUE, else permits)"}};
  for (Flag& flag : log_flags()) flags.push_back(std::move(flag));
  return flags;
}

}  // namespace

std::vector<Command> worker_commands() {
  return {{"worker start",
           "a worker of permits, outside the server",
           "Ends leases that run out. TERM drains it; a second TERM stops it.",
           {{"permit worker start --task-queue permits", ""}},
           {},
           worker_flags(),
           run_worker_start}};
}

}  // namespace permit::cli
