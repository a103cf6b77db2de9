// The codec for pools.h and stream.h.
#include "orchestrator/protocol/json_codec.h"
#include "orchestrator/protocol/stream.h"

namespace permit {

PERMIT_JSON(SetPoolRequest)
PERMIT_JSON(PoolRequest)
PERMIT_JSON(ListPoolsRequest)
PERMIT_JSON(DrainRequest)
PERMIT_JSON(PoolInfo)
PERMIT_JSON(ListPoolsResponse)
PERMIT_JSON(ListWaitersResponse)
PERMIT_JSON(WhyResponse)
PERMIT_JSON(AcquireRequest)
PERMIT_JSON(AcquireResponse)
PERMIT_JSON(HolderRequest)
PERMIT_JSON(RenewResponse)
PERMIT_JSON(PermitInfo)
PERMIT_JSON(SlotInfo)
PERMIT_JSON(WaiterInfo)
PERMIT_JSON(TaskQueueInfo)
PERMIT_JSON(ListPermitsRequest)
PERMIT_JSON(ListPermitsResponse)
PERMIT_JSON(PermitQuery)
PERMIT_JSON(WaiterRequest)
PERMIT_JSON(RemoveWaiterRequest)
PERMIT_JSON(ListTaskQueuesRequest)
PERMIT_JSON(ListTaskQueuesResponse)
PERMIT_JSON(GetServerStatusRequest)
PERMIT_JSON(ServerStatus)
PERMIT_JSON(ForceReleaseRequest)
PERMIT_JSON(StreamSnapshot)
PERMIT_JSON(StreamChanges)
PERMIT_JSON(StreamPing)
PERMIT_JSON(AdvanceRequest)
PERMIT_JSON(AdvanceResponse)

}  // namespace permit
