#include "orchestrator/service/identifiers.h"

#include <sys/random.h>

#include <algorithm>
#include <stdexcept>

namespace permit::service {

std::uint64_t random_seed() {
  std::uint64_t seed = 0;
  if (getrandom(&seed, sizeof seed, 0) != sizeof seed) {
    throw std::runtime_error("the kernel gave no random bytes");
  }
  return seed;
}

RunId Identifiers::new_run_id(Time now) {
  const std::int64_t ms = now.time_since_epoch().count() / 1000;
  last_tick_ = std::max(last_tick_ + 1, ms << 12);
  const auto tick = static_cast<std::uint64_t>(last_tick_);
  const std::uint64_t high = (tick >> 12U) << 16U | 0x7000U | (tick & 0xfffU);
  const std::uint64_t low = (random_.next() >> 2U) | (std::uint64_t{2} << 62U);
  static constexpr char digits[] = "0123456789abcdef";
  std::string text = "00000000-0000-0000-0000-000000000000";
  std::size_t at = 0;
  for (const std::uint64_t word : {high, low}) {
    for (unsigned shift = 64; shift > 0; ++at) {
      if (text[at] == '-') continue;
      shift -= 4;
      text[at] = digits[(word >> shift) & 0xfU];
    }
  }
  return RunId(std::move(text));
}

std::int64_t Identifiers::nonce() { return static_cast<std::int64_t>((random_.next() >> 2U) | 1U); }

}  // namespace permit::service
