#include "worker/http_client.h"

#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>

#include "orchestrator/protocol/error.h"
#include "worker/api_key.h"

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

// Where a connection goes.
struct Destination {
  const std::string& host;
  const std::string& port;
  const TlsOptions* tls;  // none: plain HTTP

  std::string text() const {
    const bool is_v6 = host.find(':') != std::string::npos;
    return (tls ? "https://" : "http://") + (is_v6 ? "[" + host + "]" : host) + ":" + port;
  }
  const std::string& name() const { return tls->server_name.empty() ? host : tls->server_name; }
};

// "a.example, 10.0.0.7": whom a certificate is for.
std::string names_of(X509* certificate) {
  const std::unique_ptr<GENERAL_NAMES, void (*)(GENERAL_NAMES*)> names(
      static_cast<GENERAL_NAMES*>(
          X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)),
      GENERAL_NAMES_free);
  std::string text;
  for (int i = 0; names && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type != GEN_DNS && name->type != GEN_IPADD) continue;
    const ASN1_STRING* value = name->type == GEN_DNS ? name->d.dNSName : name->d.iPAddress;
    const unsigned char* bytes = ASN1_STRING_get0_data(value);
    std::string one(bytes, bytes + ASN1_STRING_length(value));
    asio::ip::address_v4::bytes_type v4{};
    asio::ip::address_v6::bytes_type v6{};
    if (name->type == GEN_IPADD && one.size() == v4.size()) {
      std::copy_n(bytes, v4.size(), v4.begin());
      one = asio::ip::address_v4(v4).to_string();
    } else if (name->type == GEN_IPADD && one.size() == v6.size()) {
      std::copy_n(bytes, v6.size(), v6.begin());
      one = asio::ip::address_v6(v6).to_string();
    }
    text += (text.empty() ? "" : ", ") + one;
  }
  return text.empty() ? "nobody" : text;
}

// What the other side says of our certificate, as an alert.
bool is_about_certificate(int reason) {
  switch (reason) {
    case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
      return true;
    default:
      return false;
  }
}

int tls_reason(const error_code& failed) {
  if (failed.category() != asio::error::get_ssl_category()) return 0;
  return ERR_GET_REASON(static_cast<unsigned long>(failed.value()));
}

Error certificate_required(const Destination& server, const error_code& failed) {
  return Error(ErrorCode::unavailable, "TLS_CERTIFICATE_REQUIRED",
               server.tls->certificate.empty()
                   ? server.text() + " wants a certificate of you: say which with tls_cert"
                   : server.text() + " refuses your certificate " + server.tls->certificate + " (" +
                         failed.message() + ")");
}

}  // namespace

class HttpTransport::Connection {
 public:
  Connection(const Destination& server, Patience patience)
      : patience_(patience), stream_(context_) {
    asio::ip::tcp::resolver resolver(context_);
    error_code failed;
    const auto addresses = resolver.resolve(server.host, server.port, failed);
    if (!failed) {
      stream_.expires_after(patience_.connect);
      stream_.async_connect(addresses, [&](error_code error, const auto&) { failed = error; });
      finish();
    }
    if (failed) throw unreachable(server, failed);
    stream_.socket().set_option(asio::ip::tcp::no_delay(true), failed);
    // Programs that this process starts have no business with it.
    fcntl(stream_.socket().native_handle(), F_SETFD, FD_CLOEXEC);
    if (server.tls != nullptr) begin_tls(server);
  }

  struct Answer {
    int status = 0;
    std::string body;
    bool keep_alive = false;
  };
  Answer exchange(const Destination& server, const http::request<http::string_body>& request) {
    stream_.expires_after(patience_.answer);
    error_code failed =
        complete([&](auto& stream, auto done) { http::async_write(stream, request, done); });
    http::response_parser<http::string_body> parser;
    parser.body_limit(answer_bytes_max);
    if (!failed) {
      failed = complete(
          [&](auto& stream, auto done) { http::async_read(stream, buffer_, parser, done); });
    }
    if (failed) throw lost(server, failed);
    Answer answer;
    answer.status = static_cast<int>(parser.get().result_int());
    answer.keep_alive = parser.get().keep_alive();
    answer.body = std::move(parser.get().body());
    return answer;
  }

  // The parts of an exchange whose answer has no end.
  using StreamParser = http::response_parser<http::buffer_body>;
  void begin(const Destination& server, const http::request<http::empty_body>& request,
             StreamParser& parser) {
    stream_.expires_after(patience_.answer);
    error_code failed =
        complete([&](auto& stream, auto done) { http::async_write(stream, request, done); });
    if (!failed) {
      failed = complete(
          [&](auto& stream, auto done) { http::async_read_header(stream, buffer_, parser, done); });
    }
    if (failed) throw lost(server, failed);
  }
  // What has come; waits for at least one byte of it.
  std::string_view read_some(StreamParser& parser, std::span<char> room,
                             std::chrono::milliseconds patience) {
    parser.get().body().data = room.data();
    parser.get().body().size = room.size();
    stream_.expires_after(patience);
    const error_code failed = complete(
        [&](auto& stream, auto done) { http::async_read_some(stream, buffer_, parser, done); });
    if (failed && failed != http::error::need_buffer) throw lost(failed);
    return {room.data(), room.size() - parser.get().body().size};
  }

  static Error lost(const error_code& failed) {
    return Error(ErrorCode::unavailable, "ANSWER_LOST",
                 "the permit server did not answer (" + failed.message() + ")");
  }

 private:
  static Error unreachable(const Destination& server, const error_code& failed) {
    return Error(ErrorCode::unavailable, "SERVER_UNREACHABLE",
                 "cannot reach " + server.text() + " (" + failed.message() + ")");
  }

  // With TLS 1.3 we are done before the server has looked at our certificate: what it says of that
  // comes in place of its first answer.
  static Error lost(const Destination& server, const error_code& failed) {
    return is_about_certificate(tls_reason(failed)) ? certificate_required(server, failed)
                                                    : lost(failed);
  }

  void begin_tls(const Destination& server) {
    tls_context_.emplace(new_tls_context(*server.tls));
    tls_.emplace(stream_, *tls_context_);
    SSL* native = tls_->native_handle();
    std::string name = server.name();
    error_code no_address;
    asio::ip::make_address(name, no_address);
    if (no_address) {
      SSL_ctrl(native, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, name.data());
      SSL_set_hostflags(native, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
      SSL_set1_host(native, name.c_str());
    } else {
      X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(native), name.c_str());
    }
    tls_->set_verify_mode(asio::ssl::verify_peer);
    tls_->set_verify_callback([this](bool is_good, asio::ssl::verify_context& context) {
      return is_good || not_verified(context.native_handle());
    });
    stream_.expires_after(patience_.connect);
    error_code failed;
    tls_->async_handshake(asio::ssl::stream_base::client,
                          [&](error_code error) { failed = error; });
    finish();
    if (failed) throw handshake_failed(server, failed);
  }

  bool not_verified(X509_STORE_CTX* store) {
    tls_problem_ = X509_STORE_CTX_get_error(store);
    if (X509* certificate = X509_STORE_CTX_get_current_cert(store)) {
      names_shown_ = names_of(certificate);
    }
    return false;
  }

  Error handshake_failed(const Destination& server, const error_code& failed) const {
    const auto error = [](const char* reason, const std::string& message) {
      return Error(ErrorCode::unavailable, reason, message);
    };
    if (tls_problem_ == X509_V_ERR_HOSTNAME_MISMATCH ||
        tls_problem_ == X509_V_ERR_IP_ADDRESS_MISMATCH) {
      return error("TLS_NAME_MISMATCH", "the certificate of " + server.text() + " is not for " +
                                            server.name() + " but for " + names_shown_);
    }
    if (tls_problem_ != X509_V_OK) {
      return error("TLS_UNTRUSTED", "the certificate of " + server.text() + " is not trusted (" +
                                        X509_verify_cert_error_string(tls_problem_) +
                                        "); say whom to trust with tls_ca");
    }
    const int reason = tls_reason(failed);
    if (is_about_certificate(reason)) return certificate_required(server, failed);
    if (reason == SSL_R_WRONG_VERSION_NUMBER || reason == SSL_R_HTTP_REQUEST) {
      return error("TLS_NOT_SPOKEN",
                   server.text() + " speaks no TLS; perhaps its address begins with http://");
    }
    if (reason == 0) return unreachable(server, failed);
    return error("TLS_FAILED", "no TLS with " + server.text() + ": " + failed.message());
  }

  // Starts something on the stream and waits for its end.
  template <class Start>
  error_code complete(Start start) {
    error_code failed;
    const auto done = [&](error_code error, std::size_t) { failed = error; };
    if (tls_) {
      start(*tls_, done);
    } else {
      start(stream_, done);
    }
    finish();
    return failed;
  }
  void finish() {
    context_.restart();
    context_.run();
  }

  const Patience patience_;
  asio::io_context context_;
  beast::tcp_stream stream_;
  std::optional<asio::ssl::context> tls_context_;
  std::optional<beast::ssl_stream<beast::tcp_stream&>> tls_;  // over stream_
  int tls_problem_ = X509_V_OK;                               // with the server's certificate
  std::string names_shown_;                                   // whom it is for
  beast::flat_buffer buffer_;
};

class HttpTransport::Events : public EventReader {
 public:
  Events(const Destination& server, std::unique_ptr<Connection> connection,
         const http::request<http::empty_body>& request)
      : connection_(std::move(connection)) {
    parser_.body_limit(boost::none);
    connection_->begin(server, request, parser_);
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

HttpTransport::HttpTransport(const std::string& address, Patience patience, TlsOptions tls)
    : patience_(patience), tls_(std::move(tls)) {
  std::string rest = address;
  is_tls_ = rest.starts_with("https://");
  if (is_tls_ || rest.starts_with("http://")) rest.erase(0, rest.find("//") + 2);
  while (!rest.empty() && rest.back() == '/') rest.pop_back();
  const std::size_t colon = rest.rfind(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == rest.size()) {
    throw invalid_argument(
        "ADDRESS_INVALID",
        "\"" + address + "\" is not an address; write host:port, or https://host:port");
  }
  host_ = rest.substr(0, colon);
  port_ = rest.substr(colon + 1);
  if (host_.front() == '[' && host_.back() == ']') host_ = host_.substr(1, host_.size() - 2);
}

HttpTransport::~HttpTransport() = default;

std::string HttpTransport::api_key() const {
  const std::lock_guard lock(mutex_);
  if (!api_key_) api_key_ = default_api_key();
  return *api_key_;
}

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
  const std::string key = api_key();
  if (!key.empty()) request.set(http::field::authorization, "Bearer " + key);
  request.body() = text;
  request.prepare_payload();
  std::unique_ptr<Connection> connection = take();
  const Destination server{host_, port_, is_tls_ ? &tls_ : nullptr};
  if (!connection) connection = std::make_unique<Connection>(server, patience_);
  Connection::Answer answer = connection->exchange(server, request);
  if (answer.keep_alive) put_back(std::move(connection));
  if (answer.status != 200) throw error_of(answer.status, answer.body);
  return std::move(answer.body);
}

std::unique_ptr<EventReader> HttpTransport::events(const std::string& target,
                                                   const std::string& last_id) const {
  http::request<http::empty_body> request{http::verb::get, target, 11};
  request.set(http::field::host, host_ + ":" + port_);
  const std::string key = api_key();
  if (!key.empty()) request.set(http::field::authorization, "Bearer " + key);
  if (!last_id.empty()) request.set("Last-Event-ID", last_id);
  const Destination server{host_, port_, is_tls_ ? &tls_ : nullptr};
  return std::make_unique<Events>(server, std::make_unique<Connection>(server, patience_), request);
}

}  // namespace permit::worker
