// The `permit` command.
#include <fcntl.h>
#include <unistd.h>

#include "apps/cli/session.h"

namespace {

// Started with input, output or errors closed: whatever is opened first would take their place.
void open_standard_descriptors() {
  for (int descriptor = 0; descriptor <= STDERR_FILENO; ++descriptor) {
    if (fcntl(descriptor, F_GETFD) == -1) open("/dev/null", O_RDWR);
  }
}

}  // namespace

int main(int argc, char** argv) {
  open_standard_descriptors();
  return permit::cli::run_command_line(std::vector<std::string>(argv + 1, argv + argc));
}
