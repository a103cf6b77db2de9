// How a process that goes on logs: its settings, and the log that they make.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "apps/cli/command_line.h"
#include "apps/cli/log_output.h"

namespace permit::cli {

struct LogOptions {
  std::string level = "info";               // debug, info, warn or error
  std::string format = "auto";              // json or text; auto: text on a terminal
  Duration slow = std::chrono::seconds(1);  // an answer that takes this long gets a line
};

const std::vector<std::string>& log_levels();
const std::vector<std::string>& log_formats();

// --log-level and --log-format.
std::vector<Flag> log_flags();
// Throws UsageError: a value that is none of the choices, with `place` in front.
void check_log_choice(const std::string& place, const std::string& value,
                      const std::vector<std::string>& choices);

// Told of each setting that was given: its name and where, "flag" or "environment".
using Origin = std::function<void(const std::string& name, const std::string& origin)>;
// The environment, PERMIT_LOG_LEVEL and PERMIT_LOG_FORMAT, and the flags over it. Throws
// UsageError.
void read_log_options(const Arguments& arguments, LogOptions& options, const Origin& origin);

// Standard error and the log that ends there.
struct StandardLog {
  explicit StandardLog(const LogOptions& options);

  // Writes what is there, and says how much had to be dropped.
  void flush();
  void finish();

  LogOutput output;
  Log log;
};

}  // namespace permit::cli
