#include "orchestrator/store/ballast.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

namespace permit::store {

namespace {

std::int64_t free_bytes(const std::string& path) {
  std::error_code failed;
  std::filesystem::path directory = std::filesystem::path(path).parent_path();
  if (directory.empty()) directory = ".";
  const auto space = std::filesystem::space(directory, failed);
  return failed ? 0 : static_cast<std::int64_t>(space.available);
}

}  // namespace

Ballast::Ballast(std::string path, std::int64_t bytes) : path_(std::move(path)), bytes_(bytes) {
  struct stat found{};
  is_there_ = stat(path_.c_str(), &found) == 0 && found.st_size == bytes_ &&
              found.st_blocks * 512 >= bytes_;
  if (!is_there_) make();
}

bool Ballast::drop() noexcept {
  if (!is_there_) return false;
  is_there_ = false;
  return unlink(path_.c_str()) == 0;
}

bool Ballast::make() noexcept {
  if (is_there_) return true;
  if (free_bytes(path_) < 2 * bytes_) return false;
  const int file =
      open(path_.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR);
  if (file < 0) return false;
  // Blocks of its own, not a hole.
  is_there_ = posix_fallocate(file, 0, bytes_) == 0;
  close(file);
  if (!is_there_) unlink(path_.c_str());
  return is_there_;
}

}  // namespace permit::store
