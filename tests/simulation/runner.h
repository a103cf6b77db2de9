// Runs seeds, in several processes if wanted, and scripts; makes small scripts of seeds that break.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tests/simulation/simulation.h"

namespace permit::simulation {

enum class Levels { one, two, both };

struct RunOptions {
  std::uint64_t first_seed = 1;
  std::uint64_t seeds = 300;
  Levels levels = Levels::both;
  int jobs = 1;
  int repeat_each = 100;  // one seed of so many runs twice
  bool verbose = false;
};

struct Broken {
  std::uint64_t seed = 0;
  std::string what;
};

// The level of a seed: of `both` every fiftieth is of level 2.
int level_of(const RunOptions& options, std::uint64_t seed);
Plan plan_of_seed(std::uint64_t seed, int level);

// The seeds in turn, until one breaks.
std::optional<Broken> run_seeds(const RunOptions& options, Totals& totals);
// The same in `jobs` processes; adds up what they have counted.
std::optional<Broken> run_jobs(const RunOptions& options, Totals& totals);

// What a script breaks; nothing: it is kept.
std::optional<std::string> run_script(const Script& script, Totals& totals, Notes notes,
                                      Script* done = nullptr);

// The script of a seed, cut down as long as it breaks the same promise, for `seconds` at most.
// Throws std::invalid_argument if the seed breaks nothing.
Script shrink_seed(std::uint64_t seed, int level, double seconds);

}  // namespace permit::simulation
