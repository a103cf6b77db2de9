// Whether a file's disk can be written to, as far as that can be told without trying.
#pragma once

#include <string>

namespace permit::store {

// A sentence if it cannot: read-only, or with less room than a server needs to go on. Empty:
// nothing is known to be in the way.
std::string disk_obstacle(const std::string& file);

}  // namespace permit::store
