// What happened over many seeds. Each line is bounded from below: a simulation in which nothing
// expires proves nothing about expiry.
#pragma once

#include <cstdint>

namespace permit::simulation {

struct Totals {
  std::int64_t seeds = 0;
  std::int64_t seeds_level_2 = 0;
  std::int64_t seeds_repeated = 0;  // that ran twice, and came out the same
  std::int64_t phases = 0;
  std::int64_t batches = 0;
  std::int64_t simulated_seconds = 0;
  std::int64_t requests = 0;
  std::int64_t writes_acknowledged = 0;
  std::int64_t grants = 0;
  std::int64_t waits_granted = 0;
  std::int64_t expired_by_timer = 0;
  std::int64_t expired_by_backstop = 0;
  std::int64_t released = 0;
  std::int64_t holder_closed = 0;
  std::int64_t force_released = 0;
  std::int64_t writes_guarded = 0;        // at resources that look at the fence
  std::int64_t stale_writes_refused = 0;  // by them
  std::int64_t stale_writes_taken = 0;
  std::int64_t overlaps_unguarded = 0;  // writes that a resource without a fence would have mixed
  std::int64_t late_releases_ignored = 0;
  std::int64_t stale_tokens_refused = 0;
  std::int64_t wakes = 0;
  std::int64_t crashes = 0;
  std::int64_t power_losses = 0;
  std::int64_t disk_full_refusals = 0;
  std::int64_t replies_lost = 0;
  std::int64_t children_closed_with_parent = 0;
  std::int64_t activities_retried = 0;
  std::int64_t renewals = 0;
  std::int64_t sections = 0;        // runs of the SDK's code
  std::int64_t prefixes = 0;        // of their histories, replayed
  std::int64_t tasks_compared = 0;  // with what they asked for the first time
};

}  // namespace permit::simulation
