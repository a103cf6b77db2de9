#include "tests/bench/peers/grpc.h"

#ifdef PERMIT_BENCH_NGHTTP2

#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>

namespace permit::bench {

namespace {

constexpr std::size_t prefix_size = 5;  // of a gRPC message: whether it is compressed; its size

void put_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

std::uint64_t take_varint(std::string_view& bytes) {
  std::uint64_t value = 0;
  for (unsigned shift = 0; !bytes.empty() && shift < 64; shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes.front());
    bytes.remove_prefix(1);
    value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  throw std::runtime_error("gRPC: a number that does not end");
}

[[noreturn]] void fail(const char* what, int error) {
  throw std::runtime_error("gRPC: " + std::string(what) + ": " + nghttp2_strerror(error));
}

nghttp2_nv header(std::string_view name, std::string_view value) {
  const auto bytes = [](std::string_view text) {
    return const_cast<std::uint8_t*>(reinterpret_cast<const std::uint8_t*>(text.data()));
  };
  return {bytes(name), bytes(value), name.size(), value.size(), NGHTTP2_NV_FLAG_NONE};
}

}  // namespace

void put_number(std::string& message, std::uint32_t field, std::uint64_t value) {
  put_varint(message, field << 3);
  put_varint(message, value);
}

void put_bytes(std::string& message, std::uint32_t field, std::string_view value) {
  put_varint(message, field << 3 | 2);
  put_varint(message, value.size());
  message += value;
}

std::uint64_t number_in(std::string_view message, std::uint32_t field) {
  std::uint64_t found = 0;
  while (!message.empty()) {
    const std::uint64_t key = take_varint(message);
    const std::uint64_t value = take_varint(message);
    if ((key & 7) == 2) {
      if (value > message.size()) throw std::runtime_error("gRPC: a field that does not end");
      message.remove_prefix(value);
    } else if ((key & 7) != 0) {
      throw std::runtime_error("gRPC: a field of another kind");
    } else if (key >> 3 == field) {
      found = value;
    }
  }
  return found;
}

// What nghttp2 calls. They may not throw: what they see is judged in receive().
struct GrpcConnection::Callbacks {
  static GrpcConnection& self(void* user) { return *static_cast<GrpcConnection*>(user); }

  static int on_header(nghttp2_session*, const nghttp2_frame*, const std::uint8_t* name,
                       std::size_t name_size, const std::uint8_t* value, std::size_t value_size,
                       std::uint8_t, void* user) {
    const std::string_view key(reinterpret_cast<const char*>(name), name_size);
    const std::string_view text(reinterpret_cast<const char*>(value), value_size);
    if (key == ":status") self(user).http_status_ = text;
    if (key == "grpc-status") self(user).grpc_status_ = text;
    return 0;
  }
  static int on_data(nghttp2_session*, std::uint8_t, std::int32_t, const std::uint8_t* data,
                     std::size_t size, void* user) {
    self(user).response_.append(reinterpret_cast<const char*>(data), size);
    return 0;
  }
  static int on_close(nghttp2_session*, std::int32_t, std::uint32_t, void* user) {
    self(user).complete_ = true;
    return 0;
  }
  static ssize_t read_request(nghttp2_session*, std::int32_t, std::uint8_t* buffer,
                              std::size_t size, std::uint32_t* flags, nghttp2_data_source*,
                              void* user) {
    GrpcConnection& connection = self(user);
    const std::string& request = connection.request_;
    size = std::min(size, request.size() - connection.request_sent_);
    std::memcpy(buffer, request.data() + connection.request_sent_, size);
    connection.request_sent_ += size;
    if (connection.request_sent_ == request.size()) *flags |= NGHTTP2_DATA_FLAG_EOF;
    return static_cast<ssize_t>(size);
  }
};

GrpcConnection::GrpcConnection(std::uint16_t port)
    : stream_(port), authority_("127.0.0.1:" + std::to_string(port)) {
  nghttp2_session_callbacks* callbacks = nullptr;
  nghttp2_session_callbacks_new(&callbacks);
  nghttp2_session_callbacks_set_on_header_callback(callbacks, Callbacks::on_header);
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, Callbacks::on_data);
  nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, Callbacks::on_close);
  nghttp2_session* session = nullptr;
  const int error = nghttp2_session_client_new(&session, callbacks, this);
  nghttp2_session_callbacks_del(callbacks);
  if (error != 0) fail("no session", error);
  session_.reset(session);
  nghttp2_submit_settings(session_.get(), NGHTTP2_FLAG_NONE, nullptr, 0);
  flush();
}

void GrpcConnection::flush() {
  std::string bytes;
  for (;;) {
    const std::uint8_t* data = nullptr;
    const ssize_t size = nghttp2_session_mem_send(session_.get(), &data);
    if (size < 0) fail("cannot send", static_cast<int>(size));
    if (size == 0) break;
    bytes.append(reinterpret_cast<const char*>(data), static_cast<std::size_t>(size));
  }
  if (!bytes.empty()) stream_.send(bytes);
}

void GrpcConnection::call(const std::string& method, const std::string& message) {
  request_.assign(1, '\0');  // not compressed
  for (int shift = 24; shift >= 0; shift -= 8) {
    request_ += static_cast<char>(message.size() >> shift);
  }
  request_ += message;
  request_sent_ = 0;
  response_.clear();
  http_status_.clear();
  grpc_status_.clear();
  complete_ = false;
  const std::array<nghttp2_nv, 6> headers = {
      header(":method", "POST"), header(":scheme", "http"),
      header(":path", method),   header(":authority", authority_),
      header("te", "trailers"),  header("content-type", "application/grpc")};
  nghttp2_data_provider provider{};
  provider.read_callback = Callbacks::read_request;
  const std::int32_t stream = nghttp2_submit_request(session_.get(), nullptr, headers.data(),
                                                     headers.size(), &provider, nullptr);
  if (stream < 0) fail("cannot ask", stream);
  flush();
}

std::optional<std::string> GrpcConnection::receive() {
  stream_.read();
  std::string& received = stream_.received();
  const ssize_t taken = nghttp2_session_mem_recv(
      session_.get(), reinterpret_cast<const std::uint8_t*>(received.data()), received.size());
  if (taken < 0) fail("cannot read", static_cast<int>(taken));
  received.clear();
  flush();
  if (!complete_) return std::nullopt;
  complete_ = false;
  if (http_status_ != "200" || grpc_status_ != "0" || response_.size() < prefix_size) {
    throw std::runtime_error("gRPC: HTTP status " + http_status_ + ", status " + grpc_status_);
  }
  return response_.substr(prefix_size);
}

std::string GrpcConnection::wait(const std::string& method, const std::string& message) {
  call(method, message);
  for (;;) {
    wait_readable(socket());
    if (std::optional<std::string> response = receive()) return *response;
  }
}

}  // namespace permit::bench

#endif
