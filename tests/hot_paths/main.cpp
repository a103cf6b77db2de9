// permit_hot_paths: a whole server without sockets, from the bytes of a request to those of its
// answer, under the requests that there are most of. Run by callgrind, which counts instructions: a
// figure that does not depend on what else the machine does. See tests/end_to_end/hot_paths.py.
//
//   permit_hot_paths <path> <operations> <database>
#include <functional>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <variant>

#if __has_include(<valgrind/callgrind.h>)
#include <valgrind/callgrind.h>
#define COUNT_FROM_HERE CALLGRIND_START_INSTRUMENTATION
#define COUNT_TO_HERE CALLGRIND_STOP_INSTRUMENTATION
#else
#define COUNT_FROM_HERE static_cast<void>(0)
#define COUNT_TO_HERE static_cast<void>(0)
#endif

#include "orchestrator/http/gate.h"
#include "orchestrator/http/routes.h"
#include "orchestrator/service/reads.h"
#include "orchestrator/service/service.h"
#include "orchestrator/store/store.h"

namespace permit::hot_paths {

namespace {

constexpr int clients = 32;  // each with one request under way, so a batch has as many
const std::string names = "/api/v1/namespaces/default";
const std::string rpc = "/temporal.api.workflowservice.v1.WorkflowService/";

class Server {
 public:
  explicit Server(const std::string& path)
      : store_(options_of(path), opening()),
        clock_(store_.counters().time_max),
        log_(LogFormat::json, LogLine::Level::info,
             [this](std::string_view line) { logged_ += line.size(); }),
        service_(store_, clock_, options()),
        reads_(store_, in_memory(), {}, log_),
        routes_(service_, reads_, {}) {}

  using Then = std::function<void(const std::string& body)>;

  // As its connection would. The answer comes with a batch, or later.
  void send(const std::string& bytes, Then then) {
    http::HeadReader reader(limits_);
    auto result = reader.read(bytes);
    if (!result || !std::holds_alternative<http::Head>(*result)) throw std::runtime_error(bytes);
    auto& head = std::get<http::Head>(*result);
    http::Request request = std::move(head.request);
    request.body = bytes.substr(head.size);
    routes_.handle(std::make_shared<Exchange>(*this, std::move(request), std::move(then)));
  }

  void run_batch() { service_.run_batch(); }

 private:
  class Exchange final : public http::Exchange {
   public:
    Exchange(Server& server, http::Request request, Then then)
        : server_(server), request_(std::move(request)), then_(std::move(then)) {}
    http::Request& request() override { return request_; }
    std::uint64_t connection() const override { return 1; }
    void reply(http::Response response) override {
      std::string text;
      http::append_response_head(text, response, http::After::keep_alive);
      text += response.body;
      if (response.status >= 300) throw std::runtime_error(text);
      server_.sent_ += text.size();
      then_(response.body);
    }
    void on_gone(std::function<void()>) override {}
    void park() override {}

   private:
    Server& server_;
    http::Request request_;
    Then then_;
  };

  static store::Database::Options in_memory() {
    store::Database::Options options;
    options.mode = store::Database::Mode::in_memory;
    return options;
  }
  static store::Opening opening() {
    store::Opening opening;
    opening.logs = true;
    return opening;
  }
  static store::Database::Options options_of(const std::string& path) {
    store::Database::Options options;
    options.path = path;
    return options;
  }
  service::Options options() {
    service::Options options;
    options.seed = 1;
    options.token_secret = "hot";
    options.log = &log_;
    return options;
  }

  const http::Limits limits_;
  store::Store store_;
  service::SystemClock clock_;
  Log log_;
  service::Service service_;
  service::Reads reads_;
  http::Routes routes_;
  std::size_t sent_ = 0;
  std::size_t logged_ = 0;
};

std::string request(const std::string& method, const std::string& path, const std::string& body) {
  return method + " " + path +
         " HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n" +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}
std::string post(const std::string& path, const std::string& body) {
  return request("POST", path, body);
}

std::string field(const std::string& json, const std::string& name) {
  const std::string key = "\"" + name + "\":\"";
  const std::size_t begin = json.find(key);
  if (begin == std::string::npos) throw std::runtime_error("no " + name + " in " + json);
  const std::size_t at = begin + key.size();
  return json.substr(at, json.find('"', at) - at);
}

// --- The paths; each returns what one client does again and again ---

class Load {
 public:
  explicit Load(Server& server) : server_(server) {}

  // Until as many more operations have been done.
  void run(int operations) {
    const int end = done_ + operations;
    while (done_ < end) server_.run_batch();
  }

  int done() const { return done_; }

  // A pool of its own for each client, or one for all.
  void hold(int client, const std::string& pool, const std::string& slots) {
    const std::string body = R"({"requestId":"r)" + std::to_string(++last_) +
                             R"(","holder":"hot","lease":"60s")" + slots + "}";
    server_.send(post(names + "/pools/" + pool + "/acquire", body), [this, client, pool, slots](
                                                                        const std::string& answer) {
      const std::string token = field(answer, "token");
      const std::string id = field(answer, "id");
      server_.send(post(names + "/permits/" + id + "/release", "{\"token\":\"" + token + "\"}"),
                   [this, client, pool, slots](const std::string&) {
                     ++done_;
                     hold(client, pool, slots);
                   });
    });
  }
  void set_pool(const std::string& pool, int capacity) {
    server_.send(
        request("PUT", names + "/pools/" + pool, "{\"capacity\":" + std::to_string(capacity) + "}"),
        [](const std::string&) {});
    server_.run_batch();
  }

  void start(int client) {
    server_.send(start_request("run" + std::to_string(++last_)), [this, client](const auto&) {
      ++done_;
      start(client);
    });
  }

  void start_once() {
    server_.send(start_request("run" + std::to_string(++last_)), [](const auto&) {});
    server_.run_batch();
  }
  void signal(int client) {
    server_.send(post(names + "/workflows/run" + std::to_string(client + 1) + "/signal/go",
                      R"({"input":[{"go":true}],"identity":"hot"})"),
                 [this, client](const auto&) {
                   ++done_;
                   signal(client);
                 });
  }

  // Start, its task, and its completion.
  void run_whole(int client) {
    server_.send(start_request("run" + std::to_string(++last_)), [](const auto&) {});
    server_.send(post(rpc + "PollWorkflowTaskQueue",
                      R"({"namespace":"default","taskQueue":{"name":"hot"},"identity":"hot"})"),
                 [this, client](const std::string& task) { complete(client, task); });
  }
  void complete(int client, const std::string& task) {
    const std::string body =
        "{\"taskToken\":\"" + field(task, "taskToken") +
        R"(","identity":"hot","commands":[{"completeWorkflowExecutionCommandAttributes":{"result":["done"]}}]})";
    server_.send(post(rpc + "RespondWorkflowTaskCompleted", body), [this, client](const auto&) {
      ++done_;
      run_whole(client);
    });
  }

 private:
  static std::string start_request(const std::string& id) {
    return post(names + "/workflows/" + id,
                R"({"workflowType":{"name":"hot"},"taskQueue":{"name":"hot"},"requestId":")" + id +
                    R"(","input":[{"customer":"c-000017","items":[3,14,159],"express":true}],)" +
                    R"("identity":"hot@localhost"})");
  }

  Server& server_;
  int last_ = 0;
  int done_ = 0;
};

}  // namespace

void begin(Load& load, const std::string& path) {
  const bool many = path == "hold-2000";
  if (many || path == "hold-line") load.set_pool("pool", many ? 2'000 : 4);
  for (int i = 0; i < clients; ++i) {
    if (path == "hold") {
      const std::string pool = "pool" + std::to_string(i);
      load.set_pool(pool, 1);
      load.hold(i, pool, R"(,"slots":["0"])");
    } else if (many) {
      load.hold(i, "pool", "");
    } else if (path == "hold-line") {
      load.hold(i, "pool", R"(,"wait":"60s","order":"fair")");
    } else if (path == "start") {
      load.start(i);
    } else if (path == "signal") {
      load.start_once();
      load.signal(i);
    } else if (path == "run") {
      load.run_whole(i);
    } else {
      throw std::runtime_error("no such path: " + path);
    }
  }
}

int run(int argc, char** argv) {
  if (argc != 4) throw std::runtime_error("usage: permit_hot_paths <path> <operations> <database>");
  Server server(argv[3]);
  Load load(server);
  begin(load, argv[1]);
  load.run(300);  // statements are prepared, strings have grown
  const int before = load.done();
  COUNT_FROM_HERE;
  load.run(std::stoi(argv[2]));
  COUNT_TO_HERE;
  std::cout << load.done() - before << " operations" << std::endl;
  return 0;
}

}  // namespace permit::hot_paths

int main(int argc, char** argv) {
  try {
    return permit::hot_paths::run(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << "permit_hot_paths: " << error.what() << std::endl;
    return 1;
  }
}
