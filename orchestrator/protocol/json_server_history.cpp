// The codec for server_history.h.
#include "orchestrator/protocol/json_codec.h"
#include "orchestrator/protocol/server_history.h"

namespace permit {

PERMIT_JSON(ServerHistory)

}  // namespace permit
