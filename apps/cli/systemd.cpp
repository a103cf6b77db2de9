#include "apps/cli/systemd.h"

#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>

#include "apps/cli/settings.h"

namespace permit::cli {

namespace {

// The number in the environment; none, if it is not one.
std::optional<long long> environment_number(const char* name) {
  const std::string text = environment_variable(name).value_or("");
  if (text.empty() || text.size() > 18) return std::nullopt;
  if (text.find_first_not_of("0123456789") != std::string::npos) return std::nullopt;
  return std::stoll(text);
}

// A socket that sends to this path, or to this abstract name if it begins with an @.
int connected_socket(const std::string& path) {
  sockaddr_un address{};
  if (path.size() < 2 || path.size() >= sizeof address.sun_path) return -1;
  if (path[0] != '/' && path[0] != '@') return -1;
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  if (path[0] == '@') address.sun_path[0] = '\0';
  const int made = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (made < 0) return -1;
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size());
  if (connect(made, reinterpret_cast<const sockaddr*>(&address), size) == 0) return made;
  close(made);
  return -1;
}

}  // namespace

ServiceManager::ServiceManager() {
  const auto path = environment_variable("NOTIFY_SOCKET");
  if (path) socket_ = connected_socket(*path);
  if (!listens()) return;
  const auto watchdog = environment_number("WATCHDOG_USEC");
  const auto watched = environment_number("WATCHDOG_PID");
  if (!watchdog || *watchdog < 2 || (watched && *watched != getpid())) return;
  beat_interval_ = std::chrono::microseconds(*watchdog / 2);
  next_beat_ = Clock::now();
}

ServiceManager::~ServiceManager() {
  if (listens()) close(socket_);
}

// Does not wait, or a service manager that hangs would stop the server: false, if there is no room.
bool ServiceManager::send(const std::string& message, int flags) const {
  return listens() && ::send(socket_, message.data(), message.size(), MSG_NOSIGNAL | flags) >= 0;
}

void ServiceManager::ready() { send("READY=1", 0); }  // which waits: it is said only once

bool ServiceManager::wants_status(Clock::time_point now) const {
  return listens() && now >= status_at_ + std::chrono::seconds(1);
}

void ServiceManager::status(const std::string& text) {
  status_at_ = Clock::now();
  if (text != status_ && send("STATUS=" + text)) status_ = text;
}

void ServiceManager::beat(Clock::time_point now) {
  if (!next_beat_ || now < *next_beat_) return;
  next_beat_ = now + (send("WATCHDOG=1") ? beat_interval_ : beat_interval_ / 8);
}

void ServiceManager::stopping(std::chrono::seconds patience) {
  const std::chrono::microseconds longer = patience;
  send("STOPPING=1\nSTATUS=stopping\nEXTEND_TIMEOUT_USEC=" + std::to_string(longer.count()));
}

}  // namespace permit::cli
