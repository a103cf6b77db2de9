#include "tests/simulation/wire.h"

#include <charconv>
#include <utility>

#include "tests/simulation/sometimes.h"
#include "worker/client.h"

namespace permit::simulation {

namespace {

constexpr std::size_t shared_connections = 3;

store::Database::Options in_memory() {
  store::Database::Options options;
  options.mode = store::Database::Mode::in_memory;
  return options;
}

// One answer at the beginning of `text`: its status, its body, and how long it is. Nothing: there
// is more to come.
struct Answer {
  int status = 0;
  std::string body;
  std::size_t size = 0;
};

std::optional<Answer> parse_answer(const std::string& text) {
  const std::size_t end = text.find("\r\n\r\n");
  if (end == std::string::npos) return std::nullopt;
  constexpr std::string_view version = "HTTP/1.1 ";
  require(text.starts_with(version), "an answer is not HTTP: " + text.substr(0, 40));
  Answer answer;
  std::from_chars(text.data() + version.size(), text.data() + version.size() + 3, answer.status);
  constexpr std::string_view length = "\r\nContent-Length: ";
  const std::size_t at = text.find(length);
  require(at < end, "an answer has no length");
  std::size_t bytes = 0;
  std::from_chars(text.data() + at + length.size(), text.data() + end, bytes);
  answer.size = end + 4 + bytes;
  if (text.size() < answer.size) return std::nullopt;
  answer.body = text.substr(end + 4, bytes);
  return answer;
}

}  // namespace

// A request that the server has. As with a socket, whoever drops it owes the peer an answer.
class Wire::Exchange final : public http::Exchange {
 public:
  Exchange(Wire& wire, Link& link, http::Request request)
      : wire_(&wire), link_(&link), request_(std::move(request)), number_(link.number) {}
  ~Exchange() override {
    if (link_ != nullptr) wire_->complaint_ = "a request was dropped without an answer";
    if (link_ != nullptr) link_->serving = nullptr;
  }

  http::Request& request() override { return request_; }
  std::uint64_t connection() const override { return static_cast<std::uint64_t>(number_); }
  void reply(http::Response response) override {
    if (replied_) wire_->complaint_ = "a request was answered twice";
    replied_ = true;
    on_gone_ = nullptr;
    if (Link* link = detach()) wire_->answer(*link, std::move(response));
  }
  void on_gone(std::function<void()> callback) override {
    if (!replied_) on_gone_ = std::move(callback);
  }
  void park() override { request_ = http::Request(); }

  // The connection is gone. What is returned is to be called if the server is still there.
  Link* detach() {
    if (link_ != nullptr) link_->serving = nullptr;
    return std::exchange(link_, nullptr);
  }
  std::function<void()> take_on_gone() { return std::exchange(on_gone_, nullptr); }

 private:
  Wire* wire_;
  Link* link_;
  http::Request request_;
  const std::int64_t number_;
  std::function<void()> on_gone_;
  bool replied_ = false;
};

// Its callers are gone by now.
Wire::~Wire() {
  for (auto& [number, link] : links_) link.callers.clear();
  stop();
}

void Wire::serve(service::Service& service, store::Store& store) {
  service_ = &service;
  reads_ =
      std::make_unique<service::Reads>(store, in_memory(), service::Reads::Post(), service.log());
  routes_ = std::make_unique<http::Routes>(service, *reads_, http::RouteOptions());
}

void Wire::stop() {
  while (!links_.empty()) drop(links_.begin()->first, false);
  complaint_.clear();  // who dies in the middle of a request drops it
  service_ = nullptr;
  routes_.reset();
  reads_.reset();
}

// --- The client's side ---

// Connections are kept: who waits takes one on which nobody does.
Wire::Link& Wire::link_for(Way way) {
  for (auto& [number, link] : links_) {
    if (way == Way::own && link.way == Way::own && link.callers.empty()) return link;
  }
  if (way == Way::shared) {
    std::vector<Link*> shared;
    for (auto& [number, link] : links_) {
      if (link.way == Way::shared) shared.push_back(&link);
    }
    if (shared.size() >= shared_connections) return *shared[chance_.below(shared.size())];
  }
  Link& link = links_[++last_number_];
  link.number = last_number_;
  link.way = way;
  return link;
}

std::string Wire::request_text(std::string_view rpc, const std::string& body) {
  std::string text = "POST " + worker::path_of(rpc) + " HTTP/1.1\r\n";
  text += chance_.percent(50) ? "Host: localhost\r\n" : "host:127.0.0.1:7376\r\n";
  if (chance_.percent(20)) text += "X-Padding: " + std::string(chance_.below(300), 'x') + "\r\n";
  text += "Content-Type: application/json\r\nContent-Length: " + std::to_string(body.size());
  return text + "\r\n\r\n" + body;
}

std::int64_t Wire::call(std::string_view rpc, const std::string& body, Way way, Caller caller) {
  Link& link = link_for(way);
  if (!link.callers.empty()) sometimes("requests pipelined on one connection");
  link.out += request_text(rpc, body);
  link.callers.push_back(std::move(caller));
  const std::int64_t number = link.number;
  if (chance_.percent(50)) move(number);
  return number;
}

void Wire::read_answers(Link& link) {
  const std::int64_t number = link.number;
  for (;;) {
    const std::optional<Answer> answer = parse_answer(link.in);
    if (!answer) return;
    link.in.erase(0, answer->size);
    require(!link.callers.empty(), "an answer came that nobody has asked for");
    const Caller caller = std::move(link.callers.front());
    link.callers.pop_front();
    caller.answered(answer->status, answer->body);
    if (!links_.contains(number)) return;
  }
}

void Wire::hang_up(std::int64_t connection) {
  if (links_.contains(connection)) drop(connection, true);
}

void Wire::cut_one() {
  if (links_.empty()) return;
  auto link = links_.begin();
  std::advance(link, static_cast<std::ptrdiff_t>(chance_.below(links_.size())));
  const std::int64_t number = link->first;
  std::string& out = link->second.out;
  if (!out.empty()) {
    out.resize(chance_.below(out.size()));
    move(number);
    sometimes("a connection cut in the middle of a request");
  }
  hang_up(number);
}

// --- In between ---

Wire::Link* Wire::find(std::int64_t number) {
  const auto found = links_.find(number);
  return found == links_.end() ? nullptr : &found->second;
}

bool Wire::pump() {
  bool moved = false;
  std::vector<std::int64_t> numbers;
  for (const auto& [number, link] : links_) numbers.push_back(number);
  for (const std::int64_t number : numbers) moved = move(number) || moved;
  require(complaint_.empty(), complaint_);
  return moved;
}

// In pieces, which need not be those that were sent.
bool Wire::move(std::int64_t number) {
  bool moved = false;
  for (Link* link = find(number); link != nullptr && !link->out.empty(); link = find(number)) {
    std::size_t piece = link->out.size();
    if (chance_.percent(50)) piece = 1 + chance_.below(link->out.size());
    if (piece < link->out.size()) sometimes("a request arrives in pieces");
    link->received += link->out.substr(0, piece);
    link->out.erase(0, piece);
    while (serve_next(number)) {
    }
    moved = true;
  }
  while (serve_next(number)) moved = true;
  return moved;
}

void Wire::drop(std::int64_t number, bool server_is_there) {
  const auto found = links_.find(number);
  if (found == links_.end()) return;
  Link& link = found->second;
  std::function<void()> gone;
  if (link.serving != nullptr) {
    Exchange* exchange = link.serving;
    gone = exchange->take_on_gone();
    exchange->detach();
  }
  const std::deque<Caller> callers = std::move(link.callers);
  links_.erase(found);
  if (server_is_there && service_ != nullptr) {
    service_->connection_closed(static_cast<std::uint64_t>(number),
                                service::Matching::EndedBy::peer);
    if (gone) gone();
  }
  for (const Caller& caller : callers) {
    if (caller.lost) caller.lost();
  }
}

// --- The server's side ---

// Takes one step with what has been received. Returns whether there may be another.
bool Wire::serve_next(std::int64_t number) {
  Link* link = find(number);
  if (link == nullptr || link->serving != nullptr || link->received.empty()) return false;
  if (!link->head) {
    if (!link->reader) link->reader = std::make_unique<http::HeadReader>(limits_);
    std::optional<http::HeadResult> result = link->reader->read(link->received);
    if (!result) return false;
    link->reader.reset();
    const auto* refusal = std::get_if<http::Refusal>(&*result);
    require(refusal == nullptr,
            [&] { return "the gate refuses an honest request: " + refusal->sentence; });
    link->head = std::get<http::Head>(std::move(*result));
  }
  const std::size_t size = link->head->size + link->head->content_length;
  if (link->received.size() < size) return false;
  http::Request request = std::move(link->head->request);
  request.body = link->received.substr(link->head->size, link->head->content_length);
  link->received.erase(0, size);
  link->head.reset();
  const auto exchange = std::make_shared<Exchange>(*this, *link, std::move(request));
  link->serving = exchange.get();
  routes_->handle(exchange);
  return true;
}

void Wire::answer(Link& link, http::Response response) {
  std::string text;
  http::append_response_head(text, response, http::After::keep_alive);
  text += response.body;
  const std::int64_t number = link.number;
  while (!text.empty()) {
    const std::size_t piece = chance_.percent(30) ? 1 + chance_.below(text.size()) : text.size();
    link.in += text.substr(0, piece);
    text.erase(0, piece);
    read_answers(link);
    if (!links_.contains(number)) return;
  }
}

}  // namespace permit::simulation
