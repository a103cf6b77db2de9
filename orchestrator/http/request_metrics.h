// What was asked by HTTP and how long the answers took: by route, method and status, so that it
// stays small whatever is asked. A request that waits for something to happen, a long poll, is
// counted on its own: among the others it would make every percentile a minute. Engine thread.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "orchestrator/http/message.h"
#include "orchestrator/service/histogram.h"

namespace permit::http {

class RequestMetrics {
 public:
  using Durations = service::Histogram<service::histogram_bounds::request>;
  using LongDurations = service::Histogram<service::histogram_bounds::long_poll>;

  struct Answers {
    int status = 0;
    Durations durations;
  };
  struct Route {
    std::string method;
    std::string pattern;           // empty: of requests that match no route
    std::vector<Answers> answers;  // by status, as they came
    LongDurations long_polls;
  };

  RequestMetrics();

  // Returns its place in routes().
  std::size_t add(std::string method, std::string pattern);
  // Of requests with this method that match no route.
  std::size_t unmatched(std::string_view method) const;

  void answered(std::size_t route, int status, Duration took);
  void long_poll_ended(std::size_t route, Duration took);

  const std::vector<Route>& routes() const { return routes_; }
  std::int64_t requests() const { return requests_; }  // answered, without long polls

  std::int64_t active = 0;  // without the next
  std::int64_t long_polls = 0;

 private:
  std::vector<Route> routes_;
  std::int64_t requests_ = 0;
};

// One request on its way, timed until it is answered. Whoever parks it makes it a long poll.
class MeasuredExchange final : public Exchange {
 public:
  // `metrics` may be looked at no more by then, but must be there when the last exchange ends.
  MeasuredExchange(std::shared_ptr<Exchange> exchange, std::shared_ptr<RequestMetrics> metrics);
  ~MeasuredExchange() override;

  void found_route(std::size_t route) { route_ = route; }

  Request& request() override { return exchange_->request(); }
  std::uint64_t connection() const override { return exchange_->connection(); }
  void reply(Response response) override;
  std::unique_ptr<Stream> stream(Response response) override;
  void on_gone(std::function<void()> callback) override;
  void park() override;

  // Whether it waits for something, and has no answer yet.
  bool waits() const { return on_gone_ != nullptr && !is_over_; }
  // Tells those who would answer that nobody waits any more, as if the peer had gone.
  void leave_wait();
  // For good: it has been answered in their place.
  void ignore_replies() { ignores_replies_ = true; }
  // The name of the key that it came with; for the log.
  void set_key(std::string name) { key_ = std::move(name); }

 private:
  bool leave();

  const std::shared_ptr<Exchange> exchange_;
  const std::shared_ptr<RequestMetrics> metrics_;
  const std::chrono::steady_clock::time_point began_;
  std::size_t route_;
  std::shared_ptr<std::function<void()>> on_gone_;  // called once, whoever does it
  std::string key_;
  bool ignores_replies_ = false;
  bool is_parked_ = false;
  bool is_over_ = false;
};

}  // namespace permit::http
