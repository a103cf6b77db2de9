// The `permit` command.
#include "apps/cli/session.h"

int main(int argc, char** argv) {
  return permit::cli::run_command_line(std::vector<std::string>(argv + 1, argv + argc));
}
