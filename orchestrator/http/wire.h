// What a connection reads and writes: the bytes of its socket, or those that TLS carries in it.
// Never waits. Private to the server. Belongs to the server's thread.
#pragma once

#include <boost/system/error_code.hpp>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "orchestrator/http/ready_set.h"

struct ssl_st;

namespace permit::http {

class TlsContext;

class Wire {
 public:
  using Error = boost::system::error_code;

  // Takes the socket over.
  explicit Wire(int socket) : socket_(socket) {}
  ~Wire() { close(); }
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  int socket() const { return socket_; }
  bool is_tls() const { return tls_ != nullptr; }

  // The first byte that has come, which stays to be read.
  char peek(Error& error);

  // From here on everything goes through TLS. The handshake is to be stepped until it does not
  // fail with would_block. One that has failed has told the peer why.
  void begin_tls(const TlsContext& context);
  void step_handshake(Error& error);
  std::string handshake_failure() const { return failure_; }

  // Both fail with would_block if there is nothing to read, or no room; then what to wait for is
  // reads_when() or writes_when(). What a write that would block was given is to be given again.
  std::size_t read_some(std::span<char> room, Error& error);
  std::size_t write_some(std::string_view head, std::string_view body, Error& error);
  Readiness reads_when() const { return read_wants_write_ ? writable : readable; }
  Readiness writes_when() const { return write_wants_read_ ? readable : writable; }

  // Ends our side. What still comes is to be discarded with discard_some().
  void end_sending(Error& error);
  std::size_t discard_some(std::span<char> room, Error& error);

  // Closing will reset the connection, so that the kernel does not keep what the peer does not
  // read.
  void reset_on_close();
  void close();

 private:
  struct Free {
    void operator()(ssl_st* tls) const;
  };
  Error error_of(int result);
  std::size_t write_tls(std::string_view bytes, Error& error);
  void say_goodbye();

  int socket_;  // -1: closed
  std::unique_ptr<ssl_st, Free> tls_;
  std::string failure_;            // why the handshake failed
  bool established_ = false;       // the handshake is over, and nothing has failed since
  bool read_wants_write_ = false;  // an answer to the peer's change of keys has to leave first
  bool write_wants_read_ = false;  // half of the peer's change of keys has come
  bool write_blocked_ = false;     // half a record waits to leave
};

}  // namespace permit::http
