// The configuration of `permit server start`, TOML:
//
//   [server]
//   listen = "127.0.0.1:7376"
//   database = "/var/lib/permit/permit.db"
//   retention = "72h"
//
//   [log]
//   level = "info"
//
//   [pools.gpu-pool]
//   capacity = 4
//   devices = { 0 = "GPU-8932f937", 1 = "GPU-0b1f2c3d" }
//   order = "fair"
#pragma once

#include <string>

#include "apps/cli/server_command.h"

namespace permit::cli {

// What the file says, over `options`. Throws UsageError with file and line: not TOML, an unknown
// key (with the nearest known one), a value that does not fit, a bare number for a duration.
void read_server_config(const std::string& path, ServerOptions& options);

// "127.0.0.1:7376", "[::1]:7376". Throws UsageError, with `what` in front.
void parse_listen(const std::string& what, const std::string& text, ServerOptions& options);

}  // namespace permit::cli
