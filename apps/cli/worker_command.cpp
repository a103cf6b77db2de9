// permit worker start: serves the permits of a server whose own worker is off, or too far away.
#include <iostream>

#include "apps/cli/command.h"
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
  worker::WorkerOptions options(queue);
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

}  // namespace

std::vector<Command> worker_commands() {
  return {{"worker start",
           "a worker of permits, outside the server",
           "Ends leases that run out. TERM drains it; a second TERM stops it.",
           {{"permit worker start --task-queue permits", ""}},
           {},
           {{"task-queue", 0, ValueType::text, "NAME",
             "the queue that permits are on ($PERMIT_QUEUE, else permits)"}},
           run_worker_start}};
}

}  // namespace permit::cli
