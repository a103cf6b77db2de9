// A closed loop: each client acquires, holds, releases and begins again; one thread, epoll.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "tests/bench/load.h"
#include "tests/bench/peers/lock_session.h"

namespace permit::bench {

struct LoopOptions {
  Seconds warm_up{0.4};
  Seconds measured{1.5};
  Seconds hold{0};
  // Called when a client has been told that it has the lock, and before it gives it back.
  std::function<void(std::size_t client)> granted;
  std::function<void(std::size_t client)> releasing;
};

// Of what ended within the measured time.
struct LoopResult {
  double cycles_per_second = 0;
  std::vector<double> acquire_ms;  // from asking to having
  std::vector<double> cycle_ms;    // from asking to hearing that it is free again
  std::vector<int> grants;         // of each client
};

// Ends when all clients have released. Throws if one is refused.
LoopResult run_loop(const std::vector<std::unique_ptr<LockSession>>& sessions,
                    const LoopOptions& options);

}  // namespace permit::bench
