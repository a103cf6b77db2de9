// The codec for api_keys.h.
#include "orchestrator/protocol/api_keys.h"
#include "orchestrator/protocol/json_codec.h"

namespace permit {

PERMIT_JSON(ApiKeyInfo)
PERMIT_JSON(CreateApiKeyRequest)
PERMIT_JSON(CreateApiKeyResponse)
PERMIT_JSON(ListApiKeysRequest)
PERMIT_JSON(ListApiKeysResponse)
PERMIT_JSON(RevokeApiKeyRequest)
PERMIT_JSON(LoginRequest)
PERMIT_JSON(LoginResponse)
PERMIT_JSON(LogoutRequest)

}  // namespace permit
