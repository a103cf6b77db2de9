// Situations that a run must have met, by name: a simulation that never gets there proves nothing
// about it. The observers of the simulation say so; the engine knows nothing of this.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace permit::simulation {

inline constexpr std::size_t sometimes_max = 128;

// How often each was met, by its place in the list of names.
struct SometimesCounts {
  std::array<std::int64_t, sometimes_max> of{};
};

// Counts it. Throws std::logic_error for a name that is not in the list.
void sometimes(std::string_view name);
inline void sometimes(bool condition, std::string_view name) {
  if (condition) sometimes(name);
}

SometimesCounts& sometimes_counts();

// Prints the table, or only what is too rare. Each must be met 100 times in 10,000 seeds of its
// level, and so in proportion; runs that are too short to expect one show only zeros. Returns
// whether all of them were met often enough.
struct SeedsRun {
  std::int64_t of_level_1 = 0;
  std::int64_t of_level_2 = 0;
};
bool report_sometimes(const SeedsRun& seeds, bool whole_table);

}  // namespace permit::simulation
