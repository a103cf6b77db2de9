// Counts how often something happens, and says how often a second it did in the last minute. A
// ring of counters, each for some seconds; nothing has to be done as time passes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "orchestrator/protocol/ids.h"

namespace permit::service {

class RateMeter {
 public:
  void note(Time now);
  // Rounded to hundredths. A meter that is younger than a minute takes its own age for it, but no
  // less than a step: what happens first does not count as a flood.
  double per_second(Time now) const;

 private:
  static constexpr Duration step = std::chrono::seconds(5);
  static constexpr std::int64_t steps = 12;

  static std::int64_t step_of(Time time) { return time.time_since_epoch() / step; }
  std::uint32_t& count_of(std::int64_t number) {
    return counts_[static_cast<std::size_t>(number % steps)];
  }

  std::array<std::uint32_t, steps> counts_{};
  std::int64_t last_ = 0;  // the step that was counted in last; those after it are not in counts_
  Time begun_{};
};

}  // namespace permit::service
