// One accepted connection: bytes in, requests out, one at a time; and the Exchange it hands out.
// Private to the server. Belongs to the server's thread.
//
//   handshake (TLS only) ──► idle
//
//   idle ──first byte──► head ──► body ──► serving ──reply──► writing ──► idle
//     │                   │        │                            │
//     ▼ deadline          └─ refused, too slow ──► writing ─────┴─ close ──► draining ──► closed
//   closed
//
// From serving an answer may also go on as a stream: streaming ── close, or the end ──► as above.
//
// Reading needs no buffer of its own: it goes through one scratch buffer of the server, and only
// what cannot be used yet (half a head, pipelined requests) is kept. A parked poll holds none.
#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "orchestrator/http/gate.h"
#include "orchestrator/http/message.h"
#include "orchestrator/http/tls.h"
#include "orchestrator/http/wire.h"

namespace permit::http {

using SteadyTime = std::chrono::steady_clock::time_point;

class Connection;

// What the connections of one server share; owned by the server.
struct Shared {
  Shared(boost::asio::io_context& io_context, Limits the_limits,
         std::function<void(std::shared_ptr<Exchange>)> the_handler)
      : io(io_context),
        ready_set(io_context),
        limits(std::move(the_limits)),
        handler(std::move(the_handler)) {}

  boost::asio::io_context& io;
  ReadySet ready_set;
  Limits limits;
  std::function<void(std::shared_ptr<Exchange>)> handler;
  std::vector<std::shared_ptr<Connection>> connections;  // each knows its place
  bool stopping = false;
  std::uint64_t connections_made = 0;
  std::function<void(std::uint64_t connection, bool ended_by_peer)> on_closed;
  std::shared_ptr<const TlsContext> tls;  // of connections to come; none: plain HTTP
  std::function<void(const std::string& peer, const std::string& why)> on_tls_failed;
  std::vector<char> input = std::vector<char>(64 * 1024);  // scratch of the connection that reads
  std::string output;                                      // scratch of the one that answers
};

class ConnectionExchange;

class Connection final : public std::enable_shared_from_this<Connection>, ReadySet::Member {
 public:
  // Takes the socket over.
  Connection(int socket, std::string peer, Shared& shared);

  // Enters the list of `shared` and waits for the handshake or the first request. False, and
  // closed, if the system has no room to wait for it.
  bool start();

  std::uint64_t number() const { return number_; }

  // Answers and closes, in place of whatever the peer asked.
  void refuse(const Refusal& refusal);

  // Closes if a deadline has passed or the body comes too slowly.
  void sweep(SteadyTime now);

  // Nothing received of a next request, nothing owed for the last.
  bool idle() const { return phase_ == Phase::idle; }
  bool in_flight() const { return exchange_ != nullptr || phase_ == Phase::writing; }

  // A stream's side of it; see Stream.
  bool is_streaming() const { return phase_ == Phase::streaming; }
  bool stream_is_clear() const { return streamed_ == nullptr; }
  void send(std::shared_ptr<const std::string> chunk);
  void end_stream();

  // Closes at once and leaves the list. An unanswered exchange is told that its peer has gone.
  void close();

  // The same without telling.
  void abandon();

 private:
  friend class ConnectionExchange;
  enum class Phase : std::uint8_t {
    handshake,
    idle,
    head,
    body,
    serving,
    writing,
    streaming,
    draining,
    closed
  };

  // An answer, or the rest of one, that the kernel did not take at once.
  struct Outgoing {
    std::string bytes;
    std::size_t sent = 0;
  };

  bool receiving() const { return phase_ <= Phase::body && phase_ != Phase::handshake; }
  void enter(Phase phase, std::chrono::milliseconds time_max);

  bool reads() const;
  bool writes() const { return outgoing_ != nullptr || streamed_ != nullptr; }
  void watch();
  void on_ready(Readiness ready) override;
  void on_readable();
  bool shake_hands();
  bool read_some();
  void on_end(bool reset);
  void on_input(std::string_view bytes);

  // These return how many bytes of `input` they used up.
  std::size_t process(std::string_view input);
  std::size_t take_head(std::string_view input);
  std::size_t take_body(std::string_view input);
  void process_pending();
  void begin_body(Head head, std::size_t come);  // of the body already
  void send_continue();
  void dispatch();

  void answer(Response response);
  bool begin_stream(const Response& response);
  void write_streamed();
  void keep_unsent(std::size_t sent, std::string body);
  void on_writable();
  void write_outgoing();
  void answer_written();
  void queue_pending();
  void drain();
  void gone_if_unanswered();
  void leave();

  Shared& shared_;  // not touched once closed: the server may be gone
  Wire wire_;
  std::string peer_;
  const std::uint64_t number_;
  std::size_t place_ = 0;  // in shared_.connections

  Phase phase_ = Phase::idle;
  Readiness awaited_ = not_ready;  // by the socket, in the ready set
  bool processing_ = false;        // process() is on the stack
  bool queued_ = false;            // process_pending() has a turn of the loop to come
  bool input_ended_ = false;
  bool keep_alive_ = false;
  bool head_only_ = false;  // the request is HEAD
  SteadyTime deadline_;     // of the phase; none while serving

  std::string pending_;                           // received, not used yet
  std::unique_ptr<HeadReader> head_reader_;       // of a head that has come in part
  std::shared_ptr<ConnectionExchange> incoming_;  // while in body
  std::uint64_t body_size_ = 0;
  std::size_t drained_size_ = 0;
  ConnectionExchange* exchange_ = nullptr;       // while serving; owned by whoever will reply
  std::unique_ptr<Outgoing> outgoing_;           // while writing
  std::shared_ptr<const std::string> streamed_;  // while streaming: what is on its way out
  std::size_t streamed_size_ = 0;                // of it, what has left
};

}  // namespace permit::http
