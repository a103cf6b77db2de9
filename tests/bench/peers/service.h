// A lock service as a process of its own, that ends with this one.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <cstdint>
#include <string>
#include <vector>

namespace permit::bench {

struct Launch {
  std::vector<std::string> command;
  std::string log;      // a file for what it prints
  std::string user;     // whom it runs as, if this runs as root; empty: as this
  std::string preload;  // a library in front of libc
  int end_signal = SIGKILL;
};

// Runs it and waits for its end; throws what it last printed unless it exits with 0.
void run_to_end(const Launch& launch);

class Service {
 public:
  // Listens at `port` when it returns; throws what it last printed if that does not happen.
  Service(const Launch& launch, std::uint16_t port);
  ~Service();
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  std::uint16_t port() const { return port_; }
  // Whether that library is in its memory.
  bool has_loaded(const std::string& library) const;

 private:
  pid_t pid_;
  std::uint16_t port_;
  int end_signal_;
};

// Hands a directory over to that user, if this runs as root.
void give_to(const std::string& directory, const std::string& user);

}  // namespace permit::bench
