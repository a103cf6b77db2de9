#include "orchestrator/http/wire.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <boost/asio/error.hpp>
#include <cerrno>
#include <cstdint>
#include <new>
#include <utility>

#include "orchestrator/http/tls.h"

namespace permit::http {

namespace asio = boost::asio;
using boost::system::error_code;

namespace {

constexpr std::size_t record_bytes_max = 16 * 1024;

// ---- OpenSSL's way to the socket. Its own would raise SIGPIPE when the peer has gone.

int socket_of(BIO* bio) {
  return static_cast<int>(std::bit_cast<std::intptr_t>(BIO_get_data(bio)));
}

int transferred(BIO* bio, ssize_t size, int retry) {
  BIO_clear_retry_flags(bio);
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_flags(bio, retry);
  return static_cast<int>(size);
}

int bio_write(BIO* bio, const char* bytes, int size) {
  const ssize_t sent =
      ::send(socket_of(bio), bytes, static_cast<std::size_t>(size), MSG_NOSIGNAL | MSG_DONTWAIT);
  return transferred(bio, sent, BIO_FLAGS_WRITE | BIO_FLAGS_SHOULD_RETRY);
}

int bio_read(BIO* bio, char* room, int size) {
  const ssize_t got = ::recv(socket_of(bio), room, static_cast<std::size_t>(size), MSG_DONTWAIT);
  if (got == 0) BIO_set_flags(bio, BIO_FLAGS_IN_EOF);
  return transferred(bio, got, BIO_FLAGS_READ | BIO_FLAGS_SHOULD_RETRY);
}

long bio_control(BIO* bio, int command, long, void*) {
  if (command == BIO_CTRL_EOF) return BIO_test_flags(bio, BIO_FLAGS_IN_EOF) != 0 ? 1 : 0;
  return command == BIO_CTRL_FLUSH || command == BIO_CTRL_DUP ? 1 : 0;
}

BIO_METHOD* socket_method() {
  static BIO_METHOD* const method = [] {
    BIO_METHOD* made =
        BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket without signals");
    if (made == nullptr) throw std::bad_alloc();
    BIO_meth_set_write(made, bio_write);
    BIO_meth_set_read(made, bio_read);
    BIO_meth_set_ctrl(made, bio_control);
    return made;
  }();
  return method;
}

// ---- The socket itself.

// What a call on the socket returned: a size, or -1 and errno.
std::size_t size_of(ssize_t result, error_code& error) {
  error = result < 0 ? error_code(errno, boost::system::system_category()) : error_code();
  return result < 0 ? 0 : static_cast<std::size_t>(result);
}

std::size_t receive(int socket, std::span<char> room, int flags, error_code& error) {
  const std::size_t size =
      size_of(::recv(socket, room.data(), room.size(), flags | MSG_DONTWAIT), error);
  if (size == 0 && !error) error = asio::error::eof;
  return size;
}

iovec piece_of(std::string_view bytes) {
  return {const_cast<char*>(bytes.data()), bytes.size()};  // which is only read
}

std::string why_it_failed(const SSL* tls, const error_code& error) {
  const long verified = SSL_get_verify_result(tls);
  if (verified != X509_V_OK) return X509_verify_cert_error_string(verified);
  const char* reason = ERR_reason_error_string(ERR_peek_error());
  return reason != nullptr ? reason : error.message();
}

}  // namespace

void Wire::Free::operator()(ssl_st* tls) const { SSL_free(tls); }

char Wire::peek(error_code& error) {
  char first = 0;
  receive(socket_, {&first, 1}, MSG_PEEK, error);
  return first;
}

void Wire::begin_tls(const TlsContext& context) {
  tls_.reset(SSL_new(context.native()));
  BIO* bio = BIO_new(socket_method());
  if (!tls_ || bio == nullptr) {
    BIO_free(bio);
    throw std::bad_alloc();
  }
  BIO_set_data(bio, std::bit_cast<void*>(static_cast<std::intptr_t>(socket_)));
  BIO_set_init(bio, 1);
  SSL_set_bio(tls_.get(), bio, bio);
  SSL_set_accept_state(tls_.get());
}

void Wire::step_handshake(error_code& error) {
  ERR_clear_error();
  errno = 0;
  const int result = SSL_do_handshake(tls_.get());
  established_ = result == 1;
  error = established_ ? error_code() : error_of(result);
  if (error && error != asio::error::would_block) failure_ = why_it_failed(tls_.get(), error);
}

// Why the call that returned `result` did not do what it should. Says in read_wants_write_ what
// readiness a read waits for.
error_code Wire::error_of(int result) {
  const int saved = errno;
  const int kind = SSL_get_error(tls_.get(), result);
  read_wants_write_ = kind == SSL_ERROR_WANT_WRITE;
  if (kind == SSL_ERROR_WANT_READ || kind == SSL_ERROR_WANT_WRITE) return asio::error::would_block;
  if (kind == SSL_ERROR_ZERO_RETURN) return asio::error::eof;
  established_ = false;
  if (kind == SSL_ERROR_SYSCALL && saved != 0) {
    return {saved, boost::system::system_category()};
  }
  return asio::error::connection_reset;
}

std::size_t Wire::read_some(std::span<char> room, error_code& error) {
  if (!is_tls()) return receive(socket_, room, 0, error);
  ERR_clear_error();
  errno = 0;
  std::size_t size = 0;
  const int result = SSL_read_ex(tls_.get(), room.data(), room.size(), &size);
  read_wants_write_ = false;
  error = result == 1 ? error_code() : error_of(result);
  return size;
}

std::size_t Wire::write_some(std::string_view head, std::string_view body, error_code& error) {
  if (!is_tls()) {
    constexpr int flags = MSG_NOSIGNAL | MSG_DONTWAIT;
    if (body.empty()) return size_of(::send(socket_, head.data(), head.size(), flags), error);
    std::array<iovec, 2> pieces = {piece_of(head), piece_of(body)};
    msghdr message{};
    message.msg_iov = pieces.data();
    message.msg_iovlen = pieces.size();
    return size_of(::sendmsg(socket_, &message, flags), error);
  }
  std::size_t sent = 0;
  if (head.size() < record_bytes_max && !body.empty()) {  // one record for what fits into one
    std::string first(head);
    first += body.substr(0, record_bytes_max - head.size());
    sent = write_tls(first, error);
    if (error || sent < first.size()) return sent;
  } else {
    sent = write_tls(head, error);
    if (error) return sent;
  }
  return sent + write_tls(body.substr(sent - head.size()), error);
}

std::size_t Wire::write_tls(std::string_view bytes, error_code& error) {
  std::size_t sent = 0;
  error = {};
  while (sent < bytes.size()) {
    ERR_clear_error();
    errno = 0;
    std::size_t size = 0;
    const int result = SSL_write_ex(tls_.get(), bytes.data() + sent, bytes.size() - sent, &size);
    write_blocked_ = result != 1;
    write_wants_read_ = false;
    if (result != 1) {
      const bool reading_waits = read_wants_write_;
      error = error_of(result);
      write_wants_read_ = error == asio::error::would_block && !read_wants_write_;
      read_wants_write_ = reading_waits;
      break;
    }
    sent += size;
  }
  return sent;
}

// That nothing more comes, so that the peer knows that it has everything.
void Wire::say_goodbye() {
  if (!established_ || write_blocked_) return;
  ERR_clear_error();
  SSL_shutdown(tls_.get());
  established_ = false;
}

void Wire::end_sending(error_code& error) {
  say_goodbye();
  read_wants_write_ = false;
  size_of(::shutdown(socket_, SHUT_WR), error);
}

std::size_t Wire::discard_some(std::span<char> room, error_code& error) {
  return receive(socket_, room, 0, error);
}

void Wire::reset_on_close() {
  const linger at_once{1, 0};
  ::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

void Wire::close() {
  say_goodbye();
  tls_.reset();
  if (socket_ >= 0) ::close(std::exchange(socket_, -1));
}

}  // namespace permit::http
