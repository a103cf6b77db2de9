// The HTTP side's only door to the network: accepts, reads, gives each request to one handler, and
// writes its answer. Single-threaded: everything happens on the thread that runs the io_context
// and must be called from there; the server makes no threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "orchestrator/http/gate.h"
#include "orchestrator/http/message.h"
#include "orchestrator/http/tls.h"

namespace boost::asio {
class io_context;
}

namespace permit::http {

class Server {
 public:
  struct Options {
    std::string address = "127.0.0.1";
    std::uint16_t port = 0;  // 0: any free one
    Limits limits;
    // Called when a connection has closed, by its peer or by this side; see Exchange::connection().
    std::function<void(std::uint64_t connection, bool ended_by_peer)> on_closed{};
    bool beyond_loopback = false;  // else other addresses are refused: who asks must have decided
    std::shared_ptr<const TlsContext> tls{};  // absent: plain HTTP
    // Called when a peer's handshake has failed, with its address.
    std::function<void(const std::string& peer, const std::string& why)> on_tls_failed{};

    bool has_tls() const { return tls != nullptr; }
  };

  // Called with one request of a connection at a time, in order; the next follows the reply.
  // It must not throw, and may reply at once.
  using Handler = std::function<void(std::shared_ptr<Exchange>)>;

  // Listens when it returns. Throws Error if the address may not be, or cannot be bound.
  // `io` must outlive the server.
  Server(boost::asio::io_context& io, const Options& options, Handler handler);

  // Closes every connection without a word: no reply, no on_gone. Exchanges still held by others
  // become no-ops.
  ~Server();

  std::uint16_t port() const;

  // For connections to come. Not where there was none, as plain HTTP is never mixed with TLS.
  void use_tls(std::shared_ptr<const TlsContext> tls);

  // A graceful stop is stop_accepting(), close_idle(), run the loop until in_flight() is 0 or
  // patience ends, then destroy. From stop_accepting() on every answer closes its connection.
  void stop_accepting();
  void close_idle();

  // Requests whose answer is not yet wholly handed to the kernel.
  std::size_t in_flight() const;
  bool idle() const { return in_flight() == 0; }

  std::size_t connections() const;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace permit::http
