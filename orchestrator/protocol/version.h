// The version of Permit, the same for all of its parts; CMakeLists.txt has it.
#pragma once

namespace permit {

extern const char* const version;

}  // namespace permit
