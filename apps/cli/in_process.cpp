#include "apps/cli/in_process.h"

#include <boost/asio/post.hpp>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <utility>

namespace permit::cli {

// What callers wait for.
struct InProcessTransport::Waiting {
  std::mutex mutex;
  std::condition_variable changed;
  bool closed = false;
};

// Its caller keeps the answer; the server lets go of the exchange, with a reply or without.
class InProcessTransport::Exchange : public http::Exchange {
 public:
  struct Answer {
    std::optional<http::Response> response;
    bool is_over = false;
  };

  Exchange(http::Request request, std::shared_ptr<Waiting> waiting)
      : request_(std::move(request)), waiting_(std::move(waiting)) {}
  ~Exchange() override { end(std::nullopt); }

  http::Request& request() override { return request_; }
  std::uint64_t connection() const override { return 0; }
  void reply(http::Response response) override { end(std::move(response)); }
  void on_gone(std::function<void()>) override {}  // its peer is this process
  void park() override { request_ = {}; }

  std::shared_ptr<const Answer> answer() const { return answer_; }

 private:
  void end(std::optional<http::Response> response) {
    const std::lock_guard lock(waiting_->mutex);
    if (std::exchange(answer_->is_over, true)) return;
    answer_->response = std::move(response);
    waiting_->changed.notify_all();
  }

  http::Request request_;
  const std::shared_ptr<Waiting> waiting_;
  const std::shared_ptr<Answer> answer_ = std::make_shared<Answer>();
};

InProcessTransport::InProcessTransport(boost::asio::io_context& io, http::Routes& routes)
    : io_(io), routes_(routes), waiting_(std::make_shared<Waiting>()) {}

std::string InProcessTransport::call(std::string_view rpc, const std::string& request) {
  http::Request message;
  message.method = "POST";
  message.path = worker::path_of(rpc);
  message.headers.push_back({"content-type", "application/json"});
  message.body = request;
  auto exchange = std::make_shared<Exchange>(std::move(message), waiting_);
  const std::shared_ptr<const Exchange::Answer> answer = exchange->answer();
  boost::asio::post(io_, [this, exchange = std::move(exchange)]() mutable {
    routes_.handle_own(std::exchange(exchange, nullptr));
  });
  std::unique_lock lock(waiting_->mutex);
  waiting_->changed.wait(lock, [&] { return answer->is_over || waiting_->closed; });
  if (!answer->response) {
    throw Error(ErrorCode::unavailable, "SERVER_UNREACHABLE", "the server is stopping");
  }
  const http::Response response = *answer->response;
  lock.unlock();
  if (response.status >= 400) throw worker::error_of(response.status, response.body);
  return response.body;
}

void InProcessTransport::close() {
  const std::lock_guard lock(waiting_->mutex);
  waiting_->closed = true;
  waiting_->changed.notify_all();
}

}  // namespace permit::cli
