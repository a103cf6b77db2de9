#include "orchestrator/http/server.h"

#include <netinet/tcp.h>
#include <sys/socket.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <utility>

#include "orchestrator/http/connection.h"
#include "orchestrator/protocol/ensure.h"
#include "orchestrator/protocol/error.h"

namespace permit::http {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

namespace {

using Acceptor = asio::basic_socket_acceptor<tcp, asio::io_context::executor_type>;
using Socket = asio::basic_stream_socket<tcp, asio::io_context::executor_type>;

constexpr auto accept_pause = std::chrono::milliseconds(50);
// Connections past the limit that are still being told so; beyond them they are closed unheard.
constexpr std::size_t refused_connections_max = 64;

std::string address_text(const Server::Options& options) {
  const bool v6 = options.address.find(':') != std::string::npos;
  return (v6 ? "[" + options.address + "]" : options.address) + ":" + std::to_string(options.port);
}

tcp::endpoint endpoint_of(const Server::Options& options) {
  error_code error;
  const std::string numeric = options.address == "localhost" ? "127.0.0.1" : options.address;
  const asio::ip::address address = asio::ip::make_address(numeric, error);
  if (error) {
    throw invalid_argument("LISTEN_ADDRESS_INVALID", "Cannot listen on " + address_text(options) +
                                                         ": that is not an IP address.");
  }
  if (!address.is_loopback() && !options.beyond_loopback) {
    throw failed_precondition("LISTEN_NOT_LOOPBACK",
                              "Cannot listen on " + address_text(options) +
                                  ": without TLS and keys only loopback addresses are allowed "
                                  "(127.0.0.0/8 or ::1).");
  }
  return {address, options.port};
}

void set_tcp_option(Acceptor& acceptor, int name, int value) {
  if (::setsockopt(acceptor.native_handle(), IPPROTO_TCP, name, &value, sizeof value) == 0) return;
  throw boost::system::system_error(errno, boost::system::system_category());
}

// Accepted sockets inherit these. A peer that vanished silently is noticed within 90 s: after 40 to
// 50 s of silence; or 40 s after something was sent to it before that, as the end of a long poll
// is.
void set_options(Acceptor& acceptor) {
  acceptor.set_option(asio::socket_base::reuse_address(true));
  acceptor.set_option(asio::socket_base::keep_alive(true));
  set_tcp_option(acceptor, TCP_NODELAY, 1);
  set_tcp_option(acceptor, TCP_KEEPIDLE, 30);
  set_tcp_option(acceptor, TCP_KEEPINTVL, 10);
  set_tcp_option(acceptor, TCP_KEEPCNT, 3);
  set_tcp_option(acceptor, TCP_USER_TIMEOUT, 40'000);
}

Acceptor listen(asio::io_context& io, const Server::Options& options) {
  const tcp::endpoint endpoint = endpoint_of(options);
  try {
    Acceptor acceptor(io);
    acceptor.open(endpoint.protocol());
    set_options(acceptor);
    acceptor.bind(endpoint);
    acceptor.listen();
    return acceptor;
  } catch (const boost::system::system_error& error) {
    const bool in_use = error.code() == asio::error::address_in_use;
    throw failed_precondition(
        in_use ? "PORT_IN_USE" : "LISTEN_FAILED",
        "Cannot listen on " + address_text(options) + ": " +
            (in_use ? "another process already does. Stop it, or choose another port."
                    : error.code().message() + "."));
  }
}

Limits with_own_host(Limits limits, const tcp::endpoint& endpoint) {
  const std::string address = endpoint.address().to_string();
  limits.allowed_hosts.push_back(endpoint.address().is_v6() ? "[" + address + "]" : address);
  return limits;
}

std::string endpoint_text(const tcp::endpoint& endpoint) {
  const std::string address = endpoint.address().to_string();
  return (endpoint.address().is_v6() ? "[" + address + "]" : address) + ":" +
         std::to_string(endpoint.port());
}

}  // namespace

// Shared with the handlers that are under way in the event loop, which find it stopped.
class Server::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(asio::io_context& io, const Options& options, Handler handler)
      : acceptor_(listen(io, options)),
        port_(acceptor_.local_endpoint().port()),
        accept_timer_(io),
        sweep_timer_(io),
        shared_(io, with_own_host(options.limits, acceptor_.local_endpoint()), std::move(handler)) {
    shared_.on_closed = options.on_closed;
    shared_.tls = options.tls;
    shared_.on_tls_failed = options.on_tls_failed;
  }

  void accept();
  void watch();
  void stop_accepting();
  void close_idle();
  void abandon_all();
  void use_tls(std::shared_ptr<const TlsContext> tls) {
    ENSURE(tls != nullptr && shared_.tls != nullptr);
    shared_.tls = std::move(tls);
  }

  std::uint16_t port() const { return port_; }
  const std::vector<std::shared_ptr<Connection>>& connections() const {
    return shared_.connections;
  }

 private:
  void on_accept(const error_code& error, Socket socket);
  void admit(Socket socket);
  void pause_accepting();
  void schedule_sweep();
  void sweep();

  Acceptor acceptor_;
  std::uint16_t port_;
  asio::steady_timer accept_timer_;
  asio::steady_timer sweep_timer_;
  bool sweeping_ = false;  // a sweep is scheduled; only while there are connections
  Shared shared_;
};

void Server::Impl::accept() {
  acceptor_.async_accept([self = shared_from_this()](const error_code& error, Socket socket) {
    if (!self->shared_.stopping) self->on_accept(error, std::move(socket));
  });
}

// Tells the connections what has come for them.
void Server::Impl::watch() {
  shared_.ready_set.async_wait([self = shared_from_this()](const error_code& error) {
    if (error) return;
    self->shared_.ready_set.call_ready();
    self->watch();
  });
}

// A connection that was reset while it waited is none of our trouble. Anything else, above all no
// file descriptor left, would come back at once, again and again: pause.
void Server::Impl::on_accept(const error_code& error, Socket socket) {
  if (!error) {
    admit(std::move(socket));
  } else if (error != asio::error::connection_aborted) {
    return pause_accepting();
  }
  accept();
}

void Server::Impl::pause_accepting() {
  accept_timer_.expires_after(accept_pause);
  accept_timer_.async_wait([self = shared_from_this()](const error_code&) {
    if (!self->shared_.stopping) self->accept();
  });
}

void Server::Impl::admit(Socket socket) {
  error_code error;
  const tcp::endpoint peer = socket.remote_endpoint(error);
  if (error) return;  // already gone
  const std::size_t count = shared_.connections.size();
  const std::size_t told = shared_.tls ? 0 : refused_connections_max;  // to a handshake each
  if (count >= shared_.limits.connections_max + told) return;
  const int descriptor = socket.release(error);
  if (error) return;
  const auto connection = std::make_shared<Connection>(descriptor, endpoint_text(peer), shared_);
  if (!connection->start()) return;
  schedule_sweep();
  if (count < shared_.limits.connections_max) return;
  connection->refuse({503, "CONNECTIONS_TOO_MANY",
                      "The server has as many connections as it allows. Try again later."});
}

void Server::Impl::schedule_sweep() {
  if (sweeping_ || shared_.connections.empty()) return;
  sweeping_ = true;
  sweep_timer_.expires_after(shared_.limits.sweep_interval);
  sweep_timer_.async_wait([self = shared_from_this()](const error_code& error) {
    self->sweeping_ = false;
    if (!error) self->sweep();
  });
}

// From the back: a connection that closes is replaced by the last one, already swept.
void Server::Impl::sweep() {
  const SteadyTime now = std::chrono::steady_clock::now();
  for (std::size_t i = shared_.connections.size(); i-- > 0;) {
    if (i < shared_.connections.size()) shared_.connections[i]->sweep(now);
  }
  schedule_sweep();
}

void Server::Impl::stop_accepting() {
  error_code ignored;
  shared_.stopping = true;
  acceptor_.close(ignored);
  accept_timer_.cancel();
}

void Server::Impl::close_idle() {
  for (std::size_t i = shared_.connections.size(); i-- > 0;) {
    if (i < shared_.connections.size() && shared_.connections[i]->idle()) {
      shared_.connections[i]->close();
    }
  }
}

void Server::Impl::abandon_all() {
  while (!shared_.connections.empty()) shared_.connections.back()->abandon();
  shared_.ready_set.close();
  sweep_timer_.cancel();
}

Server::Server(asio::io_context& io, const Options& options, Handler handler)
    : impl_(std::make_shared<Impl>(io, options, std::move(handler))) {
  impl_->accept();
  impl_->watch();
}

Server::~Server() {
  impl_->stop_accepting();
  impl_->abandon_all();
}

std::uint16_t Server::port() const { return impl_->port(); }
void Server::use_tls(std::shared_ptr<const TlsContext> tls) { impl_->use_tls(std::move(tls)); }
void Server::stop_accepting() { impl_->stop_accepting(); }
void Server::close_idle() { impl_->close_idle(); }
std::size_t Server::connections() const { return impl_->connections().size(); }

std::size_t Server::in_flight() const {
  std::size_t count = 0;
  for (const std::shared_ptr<Connection>& connection : impl_->connections()) {
    if (connection->in_flight()) ++count;
  }
  return count;
}

}  // namespace permit::http
