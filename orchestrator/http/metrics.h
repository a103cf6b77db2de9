// GET /metrics: the server's counters and how things are, in one text. docs/monitoring.md says what
// each of them means, and a test compares.
#pragma once

#include <string>

#include "orchestrator/http/exposition.h"
#include "orchestrator/http/request_metrics.h"
#include "orchestrator/service/reads.h"
#include "orchestrator/service/service.h"

namespace permit::http {

// Where the numbers are.
struct MetricSources {
  service::Service& service;
  const service::Reads& reads;
  const RequestMetrics& requests;
  std::size_t event_streams = 0;
  bool per_slot = false;  // also a series for each slot
};

std::string metrics_text(const MetricSources& sources, Exposition::Format format);

// What every process tells Prometheus of itself.
void write_process_metrics(Exposition& out);

}  // namespace permit::http
