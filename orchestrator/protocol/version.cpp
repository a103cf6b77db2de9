#include "orchestrator/protocol/version.h"

namespace permit {

const char* const version = PERMIT_VERSION;

#ifdef __clang__
const char* const compiler = "clang " __clang_version__;
#else
const char* const compiler = "g++ " __VERSION__;
#endif

}  // namespace permit
