// What every command needs to know before it can do anything: which server, who asks, how to print.
// Each value comes from a flag, else the environment, else a profile of the configuration file,
// else its default, and remembers which: `permit config list --show-origin`.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "apps/cli/command_line.h"

namespace permit::cli {

struct Setting {
  std::string key;          // as in the file: "address"; its flag is the same with dashes
  std::string environment;  // "PERMIT_ADDRESS"; empty: none
  std::string otherwise;    // the default
  std::string help;
  std::vector<std::string> choices{};  // empty: any text
};
const std::vector<Setting>& known_settings();

class Settings {
 public:
  struct Value {
    std::string text;
    std::string origin;  // "--address", "PERMIT_ADDRESS", "profile default in FILE", "default"
  };
  using Environment = std::function<std::optional<std::string>(const std::string&)>;

  // Throws UsageError: a file that cannot be read, an unknown key with the nearest known one, a
  // value that does not fit, a profile that does not exist, all with their place.
  Settings(const Arguments& arguments, const Environment& environment);

  const Value& get(const std::string& key) const { return values_.at(key); }
  const std::string& text(const std::string& key) const { return values_.at(key).text; }
  const std::string& file() const { return file_; }  // whether it exists or not
  const std::string& profile() const { return profile_; }

 private:
  std::map<std::string, Value> values_;
  std::string file_;
  std::string profile_;
};

// The environment of this process; empty variables count as absent.
std::optional<std::string> environment_variable(const std::string& name);

}  // namespace permit::cli
