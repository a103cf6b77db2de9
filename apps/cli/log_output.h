// Standard error as the log's end: takes whole lines and never waits for whoever reads them. What
// does not fit is kept, up to a bound; what comes beyond it is dropped, and counted. Belongs to one
// thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "orchestrator/protocol/log.h"

namespace permit::cli {

class LogOutput {
 public:
  explicit LogOutput(int descriptor);
  LogOutput(const LogOutput&) = delete;
  LogOutput& operator=(const LogOutput&) = delete;

  bool is_terminal() const { return kind_ == Kind::terminal; }
  // That systemd's journal reads it, for which each line may begin with its priority.
  bool is_journal() const;

  void take(std::string_view lines);
  // Keeps everything until the next go_on(): others have something to say first.
  void hold() { is_held_ = true; }
  // Writes what could not be written before, if it can be by now.
  void go_on();
  // How many lines were dropped, once there is room again to say so; then it begins to count anew.
  std::int64_t take_dropped();
  // The last words: waits a little for a reader.
  void finish();

 private:
  enum class Kind : std::uint8_t { file, pipe, socket, terminal };

  void write_pending();
  bool takes_some() const;
  bool write_some();

  const int descriptor_;
  Kind kind_ = Kind::file;
  bool is_held_ = false;
  bool is_closed_ = false;  // nobody reads it any more
  std::string pending_;     // whole lines, but for what has gone of the first
  std::int64_t dropped_ = 0;
};

// What journald takes from the front of a line: "<4>".
std::string_view priority_of(LogLine::Level level);

}  // namespace permit::cli
