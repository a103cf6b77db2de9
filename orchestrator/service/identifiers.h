// Run ids and nonces. Run ids are UUIDv7: 48 bits of milliseconds, then a counter that makes ids of
// one process strictly increasing, then random bits. Seeded by the caller, so a simulation repeats.
#pragma once

#include "orchestrator/core/decision.h"

namespace permit::service {

// splitmix64: small, documented, the same everywhere.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15U;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31U);
  }
  // Uniform in [0, bound), without modulo bias.
  std::uint64_t below(std::uint64_t bound) {
    const std::uint64_t limit = bound * (UINT64_MAX / bound);
    for (;;) {
      const std::uint64_t value = next();
      if (value < limit) return value % bound;
    }
  }

 private:
  std::uint64_t state_;
};

// From the kernel; for servers.
std::uint64_t random_seed();

class Identifiers : public core::Ids {
 public:
  explicit Identifiers(std::uint64_t seed) : random_(seed) {}

  RunId new_run_id(Time now) override;
  std::int64_t nonce() override;

 private:
  Random random_;
  std::int64_t last_tick_ = 0;  // milliseconds × 2^12 + counter
};

}  // namespace permit::service
