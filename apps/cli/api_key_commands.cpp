// permit api-key create | list | revoke: through the server, or in a database without one.
#include "apps/cli/command.h"
#include "apps/cli/database_file.h"
#include "apps/cli/duration_text.h"
#include "apps/cli/exit_codes.h"
#include "apps/cli/session.h"
#include "orchestrator/protocol/json.h"

namespace permit::cli {

namespace {

const Flag database_flag = {"database",
                            0,
                            ValueType::text,
                            "FILE",
                            "of a server that does not run, instead of asking one",
                            Completes::file};

template <class Response, class Request>
Response ask(Session& session, const char* name, Request request) {
  request.namespace_ = session.namespace_name();
  return worker::call<Response>(session.transport(),
                                std::string("permit.api.v1.PermitService/") + name, request);
}

Role role_of(const std::string& word) {
  if (word == "read") return Role::read;
  return word == "worker" ? Role::worker : Role::admin;
}

int run_create(Session& session) {
  const Arguments& arguments = session.arguments();
  CreateApiKeyRequest request;
  request.namespace_ = session.namespace_name();
  request.name = arguments.operand(0);
  if (!arguments.has("role")) throw UsageError("say what the key may do: --role read|worker|admin");
  request.role = role_of(arguments.text_or("role", ""));
  request.lifetime = arguments.duration("expires").value_or(Duration{});
  if (arguments.has("expires") && request.lifetime.count() <= 0) {
    throw UsageError("--expires: above 0s");
  }
  request.identity = session.identity();
  const auto database = arguments.text("database");
  const auto made = database ? create_api_key_in(*database, request)
                             : ask<CreateApiKeyResponse>(session, "CreateApiKey", request);
  session.out().json(to_json(made, PayloadForm::shorthand));
  session.out().text(made.secret);
  session.out().note("key " + made.key.name + " (id " + std::to_string(made.key.id.value) +
                     "), role " + role_name(made.key.role) +
                     "; keep what is printed now, it is not shown again");
  return exit_ok;
}

Style style_of(const ApiKeyInfo& key) { return key.state == "valid" ? Style::plain : Style::dim; }

int run_list(Session& session) {
  const auto database = session.arguments().text("database");
  const auto answer = database
                          ? list_api_keys_in(*database)
                          : ask<ListApiKeysResponse>(session, "ListApiKeys", ListApiKeysRequest());
  const Output& out = session.out();
  std::vector<std::string> lines;
  lines.reserve(answer.keys.size());
  for (const ApiKeyInfo& key : answer.keys) lines.push_back(to_json(key, PayloadForm::shorthand));
  out.json(to_json(answer, PayloadForm::shorthand), lines);
  if (answer.keys.empty()) {
    out.text("There is no API key yet. Make one: permit api-key create NAME --role worker");
    return exit_ok;
  }
  Table table({{"ID", Table::Align::right},
               {"NAME"},
               {"ROLE"},
               {"STATE"},
               {"CREATED"},
               {"EXPIRES"},
               {"LAST USED"}});
  for (const ApiKeyInfo& key : answer.keys) {
    const auto clock = [&](Time time) { return is_set(time) ? out.clock(time) : "-"; };
    table.add({{std::to_string(key.id.value)},
               {key.name, style_of(key)},
               {role_name(key.role)},
               {key.state, style_of(key)},
               {clock(key.created_at)},
               {clock(key.expires_at)},
               {clock(key.last_used_at)}});
  }
  out.table(table);
  return exit_ok;
}

int run_revoke(Session& session) {
  RevokeApiKeyRequest request;
  request.key = session.arguments().operand(0);
  request.identity = session.identity();
  const auto database = session.arguments().text("database");
  const auto key = database ? revoke_api_key_in(*database, request)
                            : ask<ApiKeyInfo>(session, "RevokeApiKey", request);
  session.out().json(to_json(key, PayloadForm::shorthand));
  session.out().text("key " + key.name + " is revoked: whoever uses it is refused from now on");
  return exit_ok;
}

}  // namespace

std::vector<Command> api_key_commands() {
  return {{"api-key create",
           "make an API key, and print it once",
           "Role read looks; worker also starts, signals, polls, acquires, renews and releases; "
           "admin may do everything. A server that listens beyond this machine needs an admin key "
           "before it starts: make it with --database.",
           {{"permit api-key create ci --role worker --expires 90d", ""},
            {"permit api-key create admin --role admin --database /var/lib/permit/permit.db",
             "before the server's first start"}},
           {{"NAME"}},
           {{"role",
             0,
             ValueType::choice,
             "",
             "what the key may do",
             Completes::choices,
             {"read", "worker", "admin"}},
            {"expires", 0, ValueType::duration, "D", "how long it is good (for ever)"},
            database_flag},
           run_create},
          {"api-key list",
           "all API keys, without their secrets",
           "",
           {{"permit api-key list", ""}},
           {},
           {database_flag},
           run_list},
          {"api-key revoke",
           "refuse an API key from now on",
           "Takes effect with its next request; what waits by it ends within seconds.",
           {{"permit api-key revoke ci", ""}},
           {{"NAME"}},
           {database_flag},
           run_revoke}};
}

}  // namespace permit::cli
