#include "orchestrator/protocol/nearest.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace permit {

namespace {

char to_lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

}  // namespace

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (const char c : a) {
    std::size_t diagonal = std::exchange(row[0], row[0] + 1);
    for (std::size_t i = 0; i < b.size(); ++i) {
      const std::size_t replaced = diagonal + (to_lower(c) == to_lower(b[i]) ? 0 : 1);
      diagonal = row[i + 1];
      row[i + 1] = std::min({row[i] + 1, row[i + 1] + 1, replaced});
    }
  }
  return row.back();
}

std::optional<std::string> nearest_name(std::string_view name,
                                        const std::vector<std::string>& known) {
  const std::string* nearest = nullptr;
  std::size_t best = std::clamp<std::size_t>((name.size() + 2) / 3, 1, 3) + 1;
  for (const std::string& candidate : known) {
    const std::size_t d = edit_distance(name, candidate);
    if (d < best) {
      best = d;
      nearest = &candidate;
    }
  }
  if (nearest == nullptr) return std::nullopt;
  return *nearest;
}

}  // namespace permit
