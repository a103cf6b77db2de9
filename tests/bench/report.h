// Figures of several repetitions: median [min..max], beside the target each has to meet.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace permit::bench {

struct Target {
  enum class Kind { at_least, at_most };
  Kind kind = Kind::at_least;
  double value = 0;
};

struct Summary {
  double median = 0;
  double min = 0;
  double max = 0;
};
Summary summary_of(std::vector<double> values);
// The value that this share of them is at or below. Throws if they are too few to speak of.
double quantile(std::vector<double> values, double share);

// 12,345 and 1.23: as many digits as mean something.
std::string number(double value);

class Report {
 public:
  // A value of this repetition. Figures are shown in the order in which they were first added.
  void add(const std::string& name, const std::string& unit, double value);
  // It could not be measured, in this repetition or in another: the figure has no value, but a why.
  void add_missing(const std::string& name, const std::string& unit, const std::string& why);
  // It is only for the JSON text and what is made from it, not for the table.
  void mark_detail(const std::string& name);
  // Of the machine and what is on it.
  void set_fact(const std::string& name, const std::string& value);
  void set_target(const std::string& figure, Target target) { targets_[figure] = target; }
  // Of the last repetition.
  double last(const std::string& name) const;

  std::vector<std::string> names() const;
  bool is_detail(const std::string& name) const;
  std::string unit(const std::string& name) const;
  // Of a figure that has values.
  std::optional<Summary> summary(const std::string& name) const;
  // Of a figure that could not be measured; else empty.
  std::string why_missing(const std::string& name) const;
  // "median [min..max]", or why not.
  std::string shown(const std::string& name) const;
  // "at least 3, met"; empty if it has no target.
  std::string verdict(const std::string& name) const;
  const std::vector<std::pair<std::string, std::string>>& facts() const { return facts_; }

  // `baseline`, unless empty: the same figures of another binary in the same repetitions; the table
  // then shows the ratio of each repetition to it.
  std::string table(const Report& baseline) const;
  std::string json() const;
  // What json() has written, with its targets.
  static Report from_json(const std::string& text);

 private:
  struct Figure {
    std::string name;
    std::string unit;
    std::vector<double> values;
    bool detail = false;
    std::string why_missing;
  };

  const Figure* find(const std::string& name) const;
  Figure& figure_for(const std::string& name, const std::string& unit);

  std::vector<std::pair<std::string, std::string>> facts_;
  std::vector<Figure> figures_;
  std::map<std::string, Target> targets_;
};

}  // namespace permit::bench
