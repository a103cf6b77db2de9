// Plots of figures as SVG: lines over logarithmic axes.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tests/bench/report.h"

namespace permit::bench {

struct Series {
  std::string name;
  std::vector<std::pair<double, double>> points;
  bool emphasised = false;
};

struct Axis {
  std::string label;
  std::vector<std::pair<double, std::string>> ticks;  // the first and the last are its ends
  bool logarithmic = true;
};

// From 1, 2 or 5 times a power of ten below to one above all of these.
Axis axis_around(const std::string& label, const std::vector<double>& values);
std::string draw(const std::string& title, const Axis& x, const Axis& y,
                 const std::vector<Series>& series);

// Each is empty if its figures are not in the report.
std::string plot_throughput(const Report& report);
std::string plot_latency(const Report& report);
std::string plot_cost(const Report& report);

}  // namespace permit::bench
