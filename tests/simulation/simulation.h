// One seed: a world that a scheduler drives with random requests, pauses and faults, checks after
// every batch, and a quiet end in which everything must finish.
#pragma once

#include <sstream>

#include "tests/simulation/clients.h"
#include "tests/simulation/holders.h"
#include "tests/simulation/workers.h"

namespace permit::simulation {

class Simulation {
 public:
  Simulation(std::uint64_t seed, const Plan& plan, Totals& totals, bool verbose);

  // Throws Violation, or what the engine throws when it must not.
  void run();
  // Where std::cerr must lead while seeds run: what the engine writes there is a broken promise.
  static std::ostringstream& complaints();
  // Instead: crash after crash, at least this many acknowledged writes before each.
  void run_crashes(int crashes, int writes_min);

 private:
  void step();
  void act();
  void inject();
  void pass_time();
  void deliver();
  // Runs batches until nobody asks for anything, and checks after each.
  void settle();
  void check_batch();
  void restart();
  void drain();
  bool is_quiet();
  void say(const std::string& what);
  std::string what_is_left() const;

  const bool verbose_;
  Totals& totals_;
  World world_;
  Workers workers_;
  Clients clients_;
  Holders holders_;
  Time disk_freed_{};
};

}  // namespace permit::simulation
