// API keys of a database that no server runs on: the first one has to come from somewhere. Nothing
// else of the file is touched, and nothing that is due in it is done.
#pragma once

#include <string>

#include "orchestrator/protocol/api_keys.h"

namespace permit::cli {

// All take the file's lock, and throw StoreLocked, a sentence that says whose it is, if a server
// runs on it. What they return from is on disk. Throw Error as the calls of the server do.

// Makes the file if it is not there.
CreateApiKeyResponse create_api_key_in(const std::string& database,
                                       const CreateApiKeyRequest& request);
ListApiKeysResponse list_api_keys_in(const std::string& database);
ApiKeyInfo revoke_api_key_in(const std::string& database, const RevokeApiKeyRequest& request);

}  // namespace permit::cli
