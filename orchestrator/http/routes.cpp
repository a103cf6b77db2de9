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

Error invalid_parameter(std::string_view name, const char* problem) {
  return invalid_argument("PARAMETER_INVALID", "parameter " + std::string(name) + ' ' + problem);
}

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
  if (response.status == 401) {
    const bool is_wrong = error.reason() != "API_KEY_MISSING";
    response.headers.push_back(
        {"WWW-Authenticate",
         std::string("Bearer realm=\"permit\"") + (is_wrong ? ", error=\"invalid_token\"" : "")});
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

std::optional<std::string> Routes::Call::parameter(std::string_view name) const {
  std::optional<std::string> value;
  ENSURE(route == nullptr || route->doc.has_parameter(name));
  for (const auto& [key, text] : query) {
    if (key != name) continue;
    if (value) throw invalid_parameter(name, "is given twice");
    value = text;
  }
  return value;
}

std::int32_t Routes::Call::integer(std::string_view name) const {
  const auto text = parameter(name);
  if (!text) return 0;
  std::int32_t value = 0;
  const auto [stop, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc() || stop != text->data() + text->size()) {
    throw invalid_parameter(name, "must be a whole number");
  }
  return value;
}

bool Routes::Call::flag(std::string_view name) const {
  const auto text = parameter(name);
  if (!text || *text == "false" || *text == "0") return false;
  if (text->empty() || *text == "true" || *text == "1") return true;
  throw invalid_parameter(name, "must be true or false");
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

// As for a namespace that does not exist: a key learns nothing of others.
void Routes::Call::check_namespace(const std::string& name) const {
  if (caller.namespace_.empty() || caller.namespace_ == (name.empty() ? "default" : name)) return;
  throw not_found("NAMESPACE_NOT_FOUND", "there is no such namespace for this API key");
}

void Routes::Call::check_may_terminate(WorkflowIdReusePolicy reuse,
                                       WorkflowIdConflictPolicy conflict) const {
  const bool may_terminate = reuse == WorkflowIdReusePolicy::terminate_if_running ||
                             conflict == WorkflowIdConflictPolicy::terminate_existing;
  if (may_terminate) Auth::require(caller, Access::admin);
}

std::string Routes::Call::on_record(const std::string& identity) const {
  if (caller.key_name.empty()) return identity;
  return identity + (identity.empty() ? "" : " ") + "(key " + caller.key_name + ")";
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

bool matches(const Routes::Route& route, const std::vector<std::string>& segments) {
  const std::size_t size = route.pattern.size();
  if (route.takes_rest ? segments.size() < size : segments.size() != size) return false;
  return std::all_of(route.fixed.begin(), route.fixed.end(),
                     [&](std::size_t i) { return route.pattern[i] == segments[i]; });
}

// The last ones first: they differ most.
std::vector<std::size_t> fixed_segments(const std::vector<std::string>& pattern) {
  std::vector<std::size_t> fixed;
  for (std::size_t i = pattern.size(); i-- > 0;) {
    if (!is_variable(pattern[i])) fixed.push_back(i);
  }
  return fixed;
}

bool has_variable(const std::vector<std::string>& pattern, std::string_view name) {
  return std::any_of(pattern.begin(), pattern.end(), [&](std::string_view segment) {
    return is_variable(segment) && segment.substr(1, segment.size() - 2) == name;
  });
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
      auth_(service.api_keys(), options_.auth),
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
  add_key_routes();
  add_login_routes();
}

Routes::~Routes() = default;

void Routes::add(const std::string& method, const std::string& pattern, Doc doc, Handler handler) {
  routes_.push_back({method, segments_of(pattern), std::move(doc), std::move(handler),
                     requests_->add(method, pattern)});
  Route& route = routes_.back();
  route.has_namespace = has_variable(route.pattern, "namespace");
  route.fixed = fixed_segments(route.pattern);
  route.takes_rest = pattern.ends_with("...}");
  const std::size_t length = std::min(route.pattern.size(), by_length_.size() - 1);
  const std::size_t longest = route.takes_rest ? by_length_.size() - 1 : length;
  Candidate candidate{routes_.size() - 1, std::string::npos, ""};
  if (!route.fixed.empty()) {
    candidate.place = route.fixed.front();
    candidate.segment = route.pattern[candidate.place];
  }
  for (std::size_t i = length; i <= longest; ++i) by_length_[i].push_back(candidate);
}

void Routes::not_offered(const std::string& method, const std::string& pattern,
                         const std::string& what) {
  add(method, pattern, Doc(Access::read, what + ": not offered").refuses({501}), [what](Call&) {
    throw Error(ErrorCode::unimplemented, "NOT_OFFERED", what + " is not offered by this server");
  });
}

void Routes::dispatch(Call& call) {
  const std::string& method = call.exchange->request().method;
  std::string allowed;
  for (const Candidate& one : by_length_[std::min(call.segments.size(), by_length_.size() - 1)]) {
    const bool has_place = one.place < call.segments.size();
    if (has_place && call.segments[one.place] != one.segment) continue;
    const Route& route = routes_[one.route];
    if (!matches(route, call.segments)) continue;
    if (route.method != method) {
      allowed += (allowed.empty() ? "" : ", ") + route.method;
      continue;
    }
    call.route = &route;
    call.measured->found_route(route.measured);
    Auth::require(call.caller, route.doc.access());
    if (route.has_namespace) call.check_namespace(call.variable("namespace"));
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

// Throws Error for a key that is not good. What is refused for want of one is told by dispatch().
void Routes::identify(Call& call) {
  try {
    call.caller = auth_.caller_of(call.exchange->request(), service_.time());
    call.measured->set_key(call.caller.key_name);
  } catch (const Error&) {
    if (const auto peer = auth_.take_noisy_peer()) {
      LogLine line;
      line.level = LogLine::Level::warn;
      line.event = "api_keys_wrong";
      const std::string said = "more than " + std::to_string(Auth::wrong_keys_max) +
                               " wrong API keys within a second, from " + *peer;
      line.msg = said;
      service_.log().write(line);
    }
    throw;
  }
}

void Routes::handle(const std::shared_ptr<Exchange>& unmeasured) { take(unmeasured, false); }
void Routes::handle_own(const std::shared_ptr<Exchange>& unmeasured) { take(unmeasured, true); }

void Routes::take(const std::shared_ptr<Exchange>& unmeasured, bool is_own) {
  const auto exchange = std::make_shared<MeasuredExchange>(unmeasured, requests_);
  try {
    Request& request = exchange->request();
    Call call;
    call.exchange = exchange;
    call.measured = exchange.get();
    if (is_own) {
      call.caller.access = Access::worker;
    } else {
      identify(call);
    }
    const bool is_admin = call.caller.access >= Access::admin;
    service_.set_caller({trace_of(request), exchange->connection(), is_admin});
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
    if (call.caller.key != 0 && exchange->waits()) {
      keyed_waits_.push_back({exchange, std::move(call.caller)});
    }
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

void Routes::end_unauthorized() {
  const auto steady_now = std::chrono::steady_clock::now();
  if (steady_now - keys_checked_ < std::chrono::seconds(1)) return;
  keys_checked_ = steady_now;
  const Time now = service_.time();
  const auto is_over = [&](const Caller& caller) { return !auth_.is_good(caller, now); };
  streams_.end_of(is_over);
  std::vector<std::shared_ptr<MeasuredExchange>> ending;
  std::erase_if(keyed_waits_, [&](const KeyedWait& wait) {
    auto exchange = wait.exchange.lock();
    if (exchange == nullptr || !exchange->waits()) return true;
    if (!is_over(wait.caller)) return false;
    ending.push_back(std::move(exchange));
    return true;
  });
  const Error over(ErrorCode::unauthenticated, "API_KEY_REVOKED",
                   "the API key, or its session, has ended while this waited");
  for (const auto& exchange : ending) {
    exchange->leave_wait();
    reply_error(*exchange, over);
    exchange->ignore_replies();
  }
}

}  // namespace permit::http
