// The log: one line for each event, the same keys in the same order on every line, as JSON for
// programs or as text for a terminal. docs/logs.md lists the events and keys. Nothing that anybody
// can name may break a line or move a cursor.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "orchestrator/protocol/ids.h"

namespace permit {

// What a line tells; empty members are left out. The texts are looked at by write() only.
struct LogLine {
  enum class Level { debug, info, warn, error };

  Level level = Level::info;
  std::string_view event;  // snake_case; never reworded
  std::string_view msg;    // a sentence for a person

  std::string_view namespace_;
  std::string_view workflow_id;
  std::string_view run_id;
  std::string_view workflow_type;
  std::string_view task_queue;
  std::string_view pool;
  std::string_view slot;
  std::string_view outcome;
  std::string_view cause;
  bool possible_overlap = false;
  std::string_view holder;
  std::int64_t fence = 0;
  std::optional<std::int64_t> wait_ms;
  std::optional<std::int64_t> held_ms;
  std::string_view by;   // an operator
  std::string_view key;  // the API key's name; never its secret
  std::string_view reason;
  std::string_view method;
  std::string_view path;
  int status = 0;  // of an HTTP answer
  std::optional<std::int64_t> took_ms;
  std::string_view request_id;
  std::string_view trace_id;
  std::string_view span_id;
  std::int64_t dropped = 0;  // lines
  std::string_view error;
};

enum class LogFormat { json, text };

// `at`: microseconds, UTC. Without the line's end.
void append_json_line(const LogLine& line, Time at, std::string& out);
// "08:31:40 WARN permit_closed gpu-pool:1 lease_expired held=4m24s holder=train-vit-04"; the time
// is the local one.
void append_text_line(const LogLine& line, Time at, std::string& out);

std::string_view name_of(LogLine::Level level);
// "debug", "info", "warn", "error"; empty for anything else.
std::optional<LogLine::Level> log_level_named(std::string_view name);

// Where lines go. Belongs to one thread.
class Log {
 public:
  // Takes whole lines, each with its newline.
  using Output = std::function<void(std::string_view lines)>;

  // `begin`: what a line of this level begins with, such as a priority.
  using Begin = std::function<std::string_view(LogLine::Level)>;

  // Of lines of this level and graver ones. Neither write() nor flush() fails: what `output` cannot
  // pass on is its own affair, and whoever logs something has other work to do than to wait for
  // those who read it.
  Log(LogFormat format, LogLine::Level level, Output output, Begin begin = nullptr)
      : format_(format), level_(level), output_(std::move(output)), begin_(std::move(begin)) {}
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  bool wants(LogLine::Level level) const { return level >= level_; }
  LogLine::Level level() const { return level_; }
  void set_level(LogLine::Level level) { level_ = level; }

  // Kept until flush(), so that a batch costs one write.
  void write(const LogLine& line);
  void flush();

 private:
  const LogFormat format_;
  LogLine::Level level_;
  const Output output_;
  const Begin begin_;
  std::string lines_;
};

}  // namespace permit
