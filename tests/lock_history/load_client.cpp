#include "tests/lock_history/load_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <ctime>
#include <optional>
#include <stdexcept>

namespace permit::lock_history {

namespace {

constexpr std::size_t lines_bytes_max = 256 * 1024;
constexpr Moment pause_before_connecting = 10'000;

std::string http(std::string_view method, std::string_view path, std::string_view body) {
  std::string request(method);
  request += " /api/v1/namespaces/default/";
  request += path;
  request += " HTTP/1.1\r\nHost: localhost\r\n";
  if (!body.empty()) {
    request += "Content-Type: application/json\r\nContent-Length: ";
    request += std::to_string(body.size());
    request += "\r\n";
  }
  request += "\r\n";
  request += body;
  return request;
}

// The first member of that name in a JSON text: what follows up to its end.
std::string_view field(std::string_view json, std::string_view name) {
  const std::string key = "\"" + std::string(name) + "\":";
  const std::size_t at = json.find(key);
  if (at == json.npos) return {};
  json.remove_prefix(at + key.size());
  if (json.starts_with('"')) {
    json.remove_prefix(1);
    return json.substr(0, json.find('"'));
  }
  return json.substr(0, json.find_first_of(",}"));
}

struct Head {
  int status = 0;
  std::size_t size = 0;  // with the blank line
  std::size_t body_size = 0;
  bool last = false;
};

std::optional<Head> read_head(std::string_view bytes) {
  const std::size_t end = bytes.find("\r\n\r\n");
  if (end == bytes.npos) return std::nullopt;
  Head head;
  head.size = end + 4;
  std::from_chars(bytes.data() + 9, bytes.data() + 12, head.status);
  const std::string_view lines = bytes.substr(0, end);
  constexpr std::string_view name = "\r\nContent-Length: ";
  const std::size_t length = lines.find(name);
  if (length != lines.npos) {
    std::from_chars(bytes.data() + length + name.size(), bytes.data() + end, head.body_size);
  }
  head.last = lines.find("\r\nConnection: close") != lines.npos;
  return head;
}

}  // namespace

Moment now() {
  timespec at{};
  clock_gettime(CLOCK_MONOTONIC, &at);
  return at.tv_sec * 1'000'000 + at.tv_nsec / 1'000;
}

void Journal::pool(const std::string& name, int capacity) {
  lines_ += "pool " + name + " " + std::to_string(capacity) + "\n";
}

std::uint64_t Journal::request(Moment at, std::string_view what) {
  ++operations_;
  lines_ += "> " + std::to_string(at) + " " + std::to_string(++numbers_) + " ";
  lines_ += what;
  lines_ += '\n';
  return numbers_;
}

void Journal::once_more(Moment at, std::string_view what) {
  lines_ += "? " + std::to_string(at) + " " + std::to_string(++numbers_) + " ";
  lines_ += what;
  lines_ += '\n';
}

void Journal::answer(std::uint64_t operation, std::string_view what) {
  if (what.starts_with("ok") || what == "free") ++ok;
  lines_ += "< " + std::to_string(now()) + " " + std::to_string(operation) + " ";
  lines_ += what;
  lines_ += '\n';
  if (lines_.size() >= lines_bytes_max) flush();
}

void Journal::flush() {
  std::string_view rest = lines_;
  while (!rest.empty()) {
    const ssize_t written = ::write(file_, rest.data(), rest.size());
    if (written < 0 && errno != EINTR) throw std::runtime_error("cannot write the history");
    if (written > 0) rest.remove_prefix(static_cast<std::size_t>(written));
  }
  lines_.clear();
}

LoadClient::LoadClient(const LoadPlan& plan, Journal& journal, std::uint32_t seed)
    : plan_(plan), journal_(journal), dice_(seed) {}

LoadClient::~LoadClient() { disconnect(); }

Moment LoadClient::next_due() const {
  return busy() ? asked_ + plan_.patience_ms * 1'000 : rests_until_;
}

void LoadClient::turn(Moment at, bool stopping) {
  if (busy()) {
    if (at >= next_due()) lost_the_connection();
    return;
  }
  if (at < rests_until_) return;
  if (socket_ < 0) connect(at);
  if (socket_ < 0) return;
  choose(stopping);
}

void LoadClient::connect(Moment at) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(plan_.port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
    ++connections_;
    return;
  }
  disconnect();
  rests_until_ = at + pause_before_connecting;
}

void LoadClient::disconnect() {
  if (socket_ >= 0) ::close(socket_);
  socket_ = -1;
  received_.clear();
}

// What was under way may have happened or not; it has no answer in the history.
void LoadClient::lost_the_connection() {
  disconnect();
  rests_until_ = now() + pause_before_connecting;
  if (!busy()) return;
  operation_ = 0;
  if (kind_ == Kind::acquire) ask_again_ = percent(plan_.retry_percent);
}

std::string LoadClient::random_slot() {
  return std::to_string(dice_() % static_cast<std::uint32_t>(plan_.slots));
}

void LoadClient::choose(bool stopping) {
  if (releasing_) return ask_release();
  if (ask_again_) return ask_acquire(first_asked_);
  if (holds_) {
    if (renewals_left_ > 0 && !stopping) return ask_renew();
    if (stopping || !percent(plan_.abandon_percent)) return ask_release();
    holds_ = false;
  }
  if (look_at_ >= 0) {
    const int slot = look_at_;
    look_at_ = -1;
    return ask_read(slot);
  }
  if (stopping) return;
  if (percent(plan_.read_percent)) {
    return ask_read(static_cast<int>(dice_() % static_cast<std::uint32_t>(plan_.slots)));
  }
  request_id_ = plan_.name + "-" + std::to_string(++acquires_) + "-" + std::to_string(dice_());
  slot_ = random_slot();
  ask_acquire(now());
}

// Again under the same request id it is another operation, but what the first one did counts.
void LoadClient::ask_acquire(Moment first_asked) {
  ask_again_ = false;
  first_asked_ = first_asked;
  const std::string lease = std::to_string(plan_.lease_ms);
  const std::string what = "acquire " + plan_.pool + ":" + slot_ + " " + lease + "000";
  if (plan_.duplicates) journal_.once_more(first_asked, what);
  const std::string body = R"({"requestId":")" + request_id_ + R"(","holder":")" + plan_.name +
                           R"(","only":[")" + slot_ + R"("],"wait":"0s","lease":")" +
                           std::to_string(plan_.lease_ms / 1000) + "." +
                           std::to_string(1000 + plan_.lease_ms % 1000).substr(1) + R"(s"})";
  send(Kind::acquire, first_asked, what, http("POST", "pools/" + plan_.pool + "/acquire", body));
}

void LoadClient::ask_renew() {
  --renewals_left_;
  const std::string what = "renew " + run_ + " " + std::to_string(plan_.lease_ms) + "000";
  if (plan_.duplicates) journal_.once_more(now(), what);
  send(Kind::renew, now(), what,
       http("POST", "permits/permit:" + plan_.pool + ":" + slot_ + "/renew",
            R"({"token":")" + token_ + R"("})"));
}

void LoadClient::ask_release() {
  holds_ = false;
  releasing_ = true;
  if (plan_.duplicates) journal_.once_more(now(), "release " + run_);
  send(Kind::release, now(), "release " + run_,
       http("POST", "permits/permit:" + plan_.pool + ":" + slot_ + "/release",
            R"({"token":")" + token_ + R"("})"));
}

void LoadClient::look_at(int slot) { look_at_ = slot; }

void LoadClient::ask_read(int slot) {
  const std::string name = plan_.pool + ":" + std::to_string(slot);
  send(Kind::read, now(), "read " + name, http("GET", "permits/permit:" + name, ""));
}

// A request is small and alone on its connection, so it fits the socket's buffer.
void LoadClient::send(Kind kind, Moment at, std::string_view what, std::string_view request) {
  kind_ = kind;
  asked_ = now();
  operation_ = journal_.request(at, what);
  const ssize_t sent = ::send(socket_, request.data(), request.size(), MSG_NOSIGNAL);
  if (sent != static_cast<ssize_t>(request.size())) lost_the_connection();
}

void LoadClient::on_readable() {
  std::array<char, 16 * 1024> bytes;
  const ssize_t size = recv(socket_, bytes.data(), bytes.size(), MSG_DONTWAIT);
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (size <= 0) return lost_the_connection();
  received_.append(bytes.data(), static_cast<std::size_t>(size));
  const std::optional<Head> head = read_head(received_);
  if (!head || received_.size() < head->size + head->body_size) return;
  if (busy()) take_answer(head->status, std::string_view(received_).substr(head->size));
  received_.clear();
  if (head->last) disconnect();
}

void LoadClient::take_answer(int status, std::string_view body) {
  journal_.answer(operation_, outcome(status, body));
  operation_ = 0;
  rests_until_ = 0;
  if (plan_.think_ms > 0) {
    rests_until_ =
        now() + static_cast<Moment>(dice_() % (1'000U * static_cast<unsigned>(plan_.think_ms)));
  }
}

// And what follows from it for the hold. What says that nothing was done is `fail`, other errors of
// the server may mean anything.
std::string LoadClient::outcome(int status, std::string_view body) {
  const bool is_ok = status == 200;
  const bool refused = (status >= 400 && status < 500) || status == 503 || status == 507;
  switch (kind_) {
    case Kind::acquire:
      if (status == 423) return "full";
      if (!is_ok) return refused ? "fail" : "info";
      holds_ = true;
      run_ = field(body, "runId");
      token_ = field(body, "token");
      slot_ = field(body, "slot");
      renewals_left_ = static_cast<int>(dice_() % (2U * static_cast<unsigned>(plan_.renewals) + 1));
      return "ok " + plan_.pool + ":" + slot_ + " " + std::string(field(body, "fence")) + " " +
             run_;
    case Kind::read:
      if (status == 404) return "free";
      if (!is_ok) return "fail";
      if (field(body, "state") != "held") return "free";
      return "ok " + std::string(field(body, "fence")) + " " + std::string(field(body, "runId"));
    case Kind::renew:
    case Kind::release: {
      const bool is_lost = status == 410 || status == 404;
      if (is_lost || is_ok) releasing_ = false;
      if (is_lost) holds_ = false;
      if (is_ok || is_lost) return is_ok ? "ok" : "lost";
      return refused ? "fail" : "info";
    }
  }
  return "info";
}

}  // namespace permit::lock_history
