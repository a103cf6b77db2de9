// What the server's metrics were, step by step: the answer of GET server/history.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "orchestrator/protocol/common.h"

namespace permit {

// A number, or null: nothing was observed in that step.
struct Sample {
  std::optional<double> value;
};

struct HistorySeries {
  std::string name;
  std::string metric;  // of GET /metrics, that it is made from
  std::string unit;    // 1/s, 1/h, s; absent: a number of things
  std::vector<Sample> values;
};
BOOST_DESCRIBE_STRUCT(HistorySeries, (), (name, metric, unit, values))

struct ServerHistory {
  std::string step;
  Time end{};  // of the last value of each series; absent: there is none yet
  std::vector<HistorySeries> series;
};
BOOST_DESCRIBE_STRUCT(ServerHistory, (), (step, end, series))

}  // namespace permit
