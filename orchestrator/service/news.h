// What the batch at hand brings about, for those who only watch: the event stream, metrics, logs.
// Collected while its changes are written, told after the commit, forgotten if it fails. Numbers
// and names only: whoever is told looks at the state. But for what leaves no trace in it, which is
// counted here: the tally.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "orchestrator/protocol/pools.h"
#include "orchestrator/protocol/trace.h"

namespace permit::service {

struct PoolNews {
  bool settings = false;  // not only its holders: an operator or a caller changed what it is
  bool line = false;      // who waits for it

  // What operators did to it, in order; for the log.
  struct Act {
    PoolChange change;
    std::string removed;  // who was taken out of the line; empty: something else was done
  };
  std::vector<Act> acts{};
};

// An API key was made or revoked; for the log.
struct KeyNews {
  bool revoked = false;
  std::string key;   // its name
  std::string role;  // in a word
  std::string by;
};

struct TaskQueueSeries;

struct PoolTally {
  std::int32_t conflicts = 0;  // who asked and got nothing at once
  std::int32_t timeouts = 0;   // waits that ran out
};

struct Tally {
  // A worker got a task.
  struct TaskStart {
    TaskQueueSeries* series = nullptr;
    Duration waited{};
  };

  std::map<PoolName, PoolTally> pools;
  std::vector<TaskStart> task_starts;
  std::vector<std::int64_t*> counters;  // of the metrics; one up, each time
  std::vector<Duration> timer_lags;     // fired minus due
  std::vector<Duration> lease_lags;
  std::int64_t runs_due = 0;  // so many more
};

struct News {
  std::vector<RunNumber> started;
  std::vector<RunNumber> closed;
  std::set<RunNumber> permits;  // granted, renewed, worked under, ended, or given back late
  std::vector<RunNumber> late_releases;
  std::map<PoolName, PoolNews> pools;
  std::vector<KeyNews> keys;
  // Of those that started or closed by a request with a trace.
  std::map<RunNumber, std::shared_ptr<const TraceContext>> traces;
  Tally tally;

  // But for the tally.
  bool empty() const {
    return started.empty() && closed.empty() && permits.empty() && pools.empty() && keys.empty();
  }
};

}  // namespace permit::service
