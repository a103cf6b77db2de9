#include "tests/bench/machine.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <cstdlib>
#include <ctime>
#include <fstream>

#include "tests/bench/peers/systems.h"

namespace permit::bench {

namespace {

// What stands behind "name:" in a file of /proc.
std::string entry_of(const std::string& path, const std::string& name) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(name)) continue;
    const std::size_t at = line.find_first_not_of(" \t", line.find(':') + 1);
    return at == std::string::npos ? "" : line.substr(at);
  }
  return "unknown";
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  char text[16];
  std::strftime(text, sizeof text, "%Y-%m-%d", std::gmtime(&now));
  return text;
}

// Of others too: what runs beside a measurement spoils it.
std::string load_average() {
  double load = 0;
  if (getloadavg(&load, 1) != 1) return "unknown";
  return number(load);
}

}  // namespace

void add_machine(const std::string& commit, Report& report) {
  utsname system{};
  uname(&system);
  report.set_fact("measured on", today());
  report.set_fact("commit", commit);
  report.set_fact("cores", std::to_string(sysconf(_SC_NPROCESSORS_ONLN)));
  report.set_fact("processor", entry_of("/proc/cpuinfo", "model name"));
  report.set_fact("memory", entry_of("/proc/meminfo", "MemTotal"));
  report.set_fact("kernel", system.release);
  report.set_fact("load before", load_average());
  for (const auto& [name, version] : system_versions()) report.set_fact(name, version);
}

}  // namespace permit::bench
