// The command line of the example programs: `--name value`, in any order.
#pragma once

#include <initializer_list>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>

namespace examples {

// Its message says what is wrong with the command line.
class BadArguments : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Arguments {
 public:
  // Those of argv from `first` on. Throws BadArguments, as all of this class, for anything else
  // than one of `known` and a value.
  Arguments(int argc, char** argv, int first, std::initializer_list<std::string_view> known) {
    for (int i = first; i < argc; i += 2) {
      const std::string name = argv[i];
      bool is_known = false;
      for (const std::string_view one : known) is_known = is_known || name == one;
      if (!is_known) throw BadArguments("there is no option " + name + " here");
      if (i + 1 == argc) throw BadArguments(name + " lacks its value");
      values_[name] = argv[i + 1];
    }
  }

  std::string text(const std::string& name, const std::string& otherwise) const {
    const auto found = values_.find(name);
    return found == values_.end() ? otherwise : found->second;
  }
  std::string required(const std::string& name) const {
    const auto found = values_.find(name);
    if (found == values_.end()) throw BadArguments(name + " is missing");
    return found->second;
  }
  double number(const std::string& name, double otherwise) const {
    const auto found = values_.find(name);
    if (found == values_.end()) return otherwise;
    std::size_t end = 0;
    double value = 0;
    try {
      value = std::stod(found->second, &end);
    } catch (const std::logic_error&) {
      end = 0;
    }
    if (end == 0 || end != found->second.size() || !(value >= 0 && value <= 1e6)) {
      throw BadArguments(name + " is to be a number up to a million");
    }
    return value;
  }
  int count(const std::string& name, int otherwise) const {
    const double value = number(name, otherwise);
    const int whole = static_cast<int>(value);
    if (whole != value) throw BadArguments(name + " is to be a whole number");
    return whole;
  }

 private:
  std::map<std::string, std::string> values_;
};

}  // namespace examples
