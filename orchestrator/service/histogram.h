// How often something took how long: counts in buckets with fixed bounds, and the sum. What is told
// to Prometheus, and, as the difference of two, what percentiles of the last second are read from.
// Engine thread; observing is a search among a dozen numbers.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "orchestrator/protocol/ids.h"

namespace permit::service {

// In seconds, by interpolation within the bucket that it falls into; nullopt if there is nothing.
// Beyond the last bound it is the last bound, as in Prometheus. `counts` has one more than
// `bounds`.
std::optional<double> quantile(std::span<const Duration> bounds,
                               std::span<const std::uint64_t> counts, double q);

// `bounds` are upper ones, inclusive, rising; a last bucket is without bound.
template <const auto& bounds>
class Histogram {
 public:
  using Counts = std::array<std::uint64_t, bounds.size() + 1>;

  void observe(Duration took) {
    took = std::max(took, Duration(0));
    const auto bound = std::lower_bound(bounds.begin(), bounds.end(), took);
    ++counts_[static_cast<std::size_t>(bound - bounds.begin())];
    sum_ += took;
  }

  const Counts& counts() const { return counts_; }
  Duration sum() const { return sum_; }
  std::uint64_t count() const {
    std::uint64_t count = 0;
    for (const std::uint64_t in_bucket : counts_) count += in_bucket;
    return count;
  }

  // Of what was observed since it was like `before`.
  std::optional<double> quantile_since(const Histogram& before, double q) const {
    Counts counts = counts_;
    for (std::size_t i = 0; i < counts.size(); ++i) counts[i] -= before.counts_[i];
    return quantile(bounds, counts, q);
  }

 private:
  Counts counts_{};
  Duration sum_{};
};

namespace histogram_bounds {

using namespace std::chrono_literals;

template <class... Durations>
constexpr auto make(Durations... bounds) {
  return std::array<Duration, sizeof...(bounds)>{Duration(bounds)...};
}

// Requests: those of OpenTelemetry.
inline constexpr auto request =
    make(5ms, 10ms, 25ms, 50ms, 75ms, 100ms, 250ms, 500ms, 750ms, 1s, 2500ms, 5s, 7500ms, 10s);
inline constexpr auto long_poll = make(100ms, 1s, 5s, 10s, 20s, 30s, 45s, 60s, 90s);
inline constexpr auto wait = make(10ms, 100ms, 500ms, 1s, 5s, 15s, 1min, 5min, 15min, 1h, 4h, 24h);
inline constexpr auto hold = make(1s, 5s, 15s, 1min, 5min, 15min, 30min, 1h, 2h, 4h, 8h, 24h, 72h);
inline constexpr auto end_to_end =
    make(100ms, 500ms, 1s, 5s, 15s, 1min, 5min, 15min, 1h, 4h, 24h, 168h);
inline constexpr auto schedule_to_start =
    make(5ms, 10ms, 50ms, 100ms, 500ms, 1s, 5s, 10s, 30s, 1min, 5min, 1h);
inline constexpr auto lateness = make(1ms, 5ms, 10ms, 50ms, 100ms, 500ms, 1s, 5s, 10s, 1min, 10min);
inline constexpr auto store =
    make(100us, 250us, 500us, 1ms, 2500us, 5ms, 10ms, 25ms, 50ms, 100ms, 250ms, 1s, 5s);

// For percentiles that are shown: eight bounds to a factor of ten, from 100 µs to 20 hours.
constexpr auto make_fine() {
  constexpr std::array<std::int64_t, 8> steps = {1000, 1334, 1778, 2371, 3162, 4217, 5623, 7499};
  std::array<Duration, 72> fine{};
  std::int64_t scale = 1;
  for (std::size_t i = 0; i < fine.size(); ++i) {
    fine[i] = Duration(steps[i % steps.size()] * scale / 10);
    if (i % steps.size() == steps.size() - 1) scale *= 10;
  }
  return fine;
}
inline constexpr auto fine = make_fine();

}  // namespace histogram_bounds

}  // namespace permit::service
