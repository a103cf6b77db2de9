// What the server says of how it does: its metrics, now and in the last day.
#include "orchestrator/http/call.h"
#include "orchestrator/http/metrics.h"
#include "orchestrator/protocol/server_history.h"

namespace permit::http {

void Routes::add_metrics_routes() {
  add("GET", "/metrics",
      Doc(Access::read,
          "Counters and gauges, as Prometheus reads them; OpenMetrics for who accepts it")
          .sends("text/plain; version=0.0.4; charset=utf-8"),
      [this](Call& call) {
        const auto format = Exposition::format_for(call.exchange->request().header("accept"));
        const MetricSources sources{service_, reads_, *requests_, streams_.size(),
                                    options_.metrics_per_slot};
        Response response;
        response.content_type = Exposition::content_type(format);
        response.body = metrics_text(sources, format);
        call.exchange->reply(std::move(response));
      });
  add("GET", "/api/v1/server/history",
      Doc(Access::read,
          "How the metrics were in the last 15 minutes, by the second, or in the last day, by the "
          "minute")
          .query("step", {"1s", "60s"})
          .answers<ServerHistory>()
          .refuses({400}),
      [this](Call& call) {
        const auto history = ring_.history(call.parameter("step").value_or("1s"));
        if (!history) throw invalid_argument("PARAMETER_INVALID", "step must be 1s or 60s");
        call.done<ServerHistory>()(*history);
      });
}

void Routes::observe(Time now) {
  if (!ring_.is_due(now)) return;
  service::Observation observed;
  observed.totals = service_.meter().metrics.totals;
  observed.requests = requests_->requests();
  for (const service::PoolGauges& pool : service_.meter().pool_gauges()) {
    observed.holds += pool.held;
    observed.waiting += pool.waiting;
  }
  for (const service::QueueGauges& queue : service_.queue_gauges()) {
    observed.backlog += queue.backlog;
  }
  observed.long_polls = requests_->long_polls;
  observed.event_streams = static_cast<std::int64_t>(streams_.size());
  ring_.observe(now, observed);
}

}  // namespace permit::http
