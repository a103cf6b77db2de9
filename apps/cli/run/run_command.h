// `permit run -p POOL [flags] -- command args…`: from flags to RunOptions.
#pragma once

#include "apps/cli/run/run_options.h"
#include "apps/cli/session.h"

namespace permit::cli {

// Throws UsageError for what cannot be.
RunOptions run_options_of(const Session& session);

int run_run(Session& session);

}  // namespace permit::cli
