// What a service tells the service manager that started it, by datagrams to $NOTIFY_SOCKET: ready,
// how it is, still alive, stopping. Without one, as when somebody types the command, nothing is
// sent. Belongs to one thread.
#pragma once

#include <sys/socket.h>

#include <chrono>
#include <optional>
#include <string>

namespace permit::cli {

class ServiceManager {
 public:
  using Clock = std::chrono::steady_clock;

  // From NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID.
  ServiceManager();
  ~ServiceManager();
  ServiceManager(const ServiceManager&) = delete;
  ServiceManager& operator=(const ServiceManager&) = delete;

  bool listens() const { return socket_ >= 0; }

  // Requests are answered from now on.
  void ready();
  // One line on how it is; sent when it has changed. For the caller to ask for once a second.
  void status(const std::string& text);
  bool wants_status(Clock::time_point now) const;
  // To be called from the loop whose standstill is to be noticed: tells the watchdog when half of
  // its time is over, which is at next_beat().
  void beat(Clock::time_point now);
  std::optional<Clock::time_point> next_beat() const { return next_beat_; }
  // It ends, and has this long for it from now; may be called again.
  void stopping(std::chrono::seconds patience);

 private:
  bool send(const std::string& message, int flags = MSG_DONTWAIT) const;

  int socket_ = -1;
  Clock::duration beat_interval_{};
  std::optional<Clock::time_point> next_beat_;
  std::string status_;
  Clock::time_point status_at_{};
};

}  // namespace permit::cli
