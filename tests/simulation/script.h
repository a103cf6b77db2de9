// What a seed did, phase by phase, with the choices of each: enough to do it again, and to leave
// phases out. As a file it can be read, since each line says what came of it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tests/simulation/plan.h"

namespace permit::simulation {

enum class Phase {
  setup,    // pools, workers
  deliver,  // requests that the network has held back
  act,      // somebody does something
  inject,   // a fault, or none
  settle,   // batches until all is done
  polls,    // all polls are answered with nothing
  time,     // passes
  drain,    // the quiet end
};

struct Segment {
  Phase phase = Phase::act;
  Choices choices;
  std::string notes;  // what was done, if anybody asked
};

struct Script {
  Plan plan;
  std::vector<Segment> segments;
  std::string broke;  // the promise that it breaks, if it was made for one

  std::size_t choices() const;
};

std::string to_text(const Script& script);
// Throws std::invalid_argument for what is no script.
Script script_of(const std::string& text);

}  // namespace permit::simulation
