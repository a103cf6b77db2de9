#include "orchestrator/http/request_log.h"

#include <chrono>
#include <optional>
#include <utility>

#include "orchestrator/service/secrets.h"

namespace permit::http {

std::shared_ptr<const TraceContext> trace_of(const Request& request) {
  const std::string* only = nullptr;
  for (const Header& header : request.headers) {
    if (header.name != "traceparent") continue;
    if (only != nullptr) return nullptr;
    only = &header.value;
  }
  if (only == nullptr) return nullptr;
  auto trace = parse_traceparent(*only);
  return trace ? std::make_shared<const TraceContext>(std::move(*trace)) : nullptr;
}

// Passes everything on, and looks at the answer on its way out.
class RequestLog::Watched final : public Exchange {
 public:
  Watched(RequestLog& log, std::shared_ptr<Exchange> exchange)
      : log_(log), exchange_(std::move(exchange)) {}

  Request& request() override { return exchange_->request(); }
  std::uint64_t connection() const override { return exchange_->connection(); }

  void reply(Response response) override {
    note(response);
    exchange_->reply(std::move(response));
  }

  std::unique_ptr<Stream> stream(Response response) override {
    return exchange_->stream(std::move(response));
  }
  void on_gone(std::function<void()> callback) override {
    waits_ = true;
    exchange_->on_gone(std::move(callback));
  }
  void park() override {
    waits_ = true;
    if (!parked_) parked_ = asked_by(exchange_->request());
    exchange_->park();
  }

 private:
  using Clock = std::chrono::steady_clock;

  // What a line says of a request.
  struct Asked {
    std::string method;
    std::string path;
    std::shared_ptr<const TraceContext> trace;
  };
  static Asked asked_by(const Request& request) {
    return {request.method, request.path, trace_of(request)};
  }

  void note(const Response& response) {
    const auto took = Clock::now() - began_;
    // What is not offered, and a wait that has run out, are no failures of the server.
    const bool broken = response.status == 500 || response.status > 504;
    const bool failed = response.status >= 400;
    const bool slow = !waits_ && took >= log_.slow_;
    LogLine line;
    line.level = LogLine::Level::debug;
    if (slow || response.status == 503) line.level = LogLine::Level::warn;
    if (broken) line.level = LogLine::Level::error;
    if ((!failed && !slow) || !log_.log_.wants(line.level)) return;
    line.event = failed ? "request_failed" : "request_slow";
    const Asked asked = parked_ ? *parked_ : asked_by(exchange_->request());
    line.method = asked.method;
    const std::string path = service::without_api_keys(asked.path);
    line.path = path;
    line.key = response.key;
    line.status = response.status;
    line.took_ms = std::chrono::duration_cast<std::chrono::milliseconds>(took).count();
    const std::string error = service::without_api_keys(response.error);
    line.error = error;
    if (asked.trace) {
      line.trace_id = asked.trace->trace_id;
      line.span_id = asked.trace->span_id;
    }
    log_.log_.write(line);
  }

  RequestLog& log_;
  const std::shared_ptr<Exchange> exchange_;
  const Clock::time_point began_ = Clock::now();
  std::optional<Asked> parked_;  // of a request that is there no more
  bool waits_ = false;
};

std::shared_ptr<Exchange> RequestLog::watch(std::shared_ptr<Exchange> exchange) {
  return std::make_shared<Watched>(*this, std::move(exchange));
}

}  // namespace permit::http
