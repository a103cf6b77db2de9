// The options of one seed, drawn from it: which faults there are and how often, how large the
// world is. Swarm testing: no seed has everything. Zero is off, for all of them.
#pragma once

#include <boost/describe.hpp>

#include "tests/simulation/chance.h"

namespace permit::simulation {

struct PoolPlan {
  PoolName name;
  std::int32_t capacity = 0;
  bool configured = false;  // by an operator at the start; else learned from the first caller
  bool rate = false;
};
BOOST_DESCRIBE_STRUCT(PoolPlan, (), (name, capacity, configured, rate))

struct Plan {
  // 1: messages and a database in memory, whose commits a crash keeps. 2: bytes through the gate
  // and the codecs, and SQLite on a disk that loses power.
  std::int32_t level = 0;
  std::vector<PoolPlan> pools;
  std::int32_t steps = 0;
  std::int32_t parents = 0;   // ids in use, each by one run after the other
  std::int32_t sections = 0;  // of them with code of the SDK's: sections under permits
  std::int32_t holders = 0;   // that are not workflows
  std::int32_t permit_workers = 0;
  std::int32_t permit_runners = 0;  // of them with the real permit workflow
  Duration lease_min{};
  Duration lease_max{};
  Duration time_step{};      // a usual pause between batches
  Duration retention{};      // of closed runs; zero: for ever
  bool fences_high = false;  // the first fence is near 2^32

  // In percent.
  std::int32_t fair = 0;
  std::int32_t several = 0;  // requests for more than one slot
  std::int32_t sleepers = 0;
  std::int32_t activities = 0;
  std::int32_t children = 0;
  std::int32_t orphans = 0;  // of parents: they start a child first of all that outlives them
  std::int32_t continue_as_new = 0;
  std::int32_t close = 0;
  std::int32_t invalid = 0;
  std::int32_t operators = 0;  // drains, capacity changes, force-releases
  std::int32_t callers = 0;    // of a client's steps: through the SDK's client, which tries again

  // Faults, in percent of a step.
  std::int32_t crashes = 0;
  std::int32_t crashes_of_recovery = 0;  // of a crash
  std::int32_t usurpers = 0;             // of a crash: a second server, the first one still lives
  std::int32_t damage = 0;               // of a crash: a file that is not one any more
  std::int32_t other_settings = 0;       // of a restart: capacities, limits
  std::int32_t disk_full = 0;
  std::int32_t sync_failures = 0;
  std::int32_t sync_lies = 0;  // fails, and is durable
  std::int32_t write_failures = 0;
  std::int32_t read_failures = 0;
  std::int32_t slow_disk = 0;
  std::int32_t replies_lost = 0;
  std::int32_t requests_late = 0;
  std::int32_t requests_twice = 0;
  std::int32_t connections_cut = 0;
  std::int32_t workers_die = 0;  // of a task
  std::int32_t pauses = 0;       // of a task: longer than a lease
  std::int32_t clock_jumps = 0;  // of the wall clock
  std::int32_t freezes = 0;      // everything stands still for long
};
BOOST_DESCRIBE_STRUCT(Plan, (),
                      (level, pools, steps, parents, sections, holders, permit_workers,
                       permit_runners, lease_min, lease_max, time_step, retention, fences_high,
                       fair, several, sleepers, activities, children, orphans, continue_as_new,
                       close, invalid, operators, callers, crashes, crashes_of_recovery, usurpers,
                       damage, other_settings, disk_full, sync_failures, sync_lies, write_failures,
                       read_failures, slow_disk, replies_lost, requests_late, requests_twice,
                       connections_cut, workers_die, pauses, clock_jumps, freezes))

Plan draw_plan(Chance& chance, int level);

std::string to_text(const Plan& plan);
Plan plan_of(const std::string& text);

// The same plan without one of its faults or kinds of work, one after the other.
std::vector<Plan> simpler(const Plan& plan);

}  // namespace permit::simulation
