#include "orchestrator/service/rate_meter.h"

#include <algorithm>
#include <cmath>

namespace permit::service {

void RateMeter::note(Time now) {
  if (!is_set(begun_)) begun_ = now;
  const std::int64_t current = step_of(now);
  for (std::int64_t skipped = std::max(last_ + 1, current - steps + 1); skipped <= current;
       ++skipped) {
    count_of(skipped) = 0;
  }
  last_ = std::max(last_, current);
  ++count_of(last_);
}

double RateMeter::per_second(Time now) const {
  if (!is_set(begun_)) return 0;
  const std::int64_t first = step_of(now) - steps + 1;
  double count = 0;
  for (std::int64_t number = std::max(first, last_ - steps + 1); number <= last_; ++number) {
    count += counts_[static_cast<std::size_t>(number % steps)];
  }
  const Duration counted = now - std::max(Time(first * step), begun_);
  const double seconds = std::chrono::duration<double>(std::max(counted, step)).count();
  return std::round(100 * count / seconds) / 100;
}

}  // namespace permit::service
