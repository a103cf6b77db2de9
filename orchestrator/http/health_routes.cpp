// The routes by which the server tells how it is, and what it is.
#include <unistd.h>

#include <array>
#include <filesystem>

#include "orchestrator/http/call.h"
#include "orchestrator/protocol/time_text.h"
#include "orchestrator/protocol/version.h"

namespace permit::http {

namespace {

bool is_failing(const HealthCheck& check) { return check.status == "failing"; }

void reply_well(Exchange& exchange, const Health& health) {
  Response response;
  write_json(health, response.body);
  exchange.reply(std::move(response));
}

// The checks as a detail of the error.
std::string as_detail(const Health& health) {
  std::string detail = R"({"@type":"type.googleapis.com/permit.api.v1.Health",)";
  std::string json;
  write_json(health, json);
  return detail + json.substr(1);
}

std::string first_failure(const Health& health) {
  for (const HealthCheck& check : health.checks) {
    if (is_failing(check)) return check.name + ": " + check.message;
  }
  return "";
}

// The database with its log; 0 if it is in memory.
std::int64_t bytes_of(const std::string& store) {
  std::int64_t bytes = 0;
  for (const char* suffix : {"", "-wal"}) {
    std::error_code none;
    const auto size = std::filesystem::file_size(store + suffix, none);
    if (!none) bytes += static_cast<std::int64_t>(size);
  }
  return bytes;
}

#ifdef __clang__
constexpr const char* compiler = __VERSION__;  // begins with its name
#else
constexpr const char* compiler = "g++ " __VERSION__;
#endif

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

std::vector<LimitInfo> limits_of(const service::Options& options, const Limits& gate) {
  const core::Limits& limits = options.limits;
  std::vector<LimitInfo> named;
  const auto add = [&](const char* name, auto value) {
    named.push_back({name, std::to_string(value)});
  };
  add("payloadBytes", limits.payload_bytes_max);
  add("bodyBytes", gate.body_bytes_max);
  add("headBytes", gate.head_bytes_max);
  add("memoBytes", limits.memo_bytes_max);
  add("workflowIdBytes", limits.workflow_id_bytes_max);
  add("historyEvents", limits.history_events_max);
  add("historyBytes", limits.history_bytes_max);
  add("pendingPerRun", limits.pending_max);
  add("signalsPerRun", limits.signals_max);
  add("slotsPerPool", limits.slots_max);
  add("holdsKeptPerSlot", options.holds_kept);
  add("connections", gate.connections_max);
  add("parkedPolls", options.polls_parked_max);
  add("eventStreams", Streams::streams_max);
  add("requestsPerBatch", options.batch_requests_max);
  named.push_back({"lease", format_duration(limits.lease_max)});
  named.push_back({"pollWait", format_duration(options.poll_wait_max)});
  return named;
}

}  // namespace

// --- Health ---

// The loop that answers is the one that fires timers and decides, so that an answer of whatever
// kind shows that it goes round.
void Routes::readiness(Call& call) {
  const bool verbose = call.flag("verbose");
  const bool may_know = call.caller.access >= Access::read;
  if (verbose) Auth::require(call.caller, Access::read);
  service_.health([this, exchange = call.exchange, verbose,
                   may_know](service::Result<Health> result) {
    Health health;
    if (const auto* error = std::get_if<Error>(&result)) {
      health.checks.push_back({"store", "failing", error->message()});
    } else {
      health = std::get<Health>(std::move(result));
    }
    const std::string unready = options_.unready();
    health.checks.push_back({"loop", unready.empty() ? "ok" : "failing", unready});
    const std::string warning = options_.warning();
    health.checks.push_back({"permits", warning.empty() ? "ok" : "warning", warning});
    for (const HealthCheck& check : health.checks) {
      if (check.status == "warning") health.warnings.push_back(check.message);
    }
    const std::string why = first_failure(health);
    health.status = why.empty() ? "ok" : "unavailable";
    if (!verbose) health.checks.clear();
    if (!may_know) health.warnings.clear();
    if (why.empty()) return reply_well(*exchange, health);
    auto error = Error(ErrorCode::unavailable, "NOT_READY",
                       may_know ? why : "the server cannot serve; who has an API key is told why");
    if (verbose) error.with_detail(as_detail(health));
    reply_error(*exchange, error);
  });
}

void Routes::add_health_routes() {
  const std::string checks = "list what was looked at";
  add("GET", "/livez",
      Doc(Access::open, "Whether the server is alive")
          .query("verbose", ParameterKind::flag, checks)
          .answers<Health>(),
      [](Call& call) {
        Health health{"ok", {}, {}};
        if (call.flag("verbose")) Auth::require(call.caller, Access::read);
        if (call.flag("verbose")) health.checks.push_back({"loop", "ok", ""});
        reply_well(*call.exchange, health);
      });
  add("GET", "/readyz",
      Doc(Access::open, "Whether the server can serve; if not, what is in the way")
          .query("verbose", ParameterKind::flag, checks)
          .answers<Health>()
          .refuses({503}),
      [this](Call& call) { readiness(call); });
  add("GET", "/api/v1/server",
      Doc(Access::read,
          "What the server is: version, settings in force and where they come from, limits")
          .answers<ServerDescription>(),
      [this](Call& call) { describe_server(call); });
}

// --- The server ---

void Routes::describe_server(Call& call) {
  auto done = call.done<ServerDescription>();
  const Caller& caller = call.caller;
  service_.status({}, [this, done, key = caller.key_name,
                       access = caller.access](service::Result<ServerStatus> result) {
    if (const auto* error = std::get_if<Error>(&result)) return done(*error);
    const ServerStatus& status = std::get<ServerStatus>(result);
    ServerDescription server;
    server.version = version;
    server.compiler = compiler;
    server.instance = instance_;
    server.start_time = service_.began();
    server.now = status.now;
    server.store = options_.store;
    server.store_bytes = Count{bytes_of(options_.store)};
    server.held = status.held;
    server.waiting = status.waiting;
    server.fence_epoch = status.fence_epoch;
    server.pid = getpid();
    server.host = host_name();
    server.key = key;
    server.role = access_name(access);
    server.settings = options_.settings;
    server.limits = limits_of(service_.options(), options_.limits);
    const std::string unready = options_.unready();
    server.ready = unready.empty() && service_.obstacle().empty();
    for (const std::string& said : {unready, service_.obstacle(), options_.warning()}) {
      if (!said.empty()) server.warnings.push_back(said);
    }
    done(std::move(server));
  });
}

}  // namespace permit::http
