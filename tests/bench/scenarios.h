// What is measured: each scenario starts what it needs on a fresh database, loads it, checks every
// answer, and adds its figures to the report.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/bench/report.h"

namespace permit::bench {

struct Setting {
  std::string binary;     // `permit`
  std::string directory;  // for databases; emptied by whoever made it
};

struct Scenario {
  std::string name;
  std::function<void(const Setting&, Report&)> run;
};

// The server's, and beside them the limits of machine, SQLite and HTTP. The limits use what the
// 64-connection starts of the same repetition have left in the report.
std::vector<Scenario> server_scenarios();
std::vector<Scenario> limit_scenarios();
// Of the SDK: a worker in this process against the server, and the replay by itself.
std::vector<Scenario> worker_scenarios();
// Of permits: workflows of such a worker that acquire and release.
std::vector<Scenario> permit_scenarios();

// `permit run` from a shell, beside flock.
std::vector<Scenario> command_scenarios();

// Holders from outside, beside the systems that people would use instead, and the limits of what
// one of them can reach. Each repetition starts all of these systems anew.
std::vector<Scenario> outside_scenarios();
void set_outside_targets(Report& report);

// Many open runs, timers, parked polls, waiters and readers.
std::vector<Scenario> scale_scenarios();
void set_scale_targets(Report& report);

// A body like those that start runs.
std::string start_body(const std::string& request_id);

inline const std::string command_run = "a command: permit run";
inline const std::string starts_at_64 = "starts, 64 connections";
inline const std::string starts_batch = "starts, 64 connections: median batch";
inline const std::string starts_row = "starts, 64 connections: stored";

}  // namespace permit::bench
