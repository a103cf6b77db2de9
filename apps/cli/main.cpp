// The `permit` command.
#include <fcntl.h>
#include <unistd.h>

#include <cstring>
#include <string_view>

#include "apps/cli/session.h"

namespace {

// Started with input, output or errors closed: whatever is opened first would take their place.
void open_standard_descriptors() {
  for (int descriptor = 0; descriptor <= STDERR_FILENO; ++descriptor) {
    if (fcntl(descriptor, F_GETFD) == -1) open("/dev/null", O_RDWR);
  }
}

// A key on the command line is seen by everybody who lists processes: not for longer than needed.
void hide_api_key(int argc, char** argv) {
  constexpr std::string_view flag = "--api-key";
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--") return;
    if (word == flag && i + 1 < argc) {
      std::memset(argv[i + 1], 'x', std::strlen(argv[i + 1]));
    } else if (word.starts_with(flag) && word.substr(flag.size()).starts_with('=')) {
      std::memset(argv[i] + flag.size() + 1, 'x', word.size() - flag.size() - 1);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  open_standard_descriptors();
  const std::vector<std::string> words(argv + 1, argv + argc);
  hide_api_key(argc, argv);
  return permit::cli::run_command_line(words);
}
