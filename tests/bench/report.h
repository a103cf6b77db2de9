// Figures of several repetitions: median [min..max], beside the target each has to meet.
#pragma once

#include <map>
#include <string>
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

class Report {
 public:
  // A value of this repetition. Figures are shown in the order in which they were first added.
  void add(const std::string& name, const std::string& unit, double value);
  void set_target(const std::string& figure, Target target) { targets_[figure] = target; }
  // Of the last repetition.
  double last(const std::string& name) const;

  // `baseline`, unless empty: the same figures of another binary in the same repetitions; the table
  // then shows the ratio of each repetition to it.
  std::string table(const Report& baseline) const;
  std::string json() const;

 private:
  struct Figure {
    std::string name;
    std::string unit;
    std::vector<double> values;
  };

  const Figure* find(const std::string& name) const;
  std::string verdict(const Figure& figure) const;

  std::vector<Figure> figures_;
  std::map<std::string, Target> targets_;
};

}  // namespace permit::bench
