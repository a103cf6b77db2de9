// One request on its way through a route: its variables, its body as a struct, its answer.
#pragma once

#include <charconv>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "orchestrator/http/message.h"
#include "orchestrator/http/routes.h"
#include "orchestrator/protocol/ensure.h"
#include "orchestrator/protocol/json.h"

namespace permit::http {

void reply_error(Exchange& exchange, const Error& error);

struct Routes::Call {
  std::shared_ptr<Exchange> exchange;
  std::vector<std::string> segments;
  MeasuredExchange* measured = nullptr;  // the same
  const Route* route = nullptr;
  std::vector<std::pair<std::string, std::string>> query;
  PayloadForm form = PayloadForm::shorthand;
  Caller caller;
  bool pretty = false;

  // The segment that stands for "{name}" in the route's pattern.
  const std::string& variable(std::string_view name) const;

  // A query parameter by its lowerCamelCase name. Given twice is an error.
  std::optional<std::string> parameter(std::string_view name) const;
  std::int32_t integer(std::string_view name) const;
  bool flag(std::string_view name) const;
  // Refuses parameters that the route's Doc does not have.
  void check_parameters() const;

  // The body as a request. Throws Error.
  template <class Request>
  Request body() const {
    ENSURE(route->doc.body().index == typeid(Request));
    check_content_type();
    Request request = read_json<Request>(exchange->request().body);
    // What a key may do is a matter of what is in the body, too.
    if constexpr (requires { request.namespace_; }) check_namespace(request.namespace_);
    if constexpr (requires { request.workflow_id_conflict_policy; }) {
      check_may_terminate(request.workflow_id_reuse_policy, request.workflow_id_conflict_policy);
    }
    if constexpr (requires { request.identity; }) {
      if (route->doc.access() == Access::admin) request.identity = on_record(request.identity);
    }
    return request;
  }
  void check_content_type() const;
  // Of a key with another namespace; empty is the default one.
  void check_namespace(const std::string& name) const;
  // A start that ends the run before it does what takes an admin.
  void check_may_terminate(WorkflowIdReusePolicy reuse, WorkflowIdConflictPolicy conflict) const;
  // Who did it, as the books have it: with the name of the key, which nobody can make up.
  std::string on_record(const std::string& identity) const;

  // Answers with the struct, or with the error.
  template <class Response>
  service::Done<Response> done() const {
    ENSURE(route->doc.has_answer<Response>());
    return [exchange = exchange, form = form](const service::Result<Response>& result) {
      if (const auto* error = std::get_if<Error>(&result)) {
        reply_error(*exchange, *error);
        return;
      }
      http::Response response;
      write_json(std::get<Response>(result), response.body, form);
      exchange->reply(std::move(response));
    };
  }

  // The same for a struct that has been written already.
  template <class Response>
  service::Done<std::string> done_written() const {
    ENSURE(route->doc.has_answer<Response>());
    return [exchange = exchange](service::Result<std::string>&& result) {
      if (const auto* error = std::get_if<Error>(&result)) {
        reply_error(*exchange, *error);
        return;
      }
      http::Response response;
      response.body = std::move(std::get<std::string>(result));
      exchange->reply(std::move(response));
    };
  }
};

// An RPC: a POST of its request message, in the long form. Of Temporal's service, unless the name
// has the service in it.
template <class Request, class Response>
void Routes::rpc(Access access, const std::string& name, const std::string& summary,
                 void (service::Service::*method)(Request, service::Done<Response>)) {
  const bool is_temporal = name.find('/') == std::string::npos;
  add("POST", (is_temporal ? "/temporal.api.workflowservice.v1.WorkflowService/" : "/") + name,
      Doc(access, summary).takes<Request>().template answers<Response>(),
      [this, method](Call& call) {
        call.form = PayloadForm::long_form;
        (service_.*method)(call.body<Request>(), call.done<Response>());
      });
}

}  // namespace permit::http
