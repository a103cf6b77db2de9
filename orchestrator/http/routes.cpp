#include "orchestrator/http/routes.h"

#include <algorithm>
#include <map>

#include "orchestrator/http/call.h"
#include "orchestrator/http/request_log.h"
#include "orchestrator/http/url.h"
#include "orchestrator/protocol/base64.h"
#include "orchestrator/protocol/ensure.h"
#include "orchestrator/protocol/json_writer.h"

namespace permit::http {

namespace {

bool is_variable(std::string_view segment) { return segment.starts_with('{'); }

}  // namespace

// --- Errors ---

int status_of(const Error& error) {
  static const std::map<std::string, int> by_reason = {
      {"POOL_FULL", 423},       {"CANNOT_FIT", 422},  {"LEASE_LOST", 410},
      {"DISK_FULL", 507},       {"BODY_TYPE", 415},   {"CAPACITY_MISMATCH", 409},
      {"ADVANCE_BLOCKED", 409}, {"POOL_IN_USE", 409}, {"WAITER_BACKING_OFF", 409},
  };
  const auto found = by_reason.find(error.reason());
  if (found != by_reason.end()) return found->second;
  switch (error.code()) {
    case ErrorCode::invalid_argument:
    case ErrorCode::failed_precondition:
    case ErrorCode::out_of_range:
      return 400;
    case ErrorCode::unauthenticated:
      return 401;
    case ErrorCode::permission_denied:
      return 403;
    case ErrorCode::not_found:
      return 404;
    case ErrorCode::already_exists:
    case ErrorCode::aborted:
      return 409;
    case ErrorCode::resource_exhausted:
      return 429;
    case ErrorCode::canceled:
      return 499;
    case ErrorCode::unimplemented:
      return 501;
    case ErrorCode::unavailable:
      return 503;
    case ErrorCode::deadline_exceeded:
      return 504;
    case ErrorCode::unknown:
    case ErrorCode::internal:
    case ErrorCode::data_loss:
      return 500;
  }
  return 500;
}

void reply_error(Exchange& exchange, const Error& error) {
  Response response;
  response.status = status_of(error);
  response.error = error.reason() + ": " + error.message();
  std::string& body = response.body;
  body = "{\"code\":" + std::to_string(static_cast<int>(error.code())) + ",\"message\":";
  append_json_string(error.message(), body);
  body += ",\"details\":[{\"@type\":\"type.googleapis.com/google.rpc.ErrorInfo\",\"reason\":";
  append_json_string(error.reason(), body);
  body += ",\"domain\":\"permit\"}";
  for (const std::string& detail : error.details()) body += "," + detail;
  body += "]}";
  if (response.status == 423 || response.status == 429 || response.status == 503 ||
      response.status == 507) {
    response.headers.push_back({"Retry-After", "1"});
  }
  exchange.reply(std::move(response));
}

// --- Call ---

const std::string& Routes::Call::variable(std::string_view name) const {
  const std::vector<std::string>& pattern = route->pattern;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const std::string_view segment = pattern[i];
    if (is_variable(segment) && segment.substr(1, segment.size() - 2) == name) return segments[i];
  }
  throw InvariantViolated("no {" + std::string(name) + "} in the route's pattern");
}

std::optional<std::string> Routes::Call::parameter(const std::string& name) const {
  std::optional<std::string> value;
  ENSURE(route == nullptr || route->doc.has_parameter(name));
  for (const auto& [key, text] : query) {
    if (key != name) continue;
    if (value) throw invalid_argument("PARAMETER_INVALID", "parameter " + name + " is given twice");
    value = text;
  }
  return value;
}

std::int32_t Routes::Call::integer(const std::string& name) const {
  const auto text = parameter(name);
  if (!text) return 0;
  std::int32_t value = 0;
  const auto [stop, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc() || stop != text->data() + text->size()) {
    throw invalid_argument("PARAMETER_INVALID", "parameter " + name + " must be a whole number");
  }
  return value;
}

bool Routes::Call::flag(const std::string& name) const {
  const auto text = parameter(name);
  if (!text || *text == "false" || *text == "0") return false;
  if (text->empty() || *text == "true" || *text == "1") return true;
  throw invalid_argument("PARAMETER_INVALID", "parameter " + name + " must be true or false");
}

void Routes::Call::check_parameters() const {
  const bool checked = route->method == "GET" || route->method == "DELETE";
  if (!checked || segments.empty() || segments[0] != "api") return;
  for (const auto& [key, text] : query) {
    if (key == "pretty" || key == "noPayloadShorthand" || route->doc.has_parameter(key)) continue;
    throw invalid_argument("PARAMETER_UNKNOWN", "there is no parameter " + key.substr(0, 64));
  }
}

void Routes::Call::check_content_type() const {
  const std::string* given = exchange->request().header("content-type");
  const std::string_view type =
      given == nullptr ? std::string_view() : std::string_view(*given).substr(0, given->find(';'));
  if (type == "application/json" || type.starts_with("application/json+")) return;
  throw invalid_argument("BODY_TYPE", "the body must be JSON, with Content-Type: application/json");
}

// --- Routes ---

namespace {

std::vector<std::string> segments_of(const std::string& pattern) {
  std::vector<std::string> segments;
  std::size_t at = 1;
  while (at < pattern.size()) {
    const std::size_t end = std::min(pattern.find('/', at), pattern.size());
    segments.push_back(pattern.substr(at, end - at));
    at = end + 1;
  }
  return segments;
}

bool matches(const std::vector<std::string>& pattern, const std::vector<std::string>& segments) {
  const bool takes_rest = !pattern.empty() && pattern.back().ends_with("...}");
  if (takes_rest ? segments.size() < pattern.size() : segments.size() != pattern.size()) {
    return false;
  }
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (!is_variable(pattern[i]) && pattern[i] != segments[i]) return false;
  }
  return true;
}

// Tells this process from the one before and the one after.
std::string new_instance() {
  std::string text = std::to_string(service::random_seed());
  text.resize(std::min<std::size_t>(text.size(), 12));
  return text;
}

}  // namespace

Routes::Routes(service::Service& service, service::Reads& reads, RouteOptions options)
    : service_(service),
      reads_(reads),
      options_(std::move(options)),
      instance_(new_instance()),
      streams_(service, instance_),
      assets_(options_.page_directory) {
  const service::Options& served = service.options();
  info_ = {static_cast<std::int64_t>(served.limits.payload_bytes_max),
           static_cast<std::int64_t>(served.limits.memo_bytes_max), served.retention};
  add_rpcs();
  add_workflow_routes();
  add_list_routes();
  add_task_routes();
  add_worker_routes();
  add_pool_routes();
  add_pool_rpcs();
  add_server_routes();
  add_health_routes();
  add_metrics_routes();
  add_page_routes();
}

Routes::~Routes() = default;

void Routes::add(const std::string& method, const std::string& pattern, Doc doc, Handler handler) {
  routes_.push_back({method, segments_of(pattern), std::move(doc), std::move(handler),
                     requests_->add(method, pattern)});
}

void Routes::not_offered(const std::string& method, const std::string& pattern,
                         const std::string& what) {
  add(method, pattern, Doc(what + ": not offered").refuses({501}), [what](Call&) {
    throw Error(ErrorCode::unimplemented, "NOT_OFFERED", what + " is not offered by this server");
  });
}

void Routes::dispatch(Call& call) {
  const std::string& method = call.exchange->request().method;
  std::string allowed;
  for (const Route& route : routes_) {
    if (!matches(route.pattern, call.segments)) continue;
    if (route.method != method) {
      allowed += (allowed.empty() ? "" : ", ") + route.method;
      continue;
    }
    call.route = &route;
    call.measured->found_route(route.measured);
    call.check_parameters();
    route.handler(call);
    return;
  }
  if (allowed.empty()) throw not_found("ROUTE_NOT_FOUND", "there is nothing at this path");
  Response response = error_response(405, static_cast<int>(ErrorCode::unimplemented),
                                     "METHOD_NOT_ALLOWED", "this path takes " + allowed);
  response.headers.push_back({"Allow", allowed});
  call.exchange->reply(std::move(response));
}

void Routes::handle(const std::shared_ptr<Exchange>& unmeasured) {
  const auto exchange = std::make_shared<MeasuredExchange>(unmeasured, requests_);
  try {
    Request& request = exchange->request();
    service_.set_caller({trace_of(request), exchange->connection()});
    Call call;
    call.exchange = exchange;
    call.measured = exchange.get();
    auto segments = split_path(request.path);
    auto query = parse_query(request.query);
    if (!segments || !query) {
      throw invalid_argument("TARGET_INVALID", "the path or query is not well percent-encoded");
    }
    call.segments = std::move(*segments);
    call.query = std::move(*query);
    // /namespaces/… is the same as /api/v1/namespaces/…
    if (!call.segments.empty() && call.segments[0] == "namespaces") {
      call.segments.insert(call.segments.begin(), {"api", "v1"});
    }
    const std::string* type = request.header("content-type");
    const bool long_form =
        call.flag("noPayloadShorthand") ||
        (type != nullptr && type->find("+no-payload-shorthand") != std::string::npos);
    if (long_form) call.form = PayloadForm::long_form;
    dispatch(call);
  } catch (const Error& error) {
    reply_error(*exchange, error);
  } catch (const std::exception& bug) {
    LogLine line;
    line.level = LogLine::Level::error;
    line.event = "invariant_violated";
    line.error = bug.what();
    service_.log().write(line);
    reply_error(*exchange, Error(ErrorCode::internal, "INTERNAL", "Internal error"));
  }
  service_.set_caller({});
}

}  // namespace permit::http
