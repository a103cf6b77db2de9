// The options of one seed, drawn from it: which faults there are and how often, how large the
// world is. Swarm testing: no seed has everything.
#pragma once

#include "tests/simulation/chance.h"

namespace permit::simulation {

struct PoolPlan {
  PoolName name;
  int capacity = 1;
  bool configured = false;  // by an operator at the start; else learned from the first caller
  bool rate = false;
};

struct Plan {
  bool on_disk = false;  // SQLite on a disk that loses power; else in memory, and crashes keep it
  std::vector<PoolPlan> pools;
  int steps = 0;
  int parents = 0;  // ids in use, each by one run after the other
  int holders = 0;  // that are not workflows
  Duration lease_min{};
  Duration lease_max{};
  Duration time_step{};  // a usual pause between batches

  // In percent.
  int fair = 50;
  int several = 0;  // requests for more than one slot
  int sleepers = 0;
  int activities = 0;
  int children = 0;
  int orphans = 0;  // of parents: they start a child first of all that outlives them
  int continue_as_new = 0;
  int close = 10;
  int invalid = 0;
  int operators = 0;  // drains, capacity changes, force-releases
  int crashes = 0;    // of a step
  int disk_full = 0;
  int sync_failures = 0;
  int replies_lost = 0;
  int requests_late = 0;
  int requests_twice = 0;
  int workers_die = 0;  // of a task
  int pauses = 0;       // of a task: longer than a lease
  int permit_workers = 2;
};

Plan draw_plan(Chance& chance);

}  // namespace permit::simulation
