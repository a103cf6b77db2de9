// The processes under load: the real server, and a bare echo over the same HTTP code.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace permit::bench {

class Process {
 public:
  virtual ~Process();  // kills it if it still runs
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  std::uint16_t port() const { return port_; }
  // Killed as by a crash.
  void kill();

 protected:
  Process() = default;

  pid_t pid_ = -1;
  std::uint16_t port_ = 0;
};

class ServerProcess : public Process {
 public:
  // Runs `binary server start` on a free port; listens when it returns.
  ServerProcess(const std::string& binary, const std::string& database);

  // As an operator would; throws unless it exits with 0.
  void stop();

  double resident_bytes() const;
  double cpu_seconds() const;
};

// http::Server with a handler that sends the body back, in a process of its own.
class EchoProcess : public Process {
 public:
  EchoProcess();
};

}  // namespace permit::bench
