// The log's lines on requests: those that failed, and those that took long though they did not wait
// for anything to happen (long polls, lines, streams). Belongs to the server's thread.
#pragma once

#include <memory>

#include "orchestrator/http/message.h"
#include "orchestrator/protocol/ids.h"
#include "orchestrator/protocol/log.h"
#include "orchestrator/protocol/trace.h"

namespace permit::http {

// By its one traceparent, if that is in order; nullptr otherwise.
std::shared_ptr<const TraceContext> trace_of(const Request& request);

class RequestLog {
 public:
  // `slow`: from this on, an answer took long.
  RequestLog(Log& log, Duration slow) : log_(log), slow_(slow) {}

  // The same exchange, to be answered in its place.
  std::shared_ptr<Exchange> watch(std::shared_ptr<Exchange> exchange);

 private:
  class Watched;

  Log& log_;
  const Duration slow_;
};

}  // namespace permit::http
