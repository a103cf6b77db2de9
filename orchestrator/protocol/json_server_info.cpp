// The codec for server_info.h.
#include "orchestrator/protocol/json_codec.h"
#include "orchestrator/protocol/server_info.h"

namespace permit {

PERMIT_JSON(Health)
PERMIT_JSON(ServerDescription)
PERMIT_JSON(SystemInfo)

}  // namespace permit
