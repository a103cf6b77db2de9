#include "tests/bench/report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace permit::bench {

namespace {

// 12,345 and 1.23: as many digits as mean something.
std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, std::abs(value) < 100 ? "%.2f" : "%.0f", value);
  std::string grouped = text;
  if (grouped.find('.') != std::string::npos) return grouped;
  for (auto at = static_cast<std::ptrdiff_t>(grouped.size()) - 3; at > 0; at -= 3) {
    if (grouped[static_cast<std::size_t>(at) - 1] != '-') {
      grouped.insert(static_cast<std::size_t>(at), ",");
    }
  }
  return grouped;
}

std::string shown(const std::vector<double>& values) {
  const Summary summary = summary_of(values);
  return number(summary.median) + " [" + number(summary.min) + ".." + number(summary.max) + "]";
}

std::string padded(std::string text, std::size_t width) {
  text.resize(std::max(width, text.size()), ' ');
  return text;
}

bool meets(const Target& target, double value) {
  return target.kind == Target::Kind::at_least ? value >= target.value : value <= target.value;
}

}  // namespace

Summary summary_of(std::vector<double> values) {
  if (values.empty()) throw std::runtime_error("a figure without values");
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  const double median =
      values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
  return {median, values.front(), values.back()};
}

void Report::add(const std::string& name, const std::string& unit, double value) {
  const auto found = std::find_if(figures_.begin(), figures_.end(),
                                  [&](const Figure& figure) { return figure.name == name; });
  if (found == figures_.end()) {
    figures_.push_back({name, unit, {value}});
  } else {
    found->values.push_back(value);
  }
}

const Report::Figure* Report::find(const std::string& name) const {
  for (const Figure& figure : figures_) {
    if (figure.name == name) return &figure;
  }
  return nullptr;
}

double Report::last(const std::string& name) const {
  const Figure* figure = find(name);
  if (figure == nullptr) throw std::runtime_error("not measured yet: " + name);
  return figure->values.back();
}

std::string Report::verdict(const Figure& figure) const {
  const auto target = targets_.find(figure.name);
  if (target == targets_.end()) return "";
  const bool met = meets(target->second, summary_of(figure.values).median);
  return (target->second.kind == Target::Kind::at_least ? ">= " : "<= ") +
         number(target->second.value) + (met ? "  met" : "  NOT MET");
}

std::string Report::table(const Report& baseline) const {
  std::string text = padded("figure", 54) + padded("median [min..max]", 34) + "target\n";
  for (const Figure& figure : figures_) {
    text += padded(figure.name + ", " + figure.unit, 54);
    text += padded(shown(figure.values), 34) + verdict(figure);
    const Figure* other = baseline.find(figure.name);
    if (other != nullptr && other->values.size() == figure.values.size()) {
      std::vector<double> ratios;
      for (std::size_t i = 0; i < figure.values.size(); ++i) {
        ratios.push_back(figure.values[i] / other->values[i]);
      }
      text += "  ratio " + shown(ratios);
    }
    text += '\n';
  }
  return text;
}

std::string Report::json() const {
  nlohmann::ordered_json figures = nlohmann::ordered_json::array();
  for (const Figure& figure : figures_) {
    const Summary summary = summary_of(figure.values);
    nlohmann::ordered_json entry = {{"figure", figure.name},    {"unit", figure.unit},
                                    {"median", summary.median}, {"min", summary.min},
                                    {"max", summary.max},       {"values", figure.values}};
    const auto target = targets_.find(figure.name);
    if (target != targets_.end()) {
      const bool at_least = target->second.kind == Target::Kind::at_least;
      entry["target"] = {{at_least ? "atLeast" : "atMost", target->second.value}};
      entry["met"] = meets(target->second, summary.median);
    }
    figures.push_back(std::move(entry));
  }
  return nlohmann::ordered_json{{"figures", std::move(figures)}}.dump(2) + "\n";
}

}  // namespace permit::bench
