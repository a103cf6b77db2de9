// What a server runs with, setting by setting, and where each came from; for /api/v1/server.
#pragma once

#include <vector>

#include "apps/cli/server_command.h"
#include "orchestrator/protocol/server_info.h"

namespace permit::cli {

// By the names that the configuration file has for them; what it cannot say as its flag is called.
std::vector<SettingInfo> settings_in_force(const ServerOptions& options);

}  // namespace permit::cli
