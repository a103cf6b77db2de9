// A random workflow: a tree that a seed says all about, so that the seed is the workflow's input.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "tests/simulation/chance.h"

namespace permit::programs {

using simulation::Chance;

struct Input {
  std::uint64_t seed = 0;
  int size = 1;    // nodes, about
  int rounds = 0;  // how often it continues as new
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Input, seed, size, rounds)

enum class Kind {
  // With others inside:
  sequence,
  parallel,
  race,         // until the first has ended
  cancel_part,  // the first is canceled when the second has ended
  shielded,
  // Alone:
  activity,
  timer,
  wait,
  child,
  signal_other,
  cancel_other,
  side_effect,
  look,  // at random numbers, the time, the run's figures
  patch,
  memo,
};

struct Node {
  Kind kind = Kind::look;
  int number = 0;   // what the kind leaves open
  int variant = 0;  // what is done with it once it has begun
  Duration duration{};
  bool tolerant = true;  // goes on after a failure
  Input child;
  std::vector<Node> inner;
};

Node draw_program(const Input& input);

}  // namespace permit::programs
