// The process of `permit run` that the shell knows: it passes on signals, the terminal and job
// control, and ends with the command's exit code. All else is the keeper's.
#pragma once

#include "apps/cli/run/run_options.h"

namespace permit::cli {

// Runs the command under a permit, which is never held without a process that guards it: if this
// one is killed the keeper stops the command, and if the keeper is, this one does. Returns the
// process's exit code. Has to be called before there are threads.
int run_under_permit(const RunOptions& options);

}  // namespace permit::cli
