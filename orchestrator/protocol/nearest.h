// For "did you mean …?".
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace permit {

// How many letters to insert, drop, change, or swap with their neighbour, to make `a` of `b`; upper
// or lower case.
std::size_t edit_distance(std::string_view a, std::string_view b);

// The one of `known` that `name` is probably a misspelling of: at most a third of its letters, and
// never more than three, are wrong, missing or too many.
std::optional<std::string> nearest_name(std::string_view name,
                                        const std::vector<std::string>& known);

}  // namespace permit
