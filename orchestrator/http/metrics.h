// The server's counters as Prometheus text, for GET /metrics.
#pragma once

#include <string>

#include "orchestrator/service/service.h"

namespace permit::http {

std::string metrics_text(const service::Service& service);

}  // namespace permit::http
