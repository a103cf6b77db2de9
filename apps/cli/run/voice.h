// What `permit run` says on stderr, beside the command's own output.
#pragma once

#include <string>

#include "apps/cli/run/hold_plan.h"

namespace permit::cli {

class Voice {
 public:
  enum class Level { normal, quiet };
  explicit Voice(Level level);

  // Why permit ends with a code of its own. Said in any case.
  void error(const std::string& text);
  // Not if quiet.
  void say(const std::string& text);
  // A line that is true for now. On a terminal the next one takes its place; elsewhere it is
  // written again when `key` has changed, but not all the time.
  void progress(const std::string& text, const std::string& key, Instant now);
  bool has_progress() const { return has_progress_; }
  bool has_spoken() const { return has_spoken_; }
  bool is_terminal() const { return is_terminal_; }

 private:
  void write_line(const std::string& text);

  const Level level_;
  const bool is_terminal_;
  bool is_open_ = false;  // the cursor stands behind a progress line
  bool has_progress_ = false;
  bool has_spoken_ = false;
  std::string key_;
  Instant written_{};
};

}  // namespace permit::cli
