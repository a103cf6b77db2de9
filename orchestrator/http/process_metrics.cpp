// What the kernel says of this process, under the names that all programs use.
#include <dirent.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ctime>
#include <fstream>
#include <sstream>

#include "orchestrator/http/metrics.h"

namespace permit::http {

namespace {

using Type = Exposition::Type;

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

// Newer kernels tell the number as the directory's size; with 16,000 connections to list them takes
// milliseconds.
std::int64_t open_files() {
  struct stat directory{};
  if (stat("/proc/self/fd", &directory) == 0 && directory.st_size > 0) return directory.st_size;
  DIR* entries = opendir("/proc/self/fd");
  if (entries == nullptr) return 0;
  std::int64_t count = -3;  // ".", ".." and the one that reads
  while (readdir(entries) != nullptr) ++count;
  closedir(entries);
  return count;
}

struct Memory {
  std::int64_t virtual_bytes = 0;
  std::int64_t resident_bytes = 0;
};

Memory memory() {
  std::int64_t pages = 0;
  std::int64_t resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  const std::int64_t page = sysconf(_SC_PAGESIZE);
  return {pages * page, resident * page};
}

// Since 1970: when the machine started, and how many ticks later the process did.
double start_time() {
  std::string stat;
  std::getline(std::ifstream("/proc/self/stat"), stat);
  std::istringstream fields(stat.substr(std::min(stat.rfind(')') + 1, stat.size())));
  std::string field;
  for (int i = 3; i < 22; ++i) fields >> field;  // the first behind the name is the third of all
  std::int64_t ticks = 0;
  fields >> ticks;
  timespec wall{};
  timespec boot{};
  clock_gettime(CLOCK_REALTIME, &wall);
  clock_gettime(CLOCK_BOOTTIME, &boot);
  const double started = static_cast<double>(wall.tv_sec - boot.tv_sec) +
                         static_cast<double>(ticks) / static_cast<double>(sysconf(_SC_CLK_TCK));
  return started;
}

}  // namespace

void write_process_metrics(Exposition& out) {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  out.family("process_cpu_seconds_total", Type::counter, "Processor time, of user and system.");
  out.sample(Labels(), seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime));
  const Memory used = memory();
  out.family("process_resident_memory_bytes", Type::gauge, "Memory that it has.");
  out.sample(Labels(), used.resident_bytes);
  out.family("process_virtual_memory_bytes", Type::gauge, "Addresses that it has.");
  out.sample(Labels(), used.virtual_bytes);
  out.family("process_open_fds", Type::gauge, "File descriptors that are open.");
  out.sample(Labels(), open_files());
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  out.family("process_max_fds", Type::gauge, "How many may be.");
  out.sample(Labels(), static_cast<double>(limit.rlim_cur));
  static const double started = start_time();
  out.family("process_start_time_seconds", Type::gauge, "When the process began, since 1970.");
  out.sample(Labels(), started);
}

}  // namespace permit::http
