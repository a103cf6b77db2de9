// What a command that runs under a permit finds in its environment.
#pragma once

#include <string>
#include <vector>

#include "apps/cli/run/run_options.h"
#include "orchestrator/protocol/pools.h"

namespace permit::cli {

// Of each slot that was granted: what the pool says, else the slot's number, sorted. Throws Error
// SLOT_NO_DEVICE if a slot has neither.
std::vector<std::string> devices_of(const AcquireResponse& grant);

// A name of a variable that may be set, and a template that can be filled in. Throws Error.
void check_variable(const std::string& name, const std::string& text);

struct Granted {
  const AcquireResponse& grant;
  std::vector<std::string> devices;  // none without --gpu
  std::string holder;
  Time max_hold_deadline{};  // not set: none
};

// `inherited` ("NAME=value") and what the permit adds, which replaces what was there.
std::vector<std::string> child_environment(const std::vector<std::string>& inherited,
                                           const RunOptions& options, const Granted& granted);

// "CUDA_VISIBLE_DEVICES=2,3", for people to read; empty without --gpu.
std::string device_mask(const RunOptions& options, const std::vector<std::string>& devices);

}  // namespace permit::cli
