// What the batch at hand brings about, for those who only watch: the event stream, metrics, logs.
// Collected while its changes are written, told after the commit, forgotten if it fails. Numbers
// and names only: whoever is told looks at the state.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "orchestrator/protocol/common.h"

namespace permit::service {

struct PoolNews {
  bool settings = false;  // not only its holders: an operator or a caller changed what it is
  bool line = false;      // who waits for it
};

struct News {
  std::vector<RunNumber> started;
  std::vector<RunNumber> closed;
  std::set<RunNumber> permits;  // granted, renewed, worked under, ended, or given back late
  std::vector<RunNumber> late_releases;
  std::map<PoolName, PoolNews> pools;

  bool empty() const {
    return started.empty() && closed.empty() && permits.empty() && pools.empty();
  }
};

}  // namespace permit::service
