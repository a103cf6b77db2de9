#include "tests/bench/peers/http_sessions.h"

#include <charconv>
#include <stdexcept>
#include <utility>

#include "orchestrator/protocol/base64.h"
#include "tests/bench/load.h"

namespace permit::bench {

namespace {

const std::string namespace_path = "/api/v1/namespaces/default";

[[noreturn]] void fail(const std::string& what) { throw std::runtime_error(what); }

std::int64_t number_field(std::string_view json, std::string_view name) {
  const std::string key = "\"" + std::string(name) + "\":";
  const std::size_t at = json.find(key);
  if (at == std::string_view::npos) fail("no " + std::string(name) + " in " + std::string(json));
  json.remove_prefix(at + key.size());
  if (json.starts_with('"')) json.remove_prefix(1);
  std::int64_t number = 0;
  std::from_chars(json.data(), json.data() + json.size(), number);
  return number;
}

bool is_ok(int status) { return status == 200 || status == 201; }

}  // namespace

std::optional<HttpSession::Response> HttpSession::take_response() {
  stream_.read();
  std::string& received = stream_.received();
  const Head head = read_head(received);
  if (head.size == 0 || received.size() < head.size + head.body_size) return std::nullopt;
  if (received.size() != head.size + head.body_size) fail("an answer too many");
  Response response{head.status, received.substr(head.size)};
  received.clear();
  return response;
}

std::string HttpSession::call(std::string_view request) {
  send(request);
  for (;;) {
    wait_readable(socket());
    const std::optional<Response> response = take_response();
    if (!response) continue;
    if (!is_ok(response->status)) fail("HTTP " + std::to_string(response->status));
    return response->body;
  }
}

// --- Permit ---

PermitSession::PermitSession(std::uint16_t port, Ask ask)
    : HttpSession(port), ask_(std::move(ask)) {
  static std::uint64_t clients = 0;
  client_ = std::to_string(++clients);
}

void PermitSession::acquire() {
  acquiring_ = true;
  const std::string body = R"({"count":1,"lease":"60.000s","holder":"bench","wait":")" + ask_.wait +
                           R"(","requestId":"bench-)" + client_ + "-" +
                           std::to_string(++last_request_) + "\"}";
  send(post(namespace_path + "/pools/" + ask_.pool + "/acquire", body));
}

void PermitSession::release() {
  acquiring_ = false;
  send(post(namespace_path + "/permits/permit:" + ask_.pool + ":" + slot_ + "/release",
            "{\"token\":\"" + token_ + "\"}"));
}

void PermitSession::take_grant(const std::string& body) {
  slot_ = text_field(body, "slot");
  token_ = text_field(body, "token");
  fence_ = number_field(body, "fence");
}

Answer PermitSession::receive() {
  const std::optional<Response> response = take_response();
  if (!response) return Answer::none;
  if (acquiring_ && response->status == 423) return Answer::refused;  // POOL_FULL
  if (!is_ok(response->status)) {
    fail("Permit: " + std::to_string(response->status) + " " + response->body);
  }
  if (!acquiring_) return Answer::released;
  if (text_field(response->body, "state") != "granted") return Answer::refused;
  take_grant(response->body);
  return Answer::granted;
}

void make_pool(std::uint16_t port, const std::string& pool, int capacity) {
  Load load(port);
  load.send(
      load.connect(),
      put(namespace_path + "/pools/" + pool, "{\"capacity\":" + std::to_string(capacity) + "}"),
      [](std::string_view) {});
  load.run_until([&] { return load.outstanding() == 0; });
}

// --- etcd's gateway ---

EtcdGatewaySession::EtcdGatewaySession(std::uint16_t port, const std::string& key)
    : HttpSession(port), key_(to_base64("gateway/" + key)) {}

void EtcdGatewaySession::acquire() {
  step_ = Step::grant;
  send(post("/v3/lease/grant", R"({"TTL":"60"})"));
}

void EtcdGatewaySession::release() { revoke(Step::revoke); }

// Of what has the lock, that is the release; of what has not, it cleans up.
void EtcdGatewaySession::revoke(Step step) {
  step_ = step;
  send(post("/v3/lease/revoke", R"({"ID":")" + lease_ + "\"}"));
}

Answer EtcdGatewaySession::receive() {
  const std::optional<Response> response = take_response();
  if (!response) return Answer::none;
  if (response->status != 200) fail("etcd's gateway: " + response->body);
  const std::string& body = response->body;
  switch (step_) {
    case Step::grant:
      lease_ = text_field(body, "ID");
      step_ = Step::create;
      send(
          post("/v3/kv/txn", R"({"compare":[{"target":"CREATE","key":")" + key_ +
                                 R"(","create_revision":"0"}],"success":[{"request_put":{"key":")" +
                                 key_ + R"(","value":"Yg==","lease":")" + lease_ + "\"}}]}"));
      return Answer::none;
    case Step::create:
      if (body.find("\"succeeded\":true") != std::string::npos) return Answer::granted;
      revoke(Step::give_up);
      return Answer::none;
    case Step::revoke:
      return Answer::released;
    case Step::give_up:
      return Answer::refused;
    case Step::none:
      break;
  }
  fail("etcd's gateway answers what nobody asked");
}

}  // namespace permit::bench
