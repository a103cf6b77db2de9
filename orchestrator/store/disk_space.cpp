#include "orchestrator/store/disk_space.h"

#include <sys/statvfs.h>

#include <cstdint>

namespace permit::store {

std::string disk_obstacle(const std::string& file) {
  constexpr std::uint64_t bytes_min = std::uint64_t{1024} * 1024;
  struct statvfs disk = {};
  if (statvfs(file.c_str(), &disk) != 0) return "";
  if ((disk.f_flag & ST_RDONLY) != 0) return "the file system of the database is read-only";
  const std::uint64_t left = std::uint64_t{disk.f_bavail} * disk.f_frsize;
  if (left >= bytes_min) return "";
  return "the disk of the database has " + std::to_string(left / 1024) + " KiB left";
}

}  // namespace permit::store
