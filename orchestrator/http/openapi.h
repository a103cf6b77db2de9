// The routes as an OpenAPI 3.1 document, for GET /openapi.json.
#pragma once

#include <span>
#include <string>

#include "orchestrator/http/routes.h"

namespace permit::http {

// Compact JSON.
std::string openapi_json(std::span<const Routes::Route> routes);

}  // namespace permit::http
