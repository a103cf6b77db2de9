// The `permit` command.
#include <CLI/CLI.hpp>
#include <iostream>

#include "apps/cli/server_command.h"
#include "apps/cli/worker_command.h"

namespace {

void add_server_options(CLI::App& command, permit::cli::ServerOptions& options) {
  command.add_option("--ip", options.address, "Address to listen on; loopback only");
  command.add_option("--port", options.port, "Port; 0 takes any free one");
  command.add_option("--retention", options.retention_seconds, "Seconds that closed runs are kept")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{10} * 365 * 24 * 3600));
  command.add_option("--permit-queue", options.permit_queue, "The task queue that permits are on")
      ->envname("PERMIT_QUEUE");
  command.add_flag("!--no-permit-worker", options.permit_worker,
                   "Leave permits to a worker elsewhere: permit worker start");
}

void add_worker_options(CLI::App& command, permit::cli::WorkerOptions& options) {
  command.add_option("--address", options.address, "The server's host:port")
      ->envname("PERMIT_ADDRESS");
  command.add_option("--task-queue", options.task_queue, "The task queue that permits are on")
      ->envname("PERMIT_QUEUE");
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("permit: durable permits for scarce things");
  app.require_subcommand(1);
  CLI::App* server = app.add_subcommand("server", "Run the orchestrator");
  server->require_subcommand(1);

  permit::cli::ServerOptions options;
  CLI::App* start_dev = server->add_subcommand("start-dev", "A server for trying things out");
  add_server_options(*start_dev, options);
  start_dev->add_option("--db-filename", options.database, "Keep the data in this file");
  start_dev->add_flag("--virtual-time", options.virtual_time,
                      "Time stands still until POST /api/v1/test/advance moves it");
  CLI::App* start = server->add_subcommand("start", "A server that keeps its data");
  add_server_options(*start, options);
  start->add_option("--db-filename", options.database, "The database file")->required();

  CLI::App* worker = app.add_subcommand("worker", "Run workers");
  worker->require_subcommand(1);
  permit::cli::WorkerOptions worker_options;
  CLI::App* start_worker =
      worker->add_subcommand("start", "A worker of permits, outside the server");
  add_worker_options(*start_worker, worker_options);

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (*worker) return permit::cli::run_worker(worker_options);
  return permit::cli::run_server(options);
}
