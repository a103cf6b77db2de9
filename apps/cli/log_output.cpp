#include "apps/cli/log_output.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstddef>
#include <thread>
#include <utility>

#include "apps/cli/settings.h"

namespace permit::cli {

namespace {

constexpr std::size_t pending_bytes_max = std::size_t{64} * 1024;
constexpr std::chrono::seconds finish_time(1);

}  // namespace

LogOutput::LogOutput(int descriptor) : descriptor_(descriptor) {
  struct stat status = {};
  if (isatty(descriptor) == 1) {
    kind_ = Kind::terminal;
  } else if (fstat(descriptor, &status) == 0 && S_ISFIFO(status.st_mode)) {
    kind_ = Kind::pipe;
  } else if (S_ISSOCK(status.st_mode)) {
    kind_ = Kind::socket;
  }
}

// "device:inode" of what systemd has given us as standard error.
bool LogOutput::is_journal() const {
  const auto stream = environment_variable("JOURNAL_STREAM");
  struct stat status = {};
  if (!stream || fstat(descriptor_, &status) != 0) return false;
  return *stream == std::to_string(status.st_dev) + ":" + std::to_string(status.st_ino);
}

void LogOutput::take(std::string_view lines) {
  while (!lines.empty()) {
    const std::string_view line = lines.substr(0, lines.find('\n') + 1);
    lines.remove_prefix(line.size());
    if (pending_.size() + line.size() > pending_bytes_max) write_pending();
    if (is_closed_ || pending_.size() + line.size() > pending_bytes_max) {
      ++dropped_;
    } else {
      pending_ += line;
    }
  }
  write_pending();
}

void LogOutput::go_on() {
  is_held_ = false;
  write_pending();
}

void LogOutput::write_pending() {
  while (!is_held_ && !pending_.empty() && !is_closed_ && takes_some()) {
    if (!write_some()) return;
  }
}

std::int64_t LogOutput::take_dropped() {
  if (!pending_.empty() || is_closed_) return 0;
  return std::exchange(dropped_, 0);
}

// A full disk says that it takes some, and takes nothing.
void LogOutput::finish() {
  constexpr auto turn = std::chrono::milliseconds(20);
  const auto end = std::chrono::steady_clock::now() + finish_time;
  go_on();
  while (!pending_.empty() && !is_closed_ && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(turn);
    go_on();
  }
}

// A file always does.
bool LogOutput::takes_some() const {
  if (kind_ == Kind::file) return true;
  pollfd ready{descriptor_, POLLOUT, 0};
  return poll(&ready, 1, 0) == 1;
}

// False if nothing has gone. A pipe that takes some takes PIPE_BUF bytes at least, without waiting.
bool LogOutput::write_some() {
  const std::size_t size =
      kind_ == Kind::file ? pending_.size() : std::min<std::size_t>(pending_.size(), PIPE_BUF);
  const ssize_t sent = kind_ == Kind::socket
                           ? send(descriptor_, pending_.data(), size, MSG_DONTWAIT | MSG_NOSIGNAL)
                           : write(descriptor_, pending_.data(), size);
  if (sent > 0) {
    pending_.erase(0, static_cast<std::size_t>(sent));
    return true;
  }
  if (sent < 0 && errno == EINTR) return true;
  if (sent < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != ENOSPC) {
    is_closed_ = true;
    dropped_ += std::count(pending_.begin(), pending_.end(), '\n');
    pending_.clear();
  }
  return false;
}

std::string_view priority_of(LogLine::Level level) {
  static constexpr std::array<std::string_view, 4> priorities = {"<7>", "<6>", "<4>", "<3>"};
  return priorities[static_cast<std::size_t>(level)];
}

}  // namespace permit::cli
