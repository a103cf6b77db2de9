#include "tests/bench/report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace permit::bench {

std::string number(double value) {
  char text[32];
  const double size = std::abs(value);
  std::snprintf(text, sizeof text, size < 1 ? "%.3f" : size < 100 ? "%.2f" : "%.0f", value);
  std::string grouped = text;
  if (grouped.find('.') != std::string::npos) return grouped;
  for (auto at = static_cast<std::ptrdiff_t>(grouped.size()) - 3; at > 0; at -= 3) {
    if (grouped[static_cast<std::size_t>(at) - 1] != '-') {
      grouped.insert(static_cast<std::size_t>(at), ",");
    }
  }
  return grouped;
}

namespace {

std::string shown_values(const std::vector<double>& values) {
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

double quantile(std::vector<double> values, double share) {
  if (values.size() < 20) throw std::runtime_error("too few measurements to speak of");
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(static_cast<double>(values.size() - 1) * share)];
}

Report::Figure& Report::figure_for(const std::string& name, const std::string& unit) {
  for (Figure& figure : figures_) {
    if (figure.name == name) return figure;
  }
  return figures_.emplace_back(Figure{name, unit, {}, false, ""});
}

void Report::add(const std::string& name, const std::string& unit, double value) {
  Figure& figure = figure_for(name, unit);
  if (figure.why_missing.empty()) figure.values.push_back(value);
}

void Report::mark_detail(const std::string& name) {
  for (Figure& figure : figures_) {
    if (figure.name == name) figure.detail = true;
  }
}

void Report::add_missing(const std::string& name, const std::string& unit, const std::string& why) {
  Figure& figure = figure_for(name, unit);
  figure.values.clear();
  figure.why_missing = why;
}

void Report::set_fact(const std::string& name, const std::string& value) {
  facts_.emplace_back(name, value);
}

const Report::Figure* Report::find(const std::string& name) const {
  for (const Figure& figure : figures_) {
    if (figure.name == name) return &figure;
  }
  return nullptr;
}

double Report::last(const std::string& name) const {
  const Figure* figure = find(name);
  if (figure == nullptr || figure->values.empty()) {
    throw std::runtime_error("not measured yet: " + name);
  }
  return figure->values.back();
}

std::vector<std::string> Report::names() const {
  std::vector<std::string> names;
  for (const Figure& figure : figures_) names.push_back(figure.name);
  return names;
}

bool Report::is_detail(const std::string& name) const {
  const Figure* figure = find(name);
  return figure != nullptr && figure->detail;
}

std::string Report::unit(const std::string& name) const {
  const Figure* figure = find(name);
  return figure == nullptr ? "" : figure->unit;
}

std::optional<Summary> Report::summary(const std::string& name) const {
  const Figure* figure = find(name);
  if (figure == nullptr || figure->values.empty()) return std::nullopt;
  return summary_of(figure->values);
}

std::string Report::why_missing(const std::string& name) const {
  const Figure* figure = find(name);
  return figure == nullptr ? "" : figure->why_missing;
}

std::string Report::shown(const std::string& name) const {
  const Figure* figure = find(name);
  if (figure == nullptr) return "not measured";
  if (figure->values.empty()) return "not measured: " + figure->why_missing;
  return shown_values(figure->values);
}

std::string Report::verdict(const std::string& name) const {
  const auto target = targets_.find(name);
  if (target == targets_.end()) return "";
  const bool at_least = target->second.kind == Target::Kind::at_least;
  const std::string goal = (at_least ? ">= " : "<= ") + number(target->second.value);
  const std::optional<Summary> measured = summary(name);
  if (!measured) return goal + "  not measured";
  return goal + (meets(target->second, measured->median) ? "  met" : "  NOT MET");
}

std::string Report::table(const Report& baseline) const {
  std::string text;
  for (const auto& [name, value] : facts_) text += padded(name, 24) + value + "\n";
  text += padded("figure", 64) + padded("median [min..max]", 34) + "target\n";
  for (const Figure& figure : figures_) {
    if (figure.detail) continue;
    text += padded(figure.name + ", " + figure.unit, 64);
    text += padded(shown(figure.name), 32) + "  " + verdict(figure.name);
    const Figure* other = baseline.find(figure.name);
    if (other != nullptr && other->values.size() == figure.values.size()) {
      std::vector<double> ratios;
      for (std::size_t i = 0; i < figure.values.size(); ++i) {
        ratios.push_back(figure.values[i] / other->values[i]);
      }
      text += "  ratio " + shown_values(ratios);
    }
    text += '\n';
  }
  return text;
}

std::string Report::json() const {
  nlohmann::ordered_json facts = nlohmann::ordered_json::object();
  for (const auto& [name, value] : facts_) facts[name] = value;
  nlohmann::ordered_json figures = nlohmann::ordered_json::array();
  for (const Figure& figure : figures_) {
    nlohmann::ordered_json entry = {{"figure", figure.name}, {"unit", figure.unit}};
    const auto measured = summary(figure.name);
    if (measured) {
      entry["median"] = measured->median;
      entry["min"] = measured->min;
      entry["max"] = measured->max;
      entry["values"] = figure.values;
    } else {
      entry["notMeasured"] = figure.why_missing;
    }
    if (figure.detail) entry["detail"] = true;
    const auto target = targets_.find(figure.name);
    if (target != targets_.end()) {
      const bool at_least = target->second.kind == Target::Kind::at_least;
      entry["target"] = {{at_least ? "atLeast" : "atMost", target->second.value}};
      entry["met"] = measured && meets(target->second, measured->median);
    }
    figures.push_back(std::move(entry));
  }
  const nlohmann::ordered_json all = {{"machine", std::move(facts)},
                                      {"figures", std::move(figures)}};
  return all.dump(2) + "\n";
}

Report Report::from_json(const std::string& text) {
  const auto all = nlohmann::ordered_json::parse(text);
  Report report;
  for (const auto& [name, value] : all.at("machine").items()) {
    report.set_fact(name, value.get<std::string>());
  }
  for (const auto& entry : all.at("figures")) {
    const auto name = entry.at("figure").get<std::string>();
    Figure& figure = report.figure_for(name, entry.at("unit").get<std::string>());
    figure.values = entry.value("values", std::vector<double>{});
    figure.why_missing = entry.value("notMeasured", "");
    figure.detail = entry.value("detail", false);
    if (!entry.contains("target")) continue;
    const auto target = entry.at("target").items().begin();
    const bool at_least = target.key() == "atLeast";
    report.set_target(name, {at_least ? Target::Kind::at_least : Target::Kind::at_most,
                             target.value().get<double>()});
  }
  return report;
}

}  // namespace permit::bench
