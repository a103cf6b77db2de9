// The two configuration files: taken, or refused with the place of the mistake. Byte 0: the
// server's or the client's; then the file.
#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "apps/cli/command_line.h"
#include "apps/cli/config_file.h"
#include "apps/cli/server_config.h"
#include "apps/cli/server_settings.h"
#include "tests/fuzz/targets.h"

namespace permit::fuzz {

namespace {

// A file in memory, of which there is one for all inputs.
std::string file_with(std::string_view text) {
  static const int file = memfd_create("config", 0);
  promise(file >= 0 && ftruncate(file, 0) == 0, "there is a file");
  const auto written = pwrite(file, text.data(), text.size(), 0);
  promise(written == static_cast<ssize_t>(text.size()), "the file is written");
  return "/proc/self/fd/" + std::to_string(file);
}

}  // namespace

void config(std::string_view input) {
  if (input.empty()) return;
  const std::string path = file_with(input.substr(1));
  try {
    if (input[0] == 's') {
      cli::ServerOptions options;
      cli::read_server_config(path, options);
      cli::settings_in_force(options);
    } else {
      for (const auto& [name, settings] : cli::read_profiles(path)) {
        for (const auto& [key, value] : settings) cli::check_setting("again", key, value);
      }
    }
  } catch (const cli::UsageError& error) {
    promise(std::string_view(error.what()).find(path) != std::string_view::npos,
            "a mistake has its place");
  }
}

}  // namespace permit::fuzz
