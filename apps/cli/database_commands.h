// `permit server check --database` and `permit server backup`: what is done with a database's file.
#pragma once

#include <string>

#include "apps/cli/session.h"

namespace permit::cli {

// Where a service keeps its data unless it is told: systemd says, else as other programs of a user
// do. The directory may not exist yet.
std::string default_database();

// Both return the process's exit code.
int check_database(Session& session, const std::string& file);
int back_up_database(Session& session, const std::string& file, const std::string& to);

}  // namespace permit::cli
