#include "orchestrator/service/metric_ring.h"

#include <cmath>
#include <limits>

namespace permit::service {

namespace {

struct SeriesName {
  std::string_view name;
  std::string_view metric;
  std::string_view unit;
};

// In the order of point_of().
constexpr std::array<SeriesName, MetricRing::series> names = {{
    {"acquires", "permit_acquires_total", "1/s"},
    {"conflicts", "permit_acquire_conflicts_total", "1/s"},
    {"wait_p50", "permit_acquire_wait_seconds", "s"},
    {"wait_p95", "permit_acquire_wait_seconds", "s"},
    {"holds", "permit_pool_slots_held", ""},
    {"waiting", "permit_pool_waiters", ""},
    {"expiries", "permit_closed_total", "1/h"},
    {"task_latency_p95", "permit_workflow_task_schedule_to_start_latency_seconds", "s"},
    {"timer_lag_p99", "permit_timer_lateness_seconds", "s"},
    {"commit_latency_p95", "permit_persistence_latency_seconds", "s"},
    {"requests", "http_server_request_duration_seconds", "1/s"},
    {"long_polls", "permit_long_polls", ""},
    {"event_streams", "permit_event_streams", ""},
    {"backlog", "permit_task_queue_backlog", ""},
}};

constexpr float nothing = std::numeric_limits<float>::quiet_NaN();

float number(double value) { return static_cast<float>(value); }
float number(std::int64_t value) { return static_cast<float>(value); }
float number(std::optional<double> value) { return value ? number(*value) : nothing; }

// As many digits as a float has and a reader wants.
Sample sample_of(float value) {
  if (std::isnan(value)) return {};
  return {std::round(static_cast<double>(value) * 1e6) / 1e6};
}

}  // namespace

void MetricRing::observe(Time now, const Observation& observation) {
  seconds_.observe(now, observation);
  minutes_.observe(now, observation);
}

std::optional<ServerHistory> MetricRing::history(std::string_view step) const {
  if (step == seconds_.name()) return seconds_.history();
  if (step == minutes_.name()) return minutes_.history();
  return std::nullopt;
}

// Rates are by the time that has really passed, so that a late look shows no burst.
MetricRing::Point MetricRing::Track::point_of(const Observation& before, const Observation& now,
                                              double seconds) {
  const Totals& was = before.totals;
  const Totals& is = now.totals;
  const auto rate = [&](std::int64_t from, std::int64_t to) {
    return number(static_cast<double>(to - from) / seconds);
  };
  return {rate(was.acquires, is.acquires),
          rate(was.conflicts, is.conflicts),
          number(is.wait.quantile_since(was.wait, 0.5)),
          number(is.wait.quantile_since(was.wait, 0.95)),
          number(now.holds),
          number(now.waiting),
          3600 * rate(was.expiries, is.expiries),
          number(is.task_latency.quantile_since(was.task_latency, 0.95)),
          number(is.timer_lag.quantile_since(was.timer_lag, 0.99)),
          number(is.commit_latency.quantile_since(was.commit_latency, 0.95)),
          rate(before.requests, now.requests),
          number(now.long_polls),
          number(now.event_streams),
          number(now.backlog)};
}

void MetricRing::Track::append(const Point& point) {
  ++last_;
  points_[static_cast<std::size_t>(last_) % points_.size()] = point;
  count_ = std::min(count_ + 1, points_.size());
}

void MetricRing::Track::observe(Time now, const Observation& observation) {
  const std::int64_t step = now.time_since_epoch() / step_;
  if (!before_) {
    last_ = step;
  } else if (step <= last_) {
    return;
  } else {
    // Whoever was away for longer than the ring remembers begins anew.
    if (step - last_ > static_cast<std::int64_t>(points_.size())) {
      count_ = 0;
      last_ = step - 1;
    }
    Point empty;
    empty.fill(nothing);
    while (last_ < step - 1) append(empty);
    const double seconds = static_cast<double>((now - before_at_).count()) / 1e6;
    append(point_of(*before_, observation, seconds));
  }
  before_ = observation;
  before_at_ = now;
}

ServerHistory MetricRing::Track::history() const {
  ServerHistory history;
  history.step = name_;
  if (count_ > 0) history.end = Time(last_ * step_);
  for (std::size_t i = 0; i < names.size(); ++i) {
    HistorySeries& one = history.series.emplace_back();
    one.name = names[i].name;
    one.metric = names[i].metric;
    one.unit = names[i].unit;
    one.values.reserve(count_);
    for (std::size_t back = count_; back-- > 0;) {
      const std::size_t at = static_cast<std::size_t>(last_) - back;
      one.values.push_back(sample_of(points_[at % points_.size()][i]));
    }
  }
  return history;
}

}  // namespace permit::service
