// The sentences of `permit run`.
#pragma once

#include <string>
#include <vector>

#include "apps/cli/run/hold_plan.h"
#include "orchestrator/protocol/pools.h"

namespace permit::cli {

// "permit:gpu:1 and permit:gpu:2"
std::string names_of(const AcquireResponse& grant);

// "python train.py (ana@gpu-host:4121)"
std::string holder_name(const std::vector<std::string>& command, const std::string& who);

// "4/4 held, 2 waiting"
std::string fill_of(const PoolInfo& pool);

// One line, without "permit: ": what a waiter waits for.
std::string waiting_line(const WhyResponse& why, const PoolInfo& pool);

// Why the command is stopped: "the lease of permit:gpu:1 ended after 30s".
std::string stop_text(StopReason reason, const AcquireResponse& grant, Duration held);

}  // namespace permit::cli
