#include "worker/random.h"

#include <bit>
#include <string>

#include "orchestrator/protocol/ensure.h"
#include "orchestrator/protocol/siphash.h"

namespace permit::worker {

std::uint64_t stream_seed(std::string_view run_id, std::string_view stream) {
  std::string text(run_id);
  text += '\xff';
  if (!stream.empty()) {
    text += stream;
    text += '\xff';
  }
  return siphash13(text);
}

std::uint64_t Random::word() {
  state_ += 0x9e3779b97f4a7c15U;
  std::uint64_t z = state_;
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31U);
}

std::uint64_t Random::below(std::uint64_t n) {
  ENSURE(n > 0);
  const std::uint64_t mask = n == 1 ? 0 : ~std::uint64_t{0} >> std::countl_zero(n - 1);
  for (;;) {
    const std::uint64_t drawn = word() & mask;
    if (drawn < n) return drawn;
  }
}

double Random::fraction() { return static_cast<double>(word() >> 11U) * 0x1.0p-53; }

}  // namespace permit::worker
