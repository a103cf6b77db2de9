// One seed: a world that a scheduler drives with random requests, pauses and faults, checks after
// every batch, and a quiet end in which everything must finish. What it does can be kept as a
// script, and done again from one.
#pragma once

#include <sstream>

#include "tests/simulation/clients.h"
#include "tests/simulation/holders.h"
#include "tests/simulation/script.h"
#include "tests/simulation/workers.h"

namespace permit::simulation {

enum class Notes { none, kept, printed };

class Simulation {
 public:
  Simulation(std::uint64_t seed, const Plan& plan, Totals& totals, Notes notes = Notes::none);

  // Throw Violation, or what the engine throws when it must not.
  void run();
  void replay(const Script& script);
  // Instead: crash after crash, at least this many acknowledged writes before each.
  void run_crashes(int crashes, int writes_min);

  // What was done so far; complete after run() or replay(), also if they threw.
  const Script& script() const { return script_; }
  // The histories of the runs that are open, for people.
  void tell_open_runs() const;
  // Of all that happened: the same again for the same seed.
  std::uint64_t hash() const;

  // Where std::cerr must lead while seeds run: what the engine writes there is a broken promise.
  static std::ostringstream& complaints();

 private:
  void perform(Phase phase, const Choices* choices = nullptr);
  void do_phase(Phase phase);
  void set_up();
  void step();
  void act();
  void inject();
  void inject_into_disk();
  void crash();
  void pass_time();
  void deliver();
  void answer_all_polls();
  // Runs batches until nobody asks for anything, and checks after each.
  void settle();
  void check_batch();
  void restart();
  void after_restart();
  void drain();
  bool is_quiet();
  std::string what_is_left() const;

  const Notes notes_;
  Totals& totals_;
  Chance schedule_;  // which phase comes next: what a script has instead
  Script script_;
  World world_;
  std::optional<Workers> workers_;  // from the setup on
  std::optional<Clients> clients_;
  std::optional<Holders> holders_;
};

}  // namespace permit::simulation
