// The Transport of a worker that lives inside the server: the same calls through the same routes,
// without a socket. The server's thread answers; any other may call.
#pragma once

#include <boost/asio/io_context.hpp>
#include <memory>
#include <string>
#include <string_view>

#include "orchestrator/http/routes.h"
#include "worker/client.h"

namespace permit::cli {

class InProcessTransport : public worker::Transport {
 public:
  // Both outlive it, and `io` runs as long as anybody calls, or until close().
  InProcessTransport(boost::asio::io_context& io, http::Routes& routes);

  std::string call(std::string_view rpc, const std::string& request) override;
  // Nobody answers any more: calls fail, those that wait and those to come. From any thread.
  void close();

 private:
  struct Waiting;
  class Exchange;

  boost::asio::io_context& io_;
  http::Routes& routes_;
  const std::shared_ptr<Waiting> waiting_;  // exchanges may outlive this
};

}  // namespace permit::cli
