// `permit server start-dev | start`: builds the orchestrator from its parts and runs it until a
// signal. The one file besides tests that sees all of it.
#pragma once

#include <cstdint>
#include <string>

#include "orchestrator/protocol/ids.h"

namespace permit::cli {

struct ServerOptions {
  std::string address = "127.0.0.1";
  std::uint16_t port = 7376;
  std::string database;  // empty: in memory, gone on exit
  bool virtual_time = false;
  std::int64_t retention_seconds = 72 * 3600;
  bool permit_worker = true;  // inside the server; not with virtual time
  std::string permit_queue = "permits";
};

// Returns the process's exit code.
int run_server(const ServerOptions& options);

}  // namespace permit::cli
