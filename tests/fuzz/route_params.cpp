// A target and a body, through the gate and the routes to a live engine: whatever they are, the
// answer is no 5xx, an error is JSON with a stable reason, and the engine is as it should be.
//
//   the request's head without its last headers, then CR LF CR LF, then the body
#include <nlohmann/json.hpp>

#include "orchestrator/http/gate.h"
#include "tests/fuzz/engine.h"
#include "tests/fuzz/targets.h"

namespace permit::fuzz {

namespace {

void furnish(Engine& engine) {
  const auto ask = [&](const char* method, const char* path, const char* body) {
    http::Request request;
    request.method = method;
    request.target = request.path = path;
    request.headers.push_back({"content-type", "application/json"});
    request.body = body;
    promise(engine.ask(std::move(request)).status == 200, "the engine is furnished");
  };
  const std::string base = "/api/v1/namespaces/default";
  ask("PUT", (base + "/pools/gpu").c_str(), R"({"capacity":1})");
  ask("POST", (base + "/workflows/w").c_str(),
      R"({"workflowType":{"name":"T"},"taskQueue":{"name":"q"},"requestId":"r"})");
  ask("POST", (base + "/pools/gpu/acquire").c_str(), R"({"requestId":"a","wait":"0s"})");
}

void check_answer(const Engine::Answer& answer) {
  if (answer.status < 400) return;
  const auto body = nlohmann::json::parse(answer.body, nullptr, false);
  promise(!body.is_discarded() && body.is_object(), "an error is JSON");
  const auto reason = body["details"][0]["reason"].get<std::string>();
  promise(!reason.empty() && body["message"].get<std::string>().size() >= 5, "an error says why");
  const bool stable = reason.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ_") == std::string::npos;
  promise(stable, "a reason is a word in capitals");
}

}  // namespace

void route_params(std::string_view input) {
  const std::size_t blank = input.find("\r\n\r\n");
  const std::string_view begin = input.substr(0, blank);
  std::string head(begin);
  const std::string_view body =
      blank == std::string_view::npos ? std::string_view() : input.substr(blank + 4);
  // What a client's library adds.
  head += "\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: " +
          std::to_string(body.size()) + "\r\n\r\n";
  static const http::Limits limits;
  http::HeadResult result = http::parse_head(head, limits);
  auto* read = std::get_if<http::Head>(&result);
  if (read == nullptr || read->size != head.size()) return;
  static std::unique_ptr<Engine> engine;
  static bool changed = true;  // by an input since it was furnished
  if (changed || every_input_alone) {
    Engine::renew(engine);
    furnish(*engine);
  }
  http::Request request = std::move(read->request);
  const bool writes = request.method != "GET" && request.method != "HEAD";
  request.body = body;
  const Engine::Answer first = engine->ask(request);
  const Engine::Answer second = engine->ask(std::move(request));
  check_answer(first);
  check_answer(second);
  // What was refused has not happened, and reading changes nothing; now and then that is checked.
  changed = writes && (first.status < 300 || second.status < 300);
  static int asked = 0;
  if (changed || ++asked % 64 == 0) engine->check();
}

}  // namespace permit::fuzz
