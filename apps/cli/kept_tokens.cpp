#include "apps/cli/kept_tokens.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "apps/cli/settings.h"

namespace permit::cli {

namespace {

std::string directory() {
  if (const auto state = environment_variable("XDG_STATE_HOME")) return *state + "/permit/holds";
  return environment_variable("HOME").value_or("") + "/.local/state/permit/holds";
}

std::string path_of(Fence fence) { return directory() + "/" + std::to_string(fence.value); }

}  // namespace

bool keep_token(Fence fence, const std::string& token) {
  std::error_code failed;
  std::filesystem::create_directories(directory(), failed);
  const int file =
      open(path_of(fence).c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, S_IRUSR | S_IWUSR);
  if (file < 0) return false;
  const bool written =
      write(file, token.data(), token.size()) == static_cast<ssize_t>(token.size());
  return close(file) == 0 && written;
}

std::string kept_token(Fence fence) {
  std::string token;
  std::ifstream(path_of(fence)) >> token;
  return token;
}

void forget_token(Fence fence) { unlink(path_of(fence).c_str()); }

}  // namespace permit::cli
