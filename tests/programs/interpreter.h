// The workflow that runs a program, and the activity that programs use.
#pragma once

#include "tests/programs/program.h"
#include "worker/registry.h"

namespace permit::programs {

inline constexpr worker::WorkflowName<std::int64_t(Input)> program{"program"};

// What is outside of the workflows' histories.
struct Outside {
  bool new_code = false;  // the deployed code asks patched()
  int side_effects = 0;   // that have run
};
Outside& outside();

worker::Registry make_registry();

}  // namespace permit::programs
