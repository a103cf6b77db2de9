// One unary gRPC call after the other on an HTTP/2 connection without TLS, and as much of protobuf
// as locks take.
#pragma once

#ifdef PERMIT_BENCH_NGHTTP2

#include <nghttp2/nghttp2.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "tests/bench/peers/stream.h"

namespace permit::bench {

// --- Protobuf: fields, in a message that is a string ---

void put_number(std::string& message, std::uint32_t field, std::uint64_t value);
void put_bytes(std::string& message, std::uint32_t field, std::string_view value);
// The last number of that field; 0 if there is none.
std::uint64_t number_in(std::string_view message, std::uint32_t field);

// --- gRPC ---

class GrpcConnection {
 public:
  explicit GrpcConnection(std::uint16_t port);
  int socket() const { return stream_.socket(); }

  // `method`: "/package.Service/Method". Nothing else may be under way.
  void call(const std::string& method, const std::string& message);
  // Reads what has come: the response's message, once it is complete. Throws unless its status is
  // 0.
  std::optional<std::string> receive();
  // Asks and waits.
  std::string wait(const std::string& method, const std::string& message);

 private:
  struct Callbacks;
  struct Delete {
    void operator()(nghttp2_session* session) const { nghttp2_session_del(session); }
  };
  void flush();

  Stream stream_;
  std::unique_ptr<nghttp2_session, Delete> session_;
  std::string authority_;
  std::string request_;
  std::size_t request_sent_ = 0;
  std::string response_;
  std::string http_status_;
  std::string grpc_status_;
  bool complete_ = false;
};

}  // namespace permit::bench

#endif
