#include "apps/cli/log_options.h"

#include <unistd.h>

#include <algorithm>

#include "apps/cli/settings.h"

namespace permit::cli {

const std::vector<std::string>& log_levels() {
  static const std::vector<std::string> levels = {"debug", "info", "warn", "error"};
  return levels;
}

const std::vector<std::string>& log_formats() {
  static const std::vector<std::string> formats = {"auto", "json", "text"};
  return formats;
}

std::vector<Flag> log_flags() {
  return {{"log-level", 0, ValueType::choice, "LEVEL",
           "log what is at least this grave ($PERMIT_LOG_LEVEL, else info); SIGUSR1 toggles debug",
           Completes::choices, log_levels()},
          {"log-format", 0, ValueType::choice, "FORMAT",
           "how a line looks ($PERMIT_LOG_FORMAT, else auto: text on a terminal, json elsewhere)",
           Completes::choices, log_formats()}};
}

void check_log_choice(const std::string& place, const std::string& value,
                      const std::vector<std::string>& choices) {
  if (std::find(choices.begin(), choices.end(), value) != choices.end()) return;
  std::string names;
  for (const std::string& choice : choices) names += (names.empty() ? "" : ", ") + choice;
  throw UsageError(place + " is one of " + names + ", not \"" + value + "\"");
}

void read_log_options(const Arguments& arguments, LogOptions& options, const Origin& origin) {
  const auto read = [&](const std::string& flag, const std::string& variable,
                        const std::vector<std::string>& choices, std::string& value) {
    if (const auto given = environment_variable(variable)) {
      check_log_choice(variable, *given, choices);
      value = *given;
      origin(flag, "environment");
    }
    if (const auto given = arguments.text(flag)) {
      value = *given;
      origin(flag, "flag");
    }
  };
  read("log-level", "PERMIT_LOG_LEVEL", log_levels(), options.level);
  read("log-format", "PERMIT_LOG_FORMAT", log_formats(), options.format);
}

namespace {

LogFormat format_of(const LogOptions& options, const LogOutput& output) {
  if (options.format == "auto") return output.is_terminal() ? LogFormat::text : LogFormat::json;
  return options.format == "text" ? LogFormat::text : LogFormat::json;
}

}  // namespace

StandardLog::StandardLog(const LogOptions& options)
    : output(STDERR_FILENO),
      log(
          format_of(options, output), log_level_named(options.level).value(),
          [this](std::string_view lines) { output.take(lines); },
          output.is_journal() ? priority_of : Log::Begin()) {}

void StandardLog::flush() {
  log.flush();
  output.go_on();
  const std::int64_t dropped = output.take_dropped();
  if (dropped == 0) return;
  LogLine line;
  line.level = LogLine::Level::warn;
  line.event = "log_lines_dropped";
  line.msg = "nobody had read them in time";
  line.dropped = dropped;
  log.write(line);
  log.flush();
}

void StandardLog::finish() {
  flush();
  output.finish();
}

}  // namespace permit::cli
