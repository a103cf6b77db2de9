#include "apps/cli/run/voice.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <utility>

namespace permit::cli {

namespace {

constexpr std::chrono::seconds pause_between_lines{10};

void write_all(const std::string& text) {
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t written = write(STDERR_FILENO, text.data() + done, text.size() - done);
    if (written <= 0) return;
    done += static_cast<std::size_t>(written);
  }
}

bool can_rewrite() {
  const char* terminal = std::getenv("TERM");
  return isatty(STDERR_FILENO) == 1 && (terminal == nullptr || std::strcmp(terminal, "dumb") != 0);
}

std::size_t columns() {
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col < 20) return 80;
  return size.ws_col;
}

}  // namespace

Voice::Voice(Level level) : level_(level), is_terminal_(can_rewrite()) {}

void Voice::write_line(const std::string& text) {
  has_spoken_ = true;
  write_all((std::exchange(is_open_, false) ? "\npermit: " : "permit: ") + text + "\n");
}

void Voice::error(const std::string& text) { write_line(text); }

void Voice::say(const std::string& text) {
  if (level_ == Level::normal) write_line(text);
}

void Voice::progress(const std::string& text, const std::string& key, Instant now) {
  if (level_ == Level::quiet) return;
  if (is_terminal_) {
    std::string line = "permit: " + text;
    if (line.size() >= columns()) line.resize(columns() - 1);  // or it could not be taken back
    write_all((is_open_ ? "\r\033[K" : "") + line);
    is_open_ = true;
  } else if (!has_progress_ || (key != key_ && now >= written_ + pause_between_lines)) {
    write_line(text);
    key_ = key;
    written_ = now;
  }
  has_progress_ = true;
}

}  // namespace permit::cli
