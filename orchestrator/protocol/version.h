// The version of Permit, the same for all of its parts; CMakeLists.txt has it.
#pragma once

namespace permit {

extern const char* const version;
extern const char* const compiler;  // that this program was made with

}  // namespace permit
