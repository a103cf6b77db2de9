// Durations and times as people write and read them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "orchestrator/protocol/ids.h"

namespace permit::cli {

// "1h30m", "45s", "250ms", "2d", "0.5h": parts from large to small, each number with its unit.
// Throws UsageError, with `what` ("--lease") in it; a bare number is one ("say 45s or 45m").
Duration parse_human_duration(const std::string& what, std::string_view text);

// For reading: "36s", "1m 54s", "2h 05m", "3d 04h"; below a second "250ms".
std::string show_duration(Duration duration);
// As it is typed: "2m", "1h30m".
std::string type_duration(Duration duration);

}  // namespace permit::cli
