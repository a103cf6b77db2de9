// What --report writes: how a run under a permit went, as one JSON object.
#pragma once

#include <optional>
#include <string>

#include "apps/cli/run/hold.h"

namespace permit::cli {

struct RunReport {
  const RunOptions& options;
  int exit_code = 0;
  Duration waited{};
  const AcquireResponse* grant = nullptr;  // none: it was not granted
  const HoldEnd* end = nullptr;
  std::string message;  // why not
};

std::string report_text(const RunReport& report);
// Replaces the file as a whole. Throws Error REPORT_FAILED.
void write_report(const RunReport& report);

}  // namespace permit::cli
