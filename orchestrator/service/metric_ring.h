// How the server's metrics have been: the last 15 minutes by the second and the last day by the
// minute. In memory, of one size for ever, empty at the start. Pure but for its own state: whoever
// observes says what time it is. Engine thread.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "orchestrator/protocol/server_history.h"
#include "orchestrator/service/metrics.h"

namespace permit::service {

// What the ring is fed with: counts that only go up, and how things are at the moment.
struct Observation {
  Totals totals;
  std::int64_t requests = 0;
  std::int64_t holds = 0;
  std::int64_t waiting = 0;
  std::int64_t long_polls = 0;
  std::int64_t event_streams = 0;
  std::int64_t backlog = 0;
};

class MetricRing {
 public:
  static constexpr std::size_t series = 14;

  // To be called soon after each whole second; a second in which it is not called stays empty. The
  // first one is only what the next is compared with.
  void observe(Time now, const Observation& observation);
  bool is_due(Time now) const { return now >= seconds_.next_due(); }
  Time next_due() const { return seconds_.next_due(); }

  // `step` is 1s or 60s, else nullopt.
  std::optional<ServerHistory> history(std::string_view step) const;

 private:
  using Point = std::array<float, series>;  // not a number: nothing was observed

  // Points at one distance. Each ends at a whole multiple of it.
  class Track {
   public:
    Track(std::string_view name, Duration step, std::size_t points_max)
        : name_(name), step_(step), points_(points_max) {}

    void observe(Time now, const Observation& observation);
    Time next_due() const { return before_ ? Time((last_ + 1) * step_) : Time{}; }
    std::string_view name() const { return name_; }
    ServerHistory history() const;

   private:
    static Point point_of(const Observation& before, const Observation& now, double seconds);
    void append(const Point& point);

    std::string_view name_;
    Duration step_;
    std::vector<Point> points_;  // the one that ends at n steps is at n modulo their number
    std::int64_t last_ = 0;      // in steps since 1970
    std::size_t count_ = 0;
    std::optional<Observation> before_;
    Time before_at_{};
  };

  Track seconds_{"1s", std::chrono::seconds(1), 15 * 60};
  Track minutes_{"60s", std::chrono::minutes(1), 24 * 60};
};

}  // namespace permit::service
