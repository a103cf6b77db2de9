#include "orchestrator/service/histogram.h"

#include "orchestrator/protocol/ensure.h"

namespace permit::service {

std::optional<double> quantile(std::span<const Duration> bounds,
                               std::span<const std::uint64_t> counts, double q) {
  ENSURE(counts.size() == bounds.size() + 1);
  const auto seconds = [](Duration time) { return static_cast<double>(time.count()) / 1e6; };
  std::uint64_t total = 0;
  for (const std::uint64_t count : counts) total += count;
  if (total == 0) return std::nullopt;
  const double rank = q * static_cast<double>(total);
  double below = 0;
  for (std::size_t i = 0; i < bounds.size(); ++i) {
    const auto count = static_cast<double>(counts[i]);
    if (counts[i] > 0 && below + count >= rank) {
      const double from = i == 0 ? 0 : seconds(bounds[i - 1]);
      return from + (seconds(bounds[i]) - from) * (rank - below) / count;
    }
    below += count;
  }
  return seconds(bounds.back());
}

}  // namespace permit::service
