#include "orchestrator/http/request_metrics.h"

#include <algorithm>
#include <utility>

namespace permit::http {

namespace {

// Of requests that match no route; the last one is for what is no method that we know.
constexpr std::string_view methods[] = {"GET",  "POST",    "PUT",   "DELETE",
                                        "HEAD", "OPTIONS", "PATCH", "_OTHER"};

}  // namespace

RequestMetrics::RequestMetrics() {
  for (const std::string_view method : methods) add(std::string(method), "");
}

std::size_t RequestMetrics::add(std::string method, std::string pattern) {
  routes_.push_back({std::move(method), std::move(pattern), {}, {}});
  return routes_.size() - 1;
}

std::size_t RequestMetrics::unmatched(std::string_view method) const {
  const auto known = std::find(std::begin(methods), std::end(methods) - 1, method);
  return static_cast<std::size_t>(known - std::begin(methods));
}

void RequestMetrics::answered(std::size_t route, int status, Duration took) {
  ++requests_;
  std::vector<Answers>& answers = routes_.at(route).answers;
  auto of = std::find_if(answers.begin(), answers.end(),
                         [&](const Answers& known) { return known.status == status; });
  if (of == answers.end()) of = answers.insert(answers.end(), {status, {}});
  of->durations.observe(took);
}

void RequestMetrics::long_poll_ended(std::size_t route, Duration took) {
  routes_.at(route).long_polls.observe(took);
}

MeasuredExchange::MeasuredExchange(std::shared_ptr<Exchange> exchange,
                                   std::shared_ptr<RequestMetrics> metrics)
    : exchange_(std::move(exchange)),
      metrics_(std::move(metrics)),
      began_(std::chrono::steady_clock::now()),
      route_(metrics_->unmatched(exchange_->request().method)) {
  ++metrics_->active;
}

MeasuredExchange::~MeasuredExchange() { leave(); }

// False if it has been left before.
bool MeasuredExchange::leave() {
  if (std::exchange(is_over_, true)) return false;
  --(is_parked_ ? metrics_->long_polls : metrics_->active);
  return true;
}

void MeasuredExchange::on_gone(std::function<void()> callback) {
  on_gone_ = std::make_shared<std::function<void()>>(std::move(callback));
  exchange_->on_gone([on_gone = on_gone_] {
    if (const auto once = std::exchange(*on_gone, nullptr)) once();
  });
}

void MeasuredExchange::leave_wait() {
  if (on_gone_ == nullptr) return;
  if (const auto once = std::exchange(*on_gone_, nullptr)) once();
}

void MeasuredExchange::reply(Response response) {
  if (ignores_replies_) return;
  response.key = key_;
  if (leave()) {
    const auto took =
        std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now() - began_);
    if (is_parked_) {
      metrics_->long_poll_ended(route_, took);
    } else {
      metrics_->answered(route_, response.status, took);
    }
  }
  exchange_->reply(std::move(response));
}

// A stream is no request any more; the streams are counted elsewhere.
std::unique_ptr<Stream> MeasuredExchange::stream(Response response) {
  leave();
  return exchange_->stream(std::move(response));
}

void MeasuredExchange::park() {
  if (!is_over_ && !std::exchange(is_parked_, true)) {
    --metrics_->active;
    ++metrics_->long_polls;
  }
  exchange_->park();
}

}  // namespace permit::http
