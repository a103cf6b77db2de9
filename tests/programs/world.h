// A few programs in one test environment, and somebody who disturbs them.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/programs/interpreter.h"
#include "tests/programs/totals.h"
#include "worker/test_environment.h"

namespace permit::programs {

class World {
 public:
  World(std::uint64_t seed, Totals& totals);

  // Until every run has closed. Throws what is different on replay.
  void run();

 private:
  void start_programs();
  void disturb();
  void disturb_program(const worker::RunHandle& run);
  void restart_worker();
  void restart_server();
  void finish();
  // Whether a run that comes of the programs is open.
  bool visit_runs();
  void check_runs();
  void count(const std::vector<Event>& events);

  Chance chance_;
  Totals& totals_;
  const worker::Registry registry_;
  std::optional<worker::TestEnvironment> environment_;
  std::vector<std::string> task_failures_;
  std::vector<worker::RunHandle> programs_;
  struct Seen {
    WorkflowExecution execution;
    std::vector<Event> events;
  };
  std::vector<Seen> runs_;  // as of the last visit
  bool code_changed_ = false;
};

}  // namespace permit::programs
