// Names and numbers that must not be mixed up: a workflow id is not a run id is not a pool.
// Each is a distinct type around a string or an integer; on the wire it is the bare value.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace permit {

// Times and durations are whole microseconds. A zero Time means "not set".
using Duration = std::chrono::microseconds;
using Time = std::chrono::sys_time<Duration>;

inline constexpr Time never = Time::max();
inline bool is_set(Time time) { return time != Time{}; }

template <class Tag>
struct Name {
  std::string value;

  Name() = default;
  explicit Name(std::string text) : value(std::move(text)) {}
  explicit Name(std::string_view text) : value(text) {}
  explicit Name(const char* text) : value(text) {}

  bool empty() const { return value.empty(); }
  auto operator<=>(const Name&) const = default;
};

using WorkflowId = Name<struct WorkflowIdTag>;
using RunId = Name<struct RunIdTag>;          // UUIDv7 text, strictly increasing
using TaskToken = Name<struct TaskTokenTag>;  // opaque bytes to everybody but the server
using PoolName = Name<struct PoolNameTag>;
using SlotName = Name<struct SlotNameTag>;

// The number of a grant: one counter per database, never reused, never rewound, below 2^53.
// Zero means "not a permit". A JSON number on the wire.
struct Fence {
  std::int64_t value = 0;
  auto operator<=>(const Fence&) const = default;
};

// How many of something there have been, ever. A JSON number on the wire.
struct Count {
  std::int64_t value = 0;
  auto operator<=>(const Count&) const = default;
};

// A run's row in the store; the order in which runs were created. Never leaves the server.
struct RunNumber {
  std::int64_t value = 0;
  auto operator<=>(const RunNumber&) const = default;
};

}  // namespace permit
