#include "apps/cli/worker_command.h"

#include <iostream>

#include "permits/slot_workflow.h"
#include "worker/http_client.h"
#include "worker/worker.h"

namespace permit::cli {

int run_worker(const WorkerOptions& options) {
  try {
    worker::HttpTransport transport(options.address);
    worker::Registry registry;
    permits::register_permit_slot(registry);
    worker::Worker worker(transport, registry, worker::WorkerOptions(options.task_queue));
    std::cout << "permit worker: permits on queue " << options.task_queue << " of "
              << transport.host() << ":" << transport.port() << "\n"
              << std::flush;
    return worker.run_until_signal();
  } catch (const std::exception& error) {
    std::cerr << "permit: " << error.what() << "\n";
    return 1;
  }
}

}  // namespace permit::cli
