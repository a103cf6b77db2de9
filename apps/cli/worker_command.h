// `permit worker start`: serves the permits of a server whose own worker is off, or too far away.
#pragma once

#include <string>

namespace permit::cli {

struct WorkerOptions {
  std::string address = "127.0.0.1:7376";
  std::string task_queue = "permits";
};

// Runs until a signal. Returns the process's exit code.
int run_worker(const WorkerOptions& options);

}  // namespace permit::cli
