// What happened over many programs, each line bounded from below.
#pragma once

#include <cstdint>

namespace permit::programs {

struct Totals {
  std::int64_t programs = 0;
  std::int64_t runs = 0;
  std::int64_t activities = 0;
  std::int64_t activities_failed = 0;
  std::int64_t activities_canceled = 0;
  std::int64_t timers = 0;
  std::int64_t timers_canceled = 0;
  std::int64_t children = 0;
  std::int64_t children_refused = 0;
  std::int64_t signals = 0;
  std::int64_t signals_sent = 0;
  std::int64_t cancellations = 0;
  std::int64_t side_effects = 0;
  std::int64_t patches = 0;
  std::int64_t continued = 0;
  std::int64_t completed = 0;
  std::int64_t failed = 0;
  std::int64_t canceled = 0;
  std::int64_t terminated = 0;
  std::int64_t tasks = 0;
  std::int64_t tasks_lost = 0;
  std::int64_t worker_deaths = 0;
  std::int64_t server_restarts = 0;
  std::int64_t queries = 0;
  std::int64_t prefixes = 0;
  std::int64_t tasks_compared = 0;
};

}  // namespace permit::programs
