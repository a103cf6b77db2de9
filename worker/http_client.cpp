#include "worker/http_client.h"

#include <fcntl.h>

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>

#include "orchestrator/protocol/error.h"

namespace permit::worker {

namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using boost::system::error_code;

// Below the time after which the server closes an idle connection.
constexpr std::chrono::seconds idle_max{20};
constexpr std::size_t idle_connections_max = 64;
constexpr std::uint64_t answer_bytes_max = 256U << 20U;

}  // namespace

class HttpTransport::Connection {
 public:
  Connection(const std::string& host, const std::string& port, Patience patience)
      : patience_(patience), stream_(context_) {
    asio::ip::tcp::resolver resolver(context_);
    error_code failed;
    const auto addresses = resolver.resolve(host, port, failed);
    if (!failed) {
      stream_.expires_after(patience_.connect);
      stream_.async_connect(addresses, [&](error_code error, const auto&) { failed = error; });
      finish();
    }
    if (failed) {
      throw Error(ErrorCode::unavailable, "SERVER_UNREACHABLE",
                  "cannot reach http://" + host + ":" + port + " (" + failed.message() + ")");
    }
    stream_.socket().set_option(asio::ip::tcp::no_delay(true), failed);
    // Programs that this process starts have no business with it.
    fcntl(stream_.socket().native_handle(), F_SETFD, FD_CLOEXEC);
  }

  struct Answer {
    int status = 0;
    std::string body;
    bool keep_alive = false;
  };
  Answer exchange(const http::request<http::string_body>& request) {
    error_code failed;
    stream_.expires_after(patience_.answer);
    http::async_write(stream_, request, [&](error_code error, std::size_t) { failed = error; });
    finish();
    http::response_parser<http::string_body> parser;
    parser.body_limit(answer_bytes_max);
    if (!failed) {
      http::async_read(stream_, buffer_, parser,
                       [&](error_code error, std::size_t) { failed = error; });
      finish();
    }
    if (failed) throw lost(failed);
    Answer answer;
    answer.status = static_cast<int>(parser.get().result_int());
    answer.keep_alive = parser.get().keep_alive();
    answer.body = std::move(parser.get().body());
    return answer;
  }

  // The parts of an exchange whose answer has no end.
  using StreamParser = http::response_parser<http::buffer_body>;
  void begin(const http::request<http::empty_body>& request, StreamParser& parser) {
    error_code failed;
    stream_.expires_after(patience_.answer);
    http::async_write(stream_, request, [&](error_code error, std::size_t) { failed = error; });
    finish();
    if (!failed) {
      http::async_read_header(stream_, buffer_, parser,
                              [&](error_code error, std::size_t) { failed = error; });
      finish();
    }
    if (failed) throw lost(failed);
  }
  // What has come; waits for at least one byte of it.
  std::string_view read_some(StreamParser& parser, std::span<char> room,
                             std::chrono::milliseconds patience) {
    error_code failed;
    parser.get().body().data = room.data();
    parser.get().body().size = room.size();
    stream_.expires_after(patience);
    http::async_read_some(stream_, buffer_, parser,
                          [&](error_code error, std::size_t) { failed = error; });
    finish();
    if (failed && failed != http::error::need_buffer) throw lost(failed);
    return {room.data(), room.size() - parser.get().body().size};
  }

  static Error lost(const error_code& failed) {
    return Error(ErrorCode::unavailable, "ANSWER_LOST",
                 "the permit server did not answer (" + failed.message() + ")");
  }

 private:
  void finish() {
    context_.restart();
    context_.run();
  }

  const Patience patience_;
  asio::io_context context_;
  beast::tcp_stream stream_;
  beast::flat_buffer buffer_;
};

class HttpTransport::Events : public EventReader {
 public:
  Events(std::unique_ptr<Connection> connection, const http::request<http::empty_body>& request)
      : connection_(std::move(connection)) {
    parser_.body_limit(boost::none);
    connection_->begin(request, parser_);
    if (parser_.get().result() == http::status::ok) return;
    const int status = static_cast<int>(parser_.get().result_int());
    while (!parser_.is_done()) text_ += connection_->read_some(parser_, room_, silence_max);
    throw error_of(status, text_);
  }

  Event next() override {
    for (;;) {
      const std::size_t end = text_.find("\n\n");
      if (end != std::string::npos) {
        const Event event = parse(text_.substr(0, end + 1));
        text_.erase(0, end + 2);
        if (!event.name.empty()) return event;
        continue;
      }
      if (parser_.is_done())
        throw Connection::lost(http::make_error_code(http::error::end_of_stream));
      text_ += connection_->read_some(parser_, room_, silence_max);
    }
  }

 private:
  static constexpr std::chrono::milliseconds silence_max{6'000};  // a ping comes every 2 s

  static Event parse(std::string_view lines) {
    Event event;
    while (!lines.empty()) {
      const std::size_t end = lines.find('\n');
      const std::string_view line = lines.substr(0, end);
      if (line.starts_with("event: ")) event.name = line.substr(7);
      if (line.starts_with("id: ")) event.id = line.substr(4);
      if (line.starts_with("data: ")) event.data = line.substr(6);
      lines.remove_prefix(end + 1);
    }
    return event;
  }

  std::unique_ptr<Connection> connection_;
  Connection::StreamParser parser_;
  std::vector<char> room_ = std::vector<char>(64 * 1024);
  std::string text_;  // received, not used yet
};

std::string default_address() {
  const char* address = std::getenv("PERMIT_ADDRESS");
  return address != nullptr && *address != '\0' ? address : "127.0.0.1:7376";
}

HttpTransport::HttpTransport(const std::string& address, Patience patience) : patience_(patience) {
  std::string rest = address;
  if (rest.starts_with("http://")) rest.erase(0, 7);
  while (!rest.empty() && rest.back() == '/') rest.pop_back();
  const std::size_t colon = rest.rfind(':');
  if (rest.starts_with("https://") || colon == std::string::npos || colon == 0 ||
      colon + 1 == rest.size()) {
    throw invalid_argument("ADDRESS_INVALID",
                           "\"" + address + "\" is not an address; write host:port");
  }
  host_ = rest.substr(0, colon);
  port_ = rest.substr(colon + 1);
  if (host_.front() == '[' && host_.back() == ']') host_ = host_.substr(1, host_.size() - 2);
}

HttpTransport::~HttpTransport() = default;

std::unique_ptr<HttpTransport::Connection> HttpTransport::take() {
  const std::lock_guard lock(mutex_);
  const auto oldest = std::chrono::steady_clock::now() - idle_max;
  std::erase_if(idle_, [&](const Idle& idle) { return idle.since < oldest; });
  if (idle_.empty()) return nullptr;
  std::unique_ptr<Connection> connection = std::move(idle_.back().connection);
  idle_.pop_back();
  return connection;
}

void HttpTransport::put_back(std::unique_ptr<Connection> connection) {
  const std::lock_guard lock(mutex_);
  if (idle_.size() >= idle_connections_max) return;
  idle_.push_back({std::move(connection), std::chrono::steady_clock::now()});
}

std::string HttpTransport::call(std::string_view rpc, const std::string& text) {
  http::request<http::string_body> request{http::verb::post, path_of(rpc), 11};
  request.set(http::field::host, host_ + ":" + port_);
  request.set(http::field::content_type, "application/json");
  if (!api_key_.empty()) request.set(http::field::authorization, "Bearer " + api_key_);
  request.body() = text;
  request.prepare_payload();
  std::unique_ptr<Connection> connection = take();
  if (!connection) connection = std::make_unique<Connection>(host_, port_, patience_);
  Connection::Answer answer = connection->exchange(request);
  if (answer.keep_alive) put_back(std::move(connection));
  if (answer.status != 200) throw error_of(answer.status, answer.body);
  return std::move(answer.body);
}

std::unique_ptr<EventReader> HttpTransport::events(const std::string& target,
                                                   const std::string& last_id) const {
  http::request<http::empty_body> request{http::verb::get, target, 11};
  request.set(http::field::host, host_ + ":" + port_);
  if (!api_key_.empty()) request.set(http::field::authorization, "Bearer " + api_key_);
  if (!last_id.empty()) request.set("Last-Event-ID", last_id);
  return std::make_unique<Events>(std::make_unique<Connection>(host_, port_, patience_), request);
}

}  // namespace permit::worker
