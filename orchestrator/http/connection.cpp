#include "orchestrator/http/connection.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

#include "orchestrator/protocol/ensure.h"

namespace permit::http {

namespace asio = boost::asio;
using boost::system::error_code;

namespace {

// A turn of one connection, so that a flood of one does not starve the others.
constexpr int reads_per_turn_max = 4;
constexpr int records_per_turn_max = 16;
// With this one TLS begins; no request does.
constexpr char tls_first_byte = 0x16;
// Up to here a body is copied behind its head: the kernel takes one piece faster than two.
constexpr std::size_t one_piece_bytes_max = 16 * 1024;
// Room made for a body on the word of its Content-Length; the rest grows with what arrives.
constexpr std::uint64_t body_bytes_reserved_max = 65'536;

bool would_block(const error_code& error) {
  return error == asio::error::would_block || error == asio::error::try_again;
}

std::shared_ptr<const std::string> make_last_chunk() {
  static const auto chunk = std::make_shared<const std::string>("0\r\n\r\n");
  return chunk;
}

Response dropped_response() {
  return error_response(500, 13, "REPLY_MISSING", "The server failed to answer this request.");
}

}  // namespace

class ConnectionStream final : public Stream {
 public:
  explicit ConnectionStream(std::shared_ptr<Connection> connection)
      : connection_(std::move(connection)) {}
  ~ConnectionStream() override {
    if (is_open()) connection_->close();
  }

  bool is_open() const override { return connection_->is_streaming(); }
  bool is_clear() const override { return connection_->stream_is_clear(); }
  void send(std::shared_ptr<const std::string> chunk) override {
    connection_->send(std::move(chunk));
  }
  void end() override { connection_->end_stream(); }

 private:
  const std::shared_ptr<Connection> connection_;
};

class ConnectionExchange final : public Exchange {
 public:
  ConnectionExchange(asio::io_context& io, Request request, std::uint64_t number)
      : io_(io), request_(std::move(request)), number_(number) {}

  ~ConnectionExchange() override {
    if (connection_ != nullptr) reply(dropped_response());
  }

  Request& request() override { return request_; }
  std::uint64_t connection() const override { return number_; }

  void reply(Response response) override {
    ENSURE(!replied_);
    replied_ = true;
    // Destroyed last: the callback may hold the last owner of this exchange.
    const std::function<void()> dropped = std::exchange(on_gone_, nullptr);
    if (Connection* connection = detach()) connection->answer(std::move(response));
  }

  std::unique_ptr<Stream> stream(Response response) override {
    ENSURE(!replied_);
    replied_ = true;
    const std::function<void()> dropped = std::exchange(on_gone_, nullptr);
    Connection* connection = detach();
    if (connection == nullptr || !connection->begin_stream(response)) return nullptr;
    return std::make_unique<ConnectionStream>(connection->shared_from_this());
  }

  void on_gone(std::function<void()> callback) override {
    if (connection_ == nullptr) {
      if (gone_ && !replied_) asio::post(io_, std::move(callback));
      return;
    }
    on_gone_ = std::move(callback);
    if (connection_->input_ended_) {
      asio::post(io_, [connection = connection_->shared_from_this()] {
        connection->gone_if_unanswered();
      });
    }
  }

  void park() override { request_ = Request(); }

  void attach(Connection& connection) { connection_ = &connection; }

  Connection* detach() {
    if (connection_ != nullptr) connection_->exchange_ = nullptr;
    return std::exchange(connection_, nullptr);
  }

  // Dropping the callback may drop the last owner of this exchange: touch nothing after.
  void abandon() {
    detach();
    const std::function<void()> dropped = std::exchange(on_gone_, nullptr);
  }

  // The peer has gone. What is returned is to be called once that is settled.
  std::function<void()> take_on_gone() {
    gone_ = true;
    return std::exchange(on_gone_, nullptr);
  }

  bool wants_to_know() const { return on_gone_ != nullptr; }

 private:
  asio::io_context& io_;
  Request request_;
  const std::uint64_t number_;
  Connection* connection_ = nullptr;  // until the reply, or until it has closed
  std::function<void()> on_gone_;
  bool replied_ = false;
  bool gone_ = false;
};

Connection::Connection(int socket, std::string peer, Shared& shared)
    : shared_(shared), wire_(socket), peer_(std::move(peer)), number_(++shared.connections_made) {}

bool Connection::start() {
  place_ = shared_.connections.size();
  shared_.connections.push_back(shared_from_this());
  if (shared_.tls) {
    enter(Phase::handshake, shared_.limits.handshake_time_max);
  } else {
    enter(Phase::idle, shared_.limits.head_time_max);
  }
  awaited_ = readable;
  const bool has_room = shared_.ready_set.add(wire_.socket(), awaited_, *this);
  if (!has_room) abandon();
  return has_room;
}

void Connection::enter(Phase phase, std::chrono::milliseconds time_max) {
  phase_ = phase;
  deadline_ = std::chrono::steady_clock::now() + time_max;
}

// ---- input

// While an answer is outstanding a full pending_ stops reading; the reply starts it again.
bool Connection::reads() const {
  if (input_ended_) return false;
  const bool answering = phase_ == Phase::serving || phase_ == Phase::writing;
  return !answering || pending_.size() < shared_.limits.pipelined_bytes_max;
}

// To be called when what it waits for may have changed.
void Connection::watch() {
  if (phase_ == Phase::closed) return;
  const Readiness awaited =
      (reads() ? wire_.reads_when() : not_ready) | (writes() ? wire_.writes_when() : not_ready);
  if (awaited == awaited_) return;
  awaited_ = awaited;
  shared_.ready_set.change(wire_.socket(), awaited, *this);
}

void Connection::on_ready(Readiness ready) {
  const std::shared_ptr<Connection> self = shared_from_this();
  const bool is_broken = (ready & broken) != 0;
  if (is_broken && !reads() && !writes()) {
    input_ended_ = true;
    return close();
  }
  if (writes() && (is_broken || (ready & wire_.writes_when()) != 0)) on_writable();
  if (phase_ == Phase::closed) return;
  if (reads() && (is_broken || (ready & wire_.reads_when()) != 0)) on_readable();
  watch();
}

void Connection::on_readable() {
  bool has_more = phase_ != Phase::handshake || shake_hands();
  const int turns = wire_.is_tls() ? records_per_turn_max : reads_per_turn_max;
  for (int turn = 0; has_more && turn < turns; ++turn) has_more = read_some();
}

// True once it is done. A peer that has failed is drained, so that it gets to read why.
bool Connection::shake_hands() {
  error_code error;
  if (!wire_.is_tls()) {
    const char first = wire_.peek(error);
    if (!error && first != tls_first_byte) {
      refuse({400, "TLS_REQUIRED", "This port speaks TLS: the address begins with https://."});
      return false;
    }
    if (!error) wire_.begin_tls(*shared_.tls);
  }
  if (!error) wire_.step_handshake(error);
  if (would_block(error)) return false;
  if (!error) {
    enter(Phase::idle, shared_.limits.head_time_max);
    return true;
  }
  if (!wire_.is_tls()) {
    close();
    return false;
  }
  if (shared_.on_tls_failed) shared_.on_tls_failed(peer_, wire_.handshake_failure());
  drain();
  return false;
}

// True if there may be more to read.
bool Connection::read_some() {
  std::vector<char>& input = shared_.input;
  error_code error;
  const std::size_t size =
      phase_ == Phase::draining ? wire_.discard_some(input, error) : wire_.read_some(input, error);
  if (would_block(error)) return false;
  if (error) {
    on_end(error != asio::error::eof);
    return false;
  }
  on_input(std::string_view(input.data(), size));
  return (size == input.size() || wire_.is_tls()) && receiving();
}

// A peer that only closed its sending side gets the answers it is owed, unless its exchange wants
// to know of the end: a long poll's peer never closes halfway.
void Connection::on_end(bool reset) {
  input_ended_ = true;
  const bool answering = phase_ == Phase::writing || exchange_ != nullptr || queued_;
  const bool waited_for = exchange_ != nullptr && exchange_->wants_to_know();
  if (reset || waited_for || !answering) close();
}

void Connection::gone_if_unanswered() {
  if (exchange_ != nullptr) close();
}

void Connection::on_input(std::string_view bytes) {
  if (phase_ == Phase::streaming) return;  // nothing that comes behind such a request counts
  if (phase_ == Phase::draining) {
    drained_size_ += bytes.size();
    if (drained_size_ > shared_.limits.drain_bytes_max) close();
  } else if (pending_.empty()) {
    const std::size_t used = process(bytes);
    if (used < bytes.size()) pending_.assign(bytes.substr(used));
  } else {
    pending_ += bytes;
    if (receiving()) process_pending();
  }
}

void Connection::process_pending() {
  std::string input = std::exchange(pending_, std::string());
  const std::size_t used = process(input);
  if (used < input.size()) pending_ = std::move(input.erase(0, used));
}

std::size_t Connection::process(std::string_view input) {
  const std::size_t size = input.size();
  processing_ = true;
  while (!input.empty() && receiving()) {
    const std::size_t used = phase_ == Phase::body ? take_body(input) : take_head(input);
    if (used == 0) break;
    input.remove_prefix(used);
  }
  processing_ = false;
  const bool finished = phase_ >= Phase::streaming;
  return finished ? size : size - input.size();
}

std::size_t Connection::take_head(std::string_view input) {
  std::optional<HeadReader> fresh;  // most heads come in one piece
  HeadReader& reader = head_reader_ ? *head_reader_ : fresh.emplace(shared_.limits);
  std::optional<HeadResult> result = reader.read(input);
  if (!result) {
    if (fresh) {
      enter(Phase::head, shared_.limits.head_time_max);
      head_reader_ = std::make_unique<HeadReader>(std::move(*fresh));
    }
    return 0;
  }
  head_reader_.reset();
  if (const Refusal* refusal = std::get_if<Refusal>(&*result)) {
    refuse(*refusal);
    return input.size();
  }
  Head& head = std::get<Head>(*result);
  const std::size_t used = head.size;
  begin_body(std::move(head), input.size() - used);
  return used;
}

void Connection::begin_body(Head head, std::size_t come) {
  keep_alive_ = head.keep_alive;
  head_only_ = head.request.method == "HEAD";
  body_size_ = head.content_length;
  head.request.peer = peer_;
  incoming_ = std::make_shared<ConnectionExchange>(shared_.io, std::move(head.request), number_);
  if (body_size_ == 0) return dispatch();
  incoming_->request().body.reserve(std::min(body_size_, body_bytes_reserved_max));
  phase_ = Phase::body;
  if (come < body_size_) enter(Phase::body, shared_.limits.body_time_max);
  if (head.expects_continue) send_continue();
}

// Nothing else is on its way out, so it fits the send buffer; a peer that misses it sends anyway.
void Connection::send_continue() {
  error_code ignored;
  wire_.write_some("HTTP/1.1 100 Continue\r\n\r\n", {}, ignored);
  if (ignored && wire_.is_tls()) close();  // half a record is under way, which nothing can replace
}

std::size_t Connection::take_body(std::string_view input) {
  std::string& body = incoming_->request().body;
  const std::size_t used = std::min<std::size_t>(input.size(), body_size_ - body.size());
  body += input.substr(0, used);
  if (body.size() == body_size_) dispatch();
  return used;
}

void Connection::dispatch() {
  phase_ = Phase::serving;
  std::shared_ptr<ConnectionExchange> exchange = std::move(incoming_);
  exchange->attach(*this);
  exchange_ = exchange.get();
  shared_.handler(std::move(exchange));
}

// ---- output

void Connection::refuse(const Refusal& refusal) {
  keep_alive_ = false;
  head_only_ = false;
  head_reader_.reset();
  incoming_.reset();
  answer(refusal_response(refusal));
}

void Connection::answer(Response response) {
  const bool last = input_ended_ && !processing_ && pending_.empty();
  if (shared_.stopping || last) keep_alive_ = false;
  std::string& head = shared_.output;
  head.clear();
  append_response_head(head, response, keep_alive_ ? After::keep_alive : After::close);
  if (head_only_ || !status_has_body(response.status)) response.body.clear();
  if (response.body.size() <= one_piece_bytes_max) {
    head += response.body;
    response.body.clear();
  }
  phase_ = Phase::writing;

  error_code error;
  const std::size_t sent = wire_.write_some(head, response.body, error);
  if (error && !would_block(error)) return close();
  if (sent == head.size() + response.body.size()) return answer_written();
  keep_unsent(sent, std::move(response.body));
}

// False if the peer has gone.
bool Connection::begin_stream(const Response& response) {
  keep_alive_ = false;
  auto head = std::make_shared<std::string>();
  append_stream_head(*head, response);
  phase_ = Phase::streaming;
  pending_ = std::string();
  send(std::move(head));
  if (phase_ == Phase::streaming && input_ended_) close();
  return phase_ == Phase::streaming;
}

void Connection::send(std::shared_ptr<const std::string> chunk) {
  if (phase_ != Phase::streaming) return;
  ENSURE(streamed_ == nullptr);
  streamed_ = std::move(chunk);
  streamed_size_ = 0;
  enter(Phase::streaming, shared_.limits.write_time_max);
  write_streamed();
}

void Connection::write_streamed() {
  error_code error;
  const auto left = std::string_view(*streamed_).substr(streamed_size_);
  const std::size_t sent = wire_.write_some(left, {}, error);
  if (error && !would_block(error)) return close();
  streamed_size_ += sent;
  if (sent > 0) enter(Phase::streaming, shared_.limits.write_time_max);
  if (streamed_size_ == streamed_->size()) streamed_.reset();
  watch();
}

void Connection::end_stream() {
  if (phase_ != Phase::streaming) return;
  if (streamed_ == nullptr) send(make_last_chunk());
  if (streamed_ != nullptr) return close();
  if (phase_ == Phase::streaming) drain();
}

void Connection::keep_unsent(std::size_t sent, std::string body) {
  const std::string& head = shared_.output;
  outgoing_ = std::make_unique<Outgoing>();
  if (sent < head.size()) {
    outgoing_->bytes = head.substr(sent) + body;
  } else {
    outgoing_->bytes = std::move(body);
    outgoing_->sent = sent - head.size();
  }
  enter(Phase::writing, shared_.limits.write_time_max);
  watch();
}

void Connection::on_writable() {
  if (phase_ == Phase::streaming) {
    write_streamed();
  } else {
    write_outgoing();
  }
}

void Connection::write_outgoing() {
  error_code error;
  Outgoing& outgoing = *outgoing_;
  const auto left = std::string_view(outgoing.bytes).substr(outgoing.sent);
  outgoing.sent += wire_.write_some(left, {}, error);
  if (error && !would_block(error)) return close();
  if (outgoing.sent < outgoing.bytes.size()) return;
  outgoing_.reset();
  answer_written();
}

void Connection::answer_written() {
  if (!keep_alive_) return drain();
  enter(Phase::idle, shared_.limits.idle_time_max);
  if (processing_) return;
  if (!pending_.empty()) queue_pending();
  watch();
}

// Pipelined requests wait for a turn of their own: this may run inside another request's handler.
void Connection::queue_pending() {
  queued_ = true;
  asio::post(shared_.io, [self = shared_from_this()] {
    self->queued_ = false;
    if (!self->receiving()) return;
    self->process_pending();
    if (self->input_ended_ && self->receiving()) self->close();
  });
}

// Closing with unread input would reset the connection, and the peer could lose the answer. So:
// end our side, and discard what still comes until the peer ends its own, within bounds.
void Connection::drain() {
  error_code error;
  wire_.end_sending(error);
  if (error || input_ended_) return close();
  pending_ = std::string();
  enter(Phase::draining, shared_.limits.drain_time_max);
  watch();
}

// ---- end

void Connection::sweep(SteadyTime now) {
  if (phase_ == Phase::serving || phase_ == Phase::closed) return;
  if (phase_ == Phase::streaming && streamed_ == nullptr) return;
  bool late = now >= deadline_;
  if (phase_ == Phase::body && !late) {
    const auto passed = now - (deadline_ - shared_.limits.body_time_max);
    const double seconds = std::chrono::duration<double>(passed).count();
    const double wanted = seconds * static_cast<double>(shared_.limits.body_rate_min);
    late = passed >= shared_.limits.body_grace_time &&
           static_cast<double>(incoming_->request().body.size()) < wanted;
  }
  if (!late) return;
  if (phase_ == Phase::head || phase_ == Phase::body) {
    return refuse({408, "REQUEST_TOO_SLOW", "The request did not arrive in time."});
  }
  if (phase_ == Phase::writing || phase_ == Phase::streaming) {
    wire_.reset_on_close();
  }
  close();
}

void Connection::leave() {
  std::vector<std::shared_ptr<Connection>>& list = shared_.connections;
  list.back()->place_ = place_;
  std::swap(list[place_], list.back());
  list.pop_back();
}

void Connection::abandon() {
  if (phase_ == Phase::closed) return;
  const std::shared_ptr<Connection> self = shared_from_this();
  phase_ = Phase::closed;
  shared_.ready_set.forget(*this);
  wire_.close();
  leave();
  if (exchange_ != nullptr) exchange_->abandon();
  head_reader_.reset();
  incoming_.reset();
  outgoing_.reset();
  streamed_.reset();
  pending_ = std::string();
}

void Connection::close() {
  std::function<void()> on_gone;
  if (exchange_ != nullptr) on_gone = exchange_->take_on_gone();
  if (phase_ != Phase::closed && shared_.on_closed) shared_.on_closed(number_, input_ended_);
  abandon();
  if (on_gone) on_gone();
}

}  // namespace permit::http
