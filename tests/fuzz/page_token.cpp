// The tokens by which lists go on: one that was given out is taken for the same list, one that
// anybody made up or bent is refused or begins nowhere else than in that list; never a 5xx.
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "orchestrator/protocol/base64.h"
#include "tests/fuzz/choices.h"
#include "tests/fuzz/engine.h"
#include "tests/fuzz/targets.h"

namespace permit::fuzz {

namespace {

const std::string base = "/api/v1/namespaces/default";

struct List {
  const char* path;
  const char* query;
};
constexpr List lists[] = {
    {"/workflows", "pageSize=2"},
    {"/workflows", "pageSize=2&query=WorkflowType%20%3D%20%27T%27"},
    {"/permits", "pageSize=1"},
    {"/permits", "pageSize=1&pool=gpu&state=closed"},
    {"/workflows/w1/history", "maximumPageSize=1"},
    {"/workers", "pageSize=1"},
};

class World {
 public:
  World() {
    ask("PUT", "/pools/gpu", "", R"({"capacity":3})");
    for (const std::string n : {"1", "2", "3", "4", "5"}) {
      ask("POST", "/workflows/w" + n, "",
          R"({"workflowType":{"name":"T"},"taskQueue":{"name":"q"}})");
      const auto granted = nlohmann::json::parse(
          ask("POST", "/pools/gpu/acquire", "", R"({"requestId":")" + n + R"(","wait":"0s"})")
              .body);
      if (granted["state"] != "granted") continue;
      const auto id = granted["slots"][0]["id"].get<std::string>();
      ask("POST", "/permits/" + id + "/release", "",
          nlohmann::json{{"token", granted["token"]}}.dump());
    }
    for (const char* key : {"a", "b", "c"}) {
      ask("POST", "/workers/heartbeat", "",
          std::string(R"({"workerHeartbeat":[{"workerInstanceKey":")") + key + R"("}]})");
    }
    for (const List& list : lists) {
      const auto page = nlohmann::json::parse(ask("GET", list.path, list.query, "").body);
      tokens_.push_back(from_base64(page.value("nextPageToken", "")).value_or(""));
    }
  }

  Engine::Answer ask(const std::string& method, const std::string& path, const std::string& query,
                     const std::string& body) {
    http::Request request;
    request.method = method;
    request.path = base + path;
    request.query = query;
    request.target = request.path + (query.empty() ? "" : "?" + query);
    if (method != "GET") request.headers.push_back({"content-type", "application/json"});
    request.body = body;
    return engine_.ask(std::move(request));
  }

  Engine::Answer next_page(const List& list, const std::string& token) {
    std::string escaped;
    for (const char c : to_base64(token)) {
      escaped += c == '+' ? "%2B" : c == '/' ? "%2F" : c == '=' ? "%3D" : std::string(1, c);
    }
    return ask("GET", list.path, std::string(list.query) + "&nextPageToken=" + escaped, "");
  }

  // What the server gave for the second page of lists[index].
  const std::string& token(std::size_t index) const { return tokens_[index]; }

 private:
  Engine engine_;
  std::vector<std::string> tokens_;
};

}  // namespace

// byte 0: which list; byte 1: a token of which list, or of none; then pairs (where, what) that bend
// it, or its bytes.
void page_token(std::string_view input) {
  static World world;
  Choices choices(input);
  const List& list = lists[choices.below(std::size(lists))];
  const std::size_t of = choices.below(std::size(lists) + 1);
  std::string token = of < std::size(lists) ? world.token(of) : std::string(choices.rest());
  const bool bent = !choices.at_end();
  while (!choices.at_end()) {
    const std::size_t at = choices.byte();
    const char byte = static_cast<char>(choices.byte());
    if (at < token.size()) {
      token[at] = byte;
    } else {
      token += byte;
    }
  }
  const Engine::Answer answer = world.next_page(list, token);
  if (of < std::size(lists) && &lists[of] == &list && !bent) {
    promise(answer.status == 200, "a token that was given out is taken");
  }
  promise(answer.status == 200 || answer.status == 400, "a token is taken or refused");
  if (answer.status == 200 || token.empty()) return;
  promise(answer.body.find("PAGE_TOKEN_INVALID") != std::string::npos, "and told so");
}

}  // namespace permit::fuzz
