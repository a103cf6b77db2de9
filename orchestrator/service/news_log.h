// The log's lines on what a batch has brought about, after its commit: each transition once.
#pragma once

#include "orchestrator/protocol/log.h"
#include "orchestrator/service/news.h"
#include "orchestrator/service/run_cache.h"

namespace permit::service {

// `now`: of the batch.
void log_news(Log& log, const News& news, RunCache& runs, Time now);

}  // namespace permit::service
