#include "orchestrator/protocol/version.h"

namespace permit {

const char* const version = PERMIT_VERSION;

}  // namespace permit
