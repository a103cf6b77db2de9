// API keys, for admins; and the sessions that browsers get for them.
#include "orchestrator/http/call.h"
#include "orchestrator/protocol/json_writer.h"

namespace permit::http {

void Routes::add_key_routes() {
  using service::Service;
  const std::string K = "/api/v1/namespaces/{namespace}/api-keys";
  const std::string S = "permit.api.v1.PermitService/";
  add("GET", K,
      Doc(Access::admin, "All API keys, without their secrets").answers<ListApiKeysResponse>(),
      [this](Call& call) {
        service_.list_api_keys({call.variable("namespace")}, call.done<ListApiKeysResponse>());
      });
  add("POST", K,
      Doc(Access::admin, "Make an API key; its secret is told this once")
          .takes<CreateApiKeyRequest>()
          .answers<CreateApiKeyResponse>()
          .refuses({409}),
      [this](Call& call) {
        auto request = call.body<CreateApiKeyRequest>();
        request.namespace_ = call.variable("namespace");
        service_.create_api_key(std::move(request), call.done<CreateApiKeyResponse>());
      });
  add("DELETE", K + "/{key}",
      Doc(Access::admin, "Revoke an API key, by its name or id: it is refused from now on")
          .query("identity", ParameterKind::text, "who does it")
          .answers<ApiKeyInfo>()
          .refuses({404}),
      [this](Call& call) {
        service_.revoke_api_key({call.variable("namespace"), call.variable("key"),
                                 call.on_record(call.parameter("identity").value_or(""))},
                                call.done<ApiKeyInfo>());
      });
  rpc(Access::admin, S + "CreateApiKey", "Make an API key; its secret is told this once",
      &Service::create_api_key);
  rpc(Access::admin, S + "ListApiKeys", "All API keys, without their secrets",
      &Service::list_api_keys);
  rpc(Access::admin, S + "RevokeApiKey", "Revoke an API key, by its name or id",
      &Service::revoke_api_key);
}

namespace {

template <class Answer>
void reply_with_cookie(Exchange& exchange, const Answer& answer, Header cookie) {
  Response response;
  write_json(answer, response.body);
  response.headers.push_back(std::move(cookie));
  exchange.reply(std::move(response));
}

}  // namespace

void Routes::add_login_routes() {
  add("POST", "/api/v1/login",
      Doc(Access::open, "A session for a browser, as a cookie, for an API key")
          .takes<LoginRequest>()
          .answers<LoginResponse>()
          .refuses({401, 429}),
      [this](Call& call) {
        Auth::Login login =
            auth_.log_in(call.exchange->request(), call.body<LoginRequest>().key, service_.time());
        reply_with_cookie(*call.exchange, login.response, std::move(login.cookie));
      });
  add("POST", "/api/v1/logout",
      Doc(Access::open, "Ends the session of this browser")
          .takes<LogoutRequest>()
          .answers<EmptyResponse>(),
      [this](Call& call) {
        call.body<LogoutRequest>();
        reply_with_cookie(*call.exchange, EmptyResponse{}, auth_.log_out(call.exchange->request()));
      });
}

}  // namespace permit::http
