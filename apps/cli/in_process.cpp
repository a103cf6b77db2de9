#include "apps/cli/in_process.h"

#include <boost/asio/post.hpp>
#include <future>
#include <memory>
#include <utility>

namespace permit::cli {

// Dropped without a reply, as when the server ends, it breaks the promise.
class InProcessTransport::Exchange : public http::Exchange {
 public:
  explicit Exchange(http::Request request) : request_(std::move(request)) {}

  http::Request& request() override { return request_; }
  void reply(http::Response response) override { answer_.set_value(std::move(response)); }
  void on_gone(std::function<void()>) override {}  // its peer is this process
  void park() override { request_ = {}; }

  std::future<http::Response> answer() { return answer_.get_future(); }

 private:
  http::Request request_;
  std::promise<http::Response> answer_;
};

std::string InProcessTransport::call(std::string_view rpc, const std::string& request) {
  http::Request message;
  message.method = "POST";
  message.path = worker::path_of(rpc);
  message.headers.push_back({"content-type", "application/json"});
  message.body = request;
  auto exchange = std::make_shared<Exchange>(std::move(message));
  std::future<http::Response> answer = exchange->answer();
  boost::asio::post(io_, [this, exchange = std::move(exchange)]() mutable {
    routes_.handle(std::exchange(exchange, nullptr));
  });
  try {
    http::Response response = answer.get();
    if (response.status >= 400) throw worker::error_of(response.status, response.body);
    return std::move(response.body);
  } catch (const std::future_error&) {
    throw Error(ErrorCode::unavailable, "SERVER_UNREACHABLE", "the server is stopping");
  }
}

}  // namespace permit::cli
