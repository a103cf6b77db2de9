#include "orchestrator/http/server.h"

#include <doctest/doctest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <chrono>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "orchestrator/protocol/error.h"
#include "tests/support/raw_client.h"

namespace permit::http {
namespace {

using namespace std::chrono_literals;
using test::RawClient;
using test::RawResponse;
using Clock = std::chrono::steady_clock;

// Deadlines so short that a test of one does not wait for long, and so long that no honest request
// meets one.
Limits quick_limits() {
  Limits limits;
  limits.sweep_interval = 10ms;
  limits.drain_time_max = 500ms;
  return limits;
}

// A server on its own thread. Routes:
//   POST /echo   the body back          GET /path...  the target back
//   GET /large   large_size bytes       GET /park     no answer before release()
//   GET /drop    forgets the exchange   POST /later   the body back, from a later turn of the loop
class TestServer {
 public:
  static constexpr std::size_t large_size = 64 * 1024 * 1024;

  explicit TestServer(Limits limits = quick_limits()) {
    server_.emplace(io_, Server::Options{"127.0.0.1", 0, std::move(limits)},
                    [this](std::shared_ptr<Exchange> exchange) { handle(std::move(exchange)); });
    port_ = server_->port();
    keep_running_.emplace(io_.get_executor());
    thread_ = std::thread([this] { io_.run(); });
  }

  // Runs `function` on the server's thread and returns what it returns.
  template <class Function>
  auto on_loop(Function function) {
    std::packaged_task<decltype(function())()> task(std::move(function));
    auto result = task.get_future();
    boost::asio::post(io_, [&task] { task(); });
    return result.get();
  }

  ~TestServer() {
    on_loop([this] {
      server_.reset();
      parked_.clear();
    });
    keep_running_.reset();
    thread_.join();
  }

  std::uint16_t port() const { return port_; }

  std::size_t connections() {
    return on_loop([this] { return server_->connections(); });
  }
  std::size_t in_flight() {
    return on_loop([this] { return server_->in_flight(); });
  }
  std::size_t parked() {
    return on_loop([this] { return parked_.size(); });
  }
  std::size_t gone() {
    return on_loop([this] { return gone_; });
  }
  std::size_t served() {
    return on_loop([this] { return served_; });
  }

  void release() {
    on_loop([this] {
      for (auto& [number, exchange] : std::exchange(parked_, {})) exchange->reply(text("released"));
    });
  }

  void stop() {
    on_loop([this] {
      server_->stop_accepting();
      server_->close_idle();
    });
  }

  RawResponse ask(const std::string& request) {
    RawClient client(port_);
    client.send(request);
    return client.receive();
  }

 private:
  static Response text(std::string body) {
    Response response;
    response.content_type = "text/plain";
    response.body = std::move(body);
    return response;
  }

  void handle(std::shared_ptr<Exchange> exchange) {
    ++served_;
    Request& request = exchange->request();
    if (request.path == "/park") return park(std::move(exchange));
    if (request.path == "/drop") return;
    if (request.path == "/large") return exchange->reply(text(std::string(large_size, 'x')));
    if (request.path == "/later") {
      boost::asio::post(io_, [exchange] { exchange->reply(text(exchange->request().body)); });
      return;
    }
    exchange->reply(text(request.body.empty() ? request.target : request.body));
  }

  void park(std::shared_ptr<Exchange> exchange) {
    const std::size_t number = served_;
    exchange->on_gone([this, number] {
      ++gone_;
      parked_.erase(number);
    });
    exchange->park();
    parked_.emplace(number, std::move(exchange));
  }

  boost::asio::io_context io_{1};
  std::optional<boost::asio::executor_work_guard<boost::asio::io_context::executor_type>>
      keep_running_;
  std::optional<Server> server_;
  std::uint16_t port_ = 0;
  std::map<std::size_t, std::shared_ptr<Exchange>> parked_;
  std::size_t gone_ = 0;
  std::size_t served_ = 0;
  std::thread thread_;
};

// Polls `condition`, which another thread will make true; false if it did not within 10 s.
bool eventually(const std::function<bool()>& condition) {
  const Clock::time_point deadline = Clock::now() + 10s;
  while (!condition()) {
    if (Clock::now() > deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

std::string get(const std::string& target, const std::string& headers = "") {
  return "GET " + target + " HTTP/1.1\r\nHost: localhost\r\n" + headers + "\r\n";
}

std::string post_head(const std::string& target, std::size_t size, const std::string& headers) {
  return "POST " + target + " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" +
         headers + "Content-Length: " + std::to_string(size) + "\r\n\r\n";
}

std::string post(const std::string& target, const std::string& body) {
  return post_head(target, body.size(), "") + body;
}

// After each abuse.
void check_honest_request(TestServer& server) {
  const RawResponse response = server.ask(post("/echo", "{\"a\":1}"));
  CHECK(response.status == 200);
  CHECK(response.body == "{\"a\":1}");
}

TEST_CASE("a connection serves one request after another") {
  TestServer server;
  RawClient client(server.port());
  for (int i = 0; i < 50; ++i) {
    const std::string body(static_cast<std::size_t>(i) * 100, 'b');
    client.send(post(i % 2 == 0 ? "/echo" : "/later", body.empty() ? "{}" : body));
    const RawResponse response = client.receive();
    REQUIRE(response.status == 200);
    REQUIRE(response.body == (body.empty() ? "{}" : body));
    REQUIRE(response.header("Connection").empty());
  }
  CHECK(server.connections() == 1);
}

TEST_CASE("every answer says who it is and how not to be misread") {
  TestServer server;
  const RawResponse response = server.ask("GET / HTTP/1.0\r\n\r\n");
  CHECK(response.status == 505);
  CHECK(response.header("Server") == "permit");
  CHECK(response.header("X-Content-Type-Options") == "nosniff");
  CHECK(response.header("Content-Type") == "application/json");
  CHECK(response.header("Cache-Control") == "no-store");
  CHECK(response.header("Connection") == "close");
  CHECK(response.body.find("VERSION_UNSUPPORTED") != std::string::npos);
}

TEST_CASE("the answer to HEAD has the length of a body and no body") {
  TestServer server;
  RawClient client(server.port());
  client.send("HEAD /abc HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const RawResponse head = client.receive(RawClient::patience, false);
  CHECK(head.header("Content-Length") == "4");
  client.send(get("/abc"));
  CHECK(client.receive().body == "/abc");
}

TEST_CASE("a client that asks to close is closed after its answer") {
  TestServer server;
  RawClient client(server.port());
  client.send(get("/a", "Connection: close\r\n") + get("/b"));
  const std::string all = client.receive_all();
  CHECK(all.find("Connection: close") != std::string::npos);
  CHECK(all.ends_with("/a"));
  CHECK(server.served() == 1);
}

TEST_CASE("100 pipelined requests are answered in order, one at a time") {
  TestServer server;
  for (const char* route : {"/echo", "/later"}) {
    RawClient client(server.port());
    std::string requests;
    for (int i = 0; i < 100; ++i) {
      requests += post(route, std::to_string(i) + std::string(2000, '.'));
    }
    client.send(requests);
    for (int i = 0; i < 100; ++i) {
      REQUIRE(client.receive().body.starts_with(std::to_string(i) + "."));
    }
  }
}

TEST_CASE("a request cut at every byte is the same request") {
  TestServer server;
  RawClient client(server.port());
  const std::string request = post("/echo", "{\"a\":1}");
  for (std::size_t cut = 1; cut < request.size(); ++cut) {
    client.send(std::string_view(request).substr(0, cut));
    server.connections();  // a turn of the loop: the halves arrive apart
    client.send(std::string_view(request).substr(cut));
    REQUIRE(client.receive().body == "{\"a\":1}");
  }
}

TEST_CASE("bodies of many sizes come back whole") {
  TestServer server;
  RawClient client(server.port());
  for (const std::size_t size : {1UL, 65'000UL, 65'536UL, 1'000'000UL, 4'194'304UL}) {
    std::string body(size, 'x');
    body.front() = '<';
    body.back() = '>';
    client.send(post("/echo", body));
    REQUIRE(client.receive().body == body);
  }
}

TEST_CASE("a refused request never lets the bytes after it become a request") {
  TestServer server;
  const std::string hidden = get("/hidden");
  for (const std::string& start :
       {post_head("/x", hidden.size(), "Transfer-Encoding: chunked\r\n"),
        post_head("/x", hidden.size(), "Content-Length: 0\r\n"),
        std::string("POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: xchunked\r\n\r\n"),
        std::string("GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99\r\n\r\n"),
        std::string("GET / HTTP/1.1\nHost: localhost\n\n"), std::string("\x16\x03\x01"),
        std::string("POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
                    "10000000000000001\r\n")}) {
    RawClient client(server.port());
    client.send(start + hidden);
    const RawResponse response = client.receive();
    CHECK(response.status >= 400);
    CHECK(response.header("Connection") == "close");
    CHECK(client.receive_all().empty());
  }
  CHECK(server.served() == 0);
  check_honest_request(server);
}

TEST_CASE("an empty chunked body in three segments is refused and the server lives") {
  TestServer server;
  RawClient client(server.port());
  client.send("POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n");
  for (const char* part : {"0\r\n", "\r", "\n"}) client.try_send(part);
  CHECK(client.receive().status == 411);
  check_honest_request(server);
}

TEST_CASE("Expect: 100-continue is asked for the body, or told at once that it is too large") {
  TestServer server;
  RawClient client(server.port());
  client.send(post_head("/echo", 4, "Expect: 100-continue\r\n"));
  CHECK(client.receive().status == 100);
  client.send("true");
  CHECK(client.receive().body == "true");
  client.send(post_head("/echo", 1'000'000'000, "Expect: 100-continue\r\n"));
  CHECK(client.receive().status == 413);
  CHECK(client.receive_all().empty());
  check_honest_request(server);
}

TEST_CASE("a client that sends a body that is too large can read why it is refused") {
  TestServer server;
  RawClient client(server.port());
  client.send(post_head("/echo", 5 * 1024 * 1024, ""));
  client.try_send(std::string(5 * 1024 * 1024, 'x'));
  CHECK(client.receive().status == 413);
  check_honest_request(server);
}

TEST_CASE("a mebibyte of anything is refused or closed at once") {
  TestServer server;
  for (const char byte : {'\x00', 'G', ' ', '\n', '\xff'}) {
    RawClient client(server.port());
    client.try_send(std::string(1024 * 1024, byte));
    const std::string answer = client.receive_all();
    CHECK((answer.empty() || answer.starts_with("HTTP/1.1 4")));
  }
  check_honest_request(server);
  CHECK(eventually([&] { return server.connections() == 0; }));
}

TEST_CASE("a head that does not come in time is answered 408 and closed") {
  Limits limits = quick_limits();
  limits.head_time_max = 2s;  // also for the honest requests below, however busy the machine is
  TestServer server(limits);
  std::vector<RawClient> clients;
  for (int i = 0; i < 50; ++i) {
    clients.emplace_back(server.port());
    clients.back().send("GET / HTTP/1.1\r\nA: ");
  }
  const Clock::time_point start = Clock::now();
  bool open = true;
  while (open && Clock::now() - start < 15s) {  // a byte each, now and then
    for (RawClient& client : clients) open = client.try_send("a") && open;
    check_honest_request(server);
    std::this_thread::sleep_for(5ms);  // else the head is too long before it is too late
  }
  CHECK_FALSE(open);
  for (RawClient& client : clients) {
    const std::string answer = client.receive_all();
    CHECK((answer.empty() || answer.starts_with("HTTP/1.1 408")));
  }
  CHECK(eventually([&] { return server.connections() == 0; }));
}

TEST_CASE("a connection that never says anything is closed without a word") {
  Limits limits = quick_limits();
  limits.head_time_max = 50ms;
  TestServer server(limits);
  CHECK(RawClient(server.port()).receive_all().empty());
}

TEST_CASE("a kept connection is closed when it has been idle for too long") {
  Limits limits = quick_limits();
  limits.idle_time_max = 50ms;
  TestServer server(limits);
  RawClient client(server.port());
  client.send(get("/a"));
  CHECK(client.receive().status == 200);
  CHECK(client.receive_all().empty());
}

TEST_CASE("a body that does not come in time is answered 408") {
  Limits limits = quick_limits();
  limits.body_time_max = 100ms;
  TestServer server(limits);
  RawClient client(server.port());
  client.send(post_head("/echo", 1000, "") + "some");
  CHECK(client.receive().status == 408);
  CHECK(client.receive_all().empty());
  CHECK(server.served() == 0);
  check_honest_request(server);
}

TEST_CASE("a body that trickles is given up before its deadline") {
  Limits limits = quick_limits();
  limits.body_grace_time = 50ms;
  TestServer server(limits);
  RawClient client(server.port());
  client.send(post_head("/echo", 1000, "") + "some");
  CHECK(client.receive().status == 408);  // before the 15 s of its deadline
}

TEST_CASE("a client that never reads is closed at the write deadline") {
  Limits limits = quick_limits();
  limits.write_time_max = 200ms;
  TestServer server(limits);
  RawClient client;
  client.set_receive_buffer(4096);
  client.connect(server.port());
  client.send(get("/large"));
  CHECK(eventually([&] { return server.in_flight() == 1; }));
  check_honest_request(server);
  CHECK(eventually([&] { return server.connections() == 0; }));
  CHECK(client.receive_all().size() < TestServer::large_size);
}

TEST_CASE("a slow reader within the deadline gets a large answer whole") {
  TestServer server;
  RawClient client;
  client.set_receive_buffer(64 * 1024);
  client.connect(server.port());
  client.send(get("/large") + get("/after"));
  CHECK(client.receive(30s).body == std::string(TestServer::large_size, 'x'));
  CHECK(client.receive().body == "/after");
}

TEST_CASE("a long poll learns that its client has gone") {
  TestServer server;
  for (const bool reset : {false, true}) {
    RawClient client(server.port());
    client.send(get("/park"));
    CHECK(eventually([&] { return server.parked() == 1; }));
    reset ? client.reset() : client.close();
    CHECK(eventually([&] { return server.parked() == 0; }));
  }
  CHECK(server.gone() == 2);
  CHECK(server.connections() == 0);
  check_honest_request(server);
}

TEST_CASE("a parked poll is answered, and the request pipelined behind it after it") {
  TestServer server;
  RawClient client(server.port());
  client.send(get("/park"));
  CHECK(eventually([&] { return server.parked() == 1; }));
  client.send(get("/next"));
  client.send(get("/last"));
  CHECK(server.served() == 1);
  server.release();
  CHECK(client.receive().body == "released");
  CHECK(client.receive().body == "/next");
  CHECK(client.receive().body == "/last");
  CHECK(server.gone() == 0);
}

TEST_CASE("bytes behind a parked poll neither fill memory nor are lost") {
  TestServer server;
  RawClient client(server.port());
  client.send(get("/park"));
  CHECK(eventually([&] { return server.parked() == 1; }));
  std::thread sender([&] {
    for (int i = 0; i < 300; ++i) client.send(post("/echo", std::string(10'000, 'x')));
  });
  check_honest_request(server);
  server.release();
  CHECK(client.receive().body == "released");
  for (int i = 0; i < 300; ++i) REQUIRE(client.receive().body.size() == 10'000);
  sender.join();
}

TEST_CASE("a client that has gone is noticed although nothing more is read of it") {
  Limits limits = quick_limits();
  limits.pipelined_bytes_max = 100;
  TestServer server(std::move(limits));
  RawClient client(server.port());
  client.send(get("/park") + std::string(10'000, 'x'));
  CHECK(eventually([&] { return server.parked() == 1; }));
  client.reset();
  CHECK(eventually([&] { return server.gone() == 1; }));
  CHECK(server.connections() == 0);
}

TEST_CASE("a client that closes its sending side still gets the answers it is owed") {
  TestServer server;
  RawClient client(server.port());
  client.send(post("/later", "1") + post("/later", "2") + post("/echo", "3"));
  client.end_sending();
  const std::string all = client.receive_all();
  CHECK(all.find("\r\n\r\n1HTTP/1.1 200") != std::string::npos);
  CHECK(all.find("\r\n\r\n2HTTP/1.1 200") != std::string::npos);
  CHECK(all.ends_with("\r\n\r\n3"));
}

TEST_CASE("1,000 polls opened and dropped, again and again, leave nothing behind") {
  TestServer server;
  for (std::size_t round = 1; round <= 3; ++round) {
    std::vector<RawClient> clients;
    for (int i = 0; i < 1000; ++i) {
      clients.emplace_back(server.port());
      clients.back().send(get("/park"));
    }
    REQUIRE(eventually([&] { return server.parked() == 1000; }));
    CHECK(server.in_flight() == 1000);
    clients.clear();
    REQUIRE(eventually([&] { return server.connections() == 0; }));
    CHECK(server.parked() == 0);
    CHECK(server.gone() == round * 1000);
  }
  check_honest_request(server);
}

TEST_CASE("an exchange that is dropped without a reply is answered 500") {
  TestServer server;
  const RawResponse response = server.ask(get("/drop"));
  CHECK(response.status == 500);
  CHECK(response.body.find("REPLY_MISSING") != std::string::npos);
}

TEST_CASE("connections past the limit are told so, and the others served") {
  Limits limits = quick_limits();
  limits.connections_max = 10;
  TestServer server(limits);
  std::vector<RawClient> clients;
  for (int i = 0; i < 200; ++i) clients.emplace_back(server.port());
  CHECK(eventually([&] { return server.connections() >= 10; }));
  RawClient late(server.port());
  const std::string answer = late.receive_all();
  CHECK((answer.empty() || answer.starts_with("HTTP/1.1 503")));
  clients.front().send(get("/a"));
  CHECK(clients.front().receive().status == 200);
  CHECK(clients[10].receive().status == 503);
  clients.clear();
  CHECK(eventually([&] { return server.connections() == 0; }));
  check_honest_request(server);
}

TEST_CASE("a storm of resets does not disturb the accept loop") {
  TestServer server;
  for (int i = 0; i < 500; ++i) RawClient(server.port()).reset();
  check_honest_request(server);
  CHECK(eventually([&] { return server.connections() == 0; }));
}

TEST_CASE("a graceful stop closes idle connections and lets the others finish") {
  TestServer server;
  RawClient idle(server.port());
  RawClient poll(server.port());
  idle.send(get("/a"));
  CHECK(idle.receive().status == 200);
  poll.send(get("/park"));
  CHECK(eventually([&] { return server.parked() == 1; }));
  server.stop();
  CHECK(idle.receive_all().empty());
  CHECK_THROWS(RawClient(server.port()));
  CHECK(server.in_flight() == 1);
  server.release();
  const RawResponse response = poll.receive();
  CHECK(response.body == "released");
  CHECK(response.header("Connection") == "close");
  CHECK(poll.receive_all().empty());
  poll.close();
  CHECK(eventually([&] { return server.connections() == 0; }));
  CHECK(server.in_flight() == 0);
}

TEST_CASE("a server that is destroyed tells nobody, and late replies do nothing") {
  boost::asio::io_context io(1);
  std::shared_ptr<Exchange> held;
  std::optional<Server> server;
  server.emplace(io, Server::Options{},
                 [&](std::shared_ptr<Exchange> exchange) { held = std::move(exchange); });
  RawClient client(server->port());
  client.send(get("/a"));
  while (held == nullptr) io.run_one();
  bool gone = false;
  held->on_gone([&gone] { gone = true; });
  server.reset();
  held->reply({});
  held.reset();
  io.run();
  CHECK_FALSE(gone);
  CHECK(client.receive_all().empty());
}

TEST_CASE("on_gone set after the client has gone is still told, from the loop") {
  for (const bool reset : {false, true}) {
    boost::asio::io_context io(1);
    std::shared_ptr<Exchange> held;
    Server server(io, {}, [&](std::shared_ptr<Exchange> exchange) { held = std::move(exchange); });
    RawClient client(server.port());
    client.send(get("/a"));
    while (held == nullptr) io.run_one();
    reset ? client.reset() : client.close();
    io.run_one_for(5s);  // sees the end
    bool gone = false;
    held->on_gone([&gone] { gone = true; });
    CHECK_FALSE(gone);
    const Clock::time_point deadline = Clock::now() + 5s;
    while (!gone && Clock::now() < deadline) io.run_one_for(100ms);
    CHECK(gone);
    held->reply({});
  }
}

// Leaves no file descriptor free while it lives.
class NoDescriptorsLeft {
 public:
  NoDescriptorsLeft() {
    getrlimit(RLIMIT_NOFILE, &before_);
    const int next = dup(0);
    close(next);
    rlimit now = before_;
    now.rlim_cur = static_cast<rlim_t>(next);
    setrlimit(RLIMIT_NOFILE, &now);
  }
  ~NoDescriptorsLeft() { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

TEST_CASE("with no file descriptor left, accepting waits without spinning and recovers") {
  boost::asio::io_context io(1);
  int served = 0;
  Server server(io, {}, [&](std::shared_ptr<Exchange> exchange) {
    ++served;
    exchange->reply({});
  });
  std::vector<RawClient> clients(5);
  {
    const NoDescriptorsLeft no_descriptors;
    for (RawClient& client : clients) {
      client.connect(server.port());
      client.send(get("/a"));
    }
    CHECK(io.run_for(200ms) < 20);  // handlers run, not connections: about four pauses
    CHECK(served == 0);
  }
  const Clock::time_point deadline = Clock::now() + 5s;
  while (served < 5 && Clock::now() < deadline) io.run_one_for(100ms);
  CHECK(served == 5);
}

std::string listen_error(const std::string& address, std::uint16_t port) {
  boost::asio::io_context io(1);
  try {
    const Server server(io, {address, port, {}}, [](const std::shared_ptr<Exchange>&) {});
  } catch (const Error& error) {
    return error.reason() + ": " + error.message();
  }
  return "";
}

TEST_CASE("what cannot be listened on is refused with the address and the way out") {
  TestServer server;
  CHECK(listen_error("127.0.0.1", server.port()) ==
        "PORT_IN_USE: Cannot listen on 127.0.0.1:" + std::to_string(server.port()) +
            ": another process already does. Stop it, or choose another port.");
  CHECK(listen_error("0.0.0.0", 0).starts_with("LISTEN_NOT_LOOPBACK: Cannot listen on 0.0.0.0:0"));
  CHECK(listen_error("::", 0).starts_with("LISTEN_NOT_LOOPBACK: Cannot listen on [::]:0"));
  CHECK(listen_error("192.0.2.1", 0).starts_with("LISTEN_NOT_LOOPBACK"));
  CHECK(listen_error("example.com", 0).starts_with("LISTEN_ADDRESS_INVALID"));
  CHECK(listen_error("127.0.0.2", 0).empty());
  CHECK(listen_error("localhost", 0).empty());
}

}  // namespace
}  // namespace permit::http
