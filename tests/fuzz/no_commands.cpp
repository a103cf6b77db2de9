// The command's table of commands, empty: what reads configurations refers to it, and with the real
// one would come all of the command.
#include "apps/cli/command.h"

namespace permit::cli {

const std::vector<Flag>& global_flags() {
  static const std::vector<Flag> none;
  return none;
}

const std::vector<Command>& commands() {
  static const std::vector<Command> none;
  return none;
}

}  // namespace permit::cli
