// permit server start-dev | start: from flags to ServerOptions.
#include <filesystem>

#include "apps/cli/command.h"
#include "apps/cli/exit_codes.h"
#include "apps/cli/server_command.h"
#include "apps/cli/server_config.h"
#include "apps/cli/session.h"
#include "orchestrator/protocol/error.h"

namespace permit::cli {

namespace {

using namespace std::chrono_literals;

const Flag config_flag = {"config",
                          0,
                          ValueType::text,
                          "FILE",
                          "the configuration, TOML: [server], [log] and [pools.NAME]",
                          Completes::file};

std::vector<Flag> shared_flags() {
  std::vector<Flag> flags = {
      {"ip", 0, ValueType::text, "ADDRESS", "the address to listen on; loopback only (127.0.0.1)"},
      {"port",
       0,
       ValueType::number,
       "N",
       "the port; 0 takes any free one (7376)",
       Completes::nothing,
       {},
       0,
       65535},
      {"listen", 0, ValueType::text, "ADDRESS:PORT", "both in one"},
      config_flag,
      {"retention", 0, ValueType::duration, "D", "how long closed runs are kept (72h)"},
      {"permit-queue", 0, ValueType::text, "NAME",
       "the task queue that permits are on ($PERMIT_QUEUE, else permits)"},
      {"no-permit-worker", 0, ValueType::none, "",
       "leave permits to a worker elsewhere: permit worker start"},
      {"metrics-per-slot", 0, ValueType::none, "",
       "GET /metrics says of each slot whether it is held"},
      {"ui-asset-path", 0, ValueType::text, "DIR",
       "serve the page from this directory, to work on it (from the binary)", Completes::file},
      {"log-slow", 0, ValueType::duration, "D", "log answers that take this long (1s)"}};
  for (Flag& flag : log_flags()) flags.push_back(std::move(flag));
  return flags;
}

// That these came from flags, whatever the file says.
void note_flags(const Arguments& arguments, ServerOptions& options) {
  const std::vector<std::pair<const char*, const char*>> settings = {
      {"listen", "listen"},
      {"ip", "listen"},
      {"port", "listen"},
      {"retention", "retention"},
      {"db-filename", "database"},
      {"permit-queue", "permit_queue"},
      {"no-permit-worker", "permit_worker"},
      {"ui-asset-path", "ui-asset-path"},
      {"virtual-time", "virtual-time"},
      {"log-slow", "log.slow"}};
  for (const auto& [flag, setting] : settings) {
    if (arguments.has(flag)) options.origins[setting] = "flag";
  }
}

// Flags over the file, the file over defaults.
ServerOptions options_of(const Session& session) {
  const Arguments& arguments = session.arguments();
  ServerOptions options;
  if (const auto queue = environment_variable("PERMIT_QUEUE")) {
    options.permit_queue = *queue;
    options.origins["permit_queue"] = "environment";
  }
  if (const auto file = arguments.text("config")) read_server_config(*file, options);
  if (const auto listen = arguments.text("listen")) parse_listen("--listen", *listen, options);
  options.address = arguments.text_or("ip", options.address);
  options.port = static_cast<std::uint16_t>(arguments.number("port").value_or(options.port));
  options.retention = arguments.duration("retention").value_or(options.retention);
  if (options.retention < 1s) throw UsageError("--retention: at least 1s");
  options.permit_queue = arguments.text_or("permit-queue", options.permit_queue);
  if (arguments.has("no-permit-worker")) options.permit_worker = false;
  if (arguments.has("metrics-per-slot")) options.metrics_per_slot = true;
  options.page_directory = arguments.text_or("ui-asset-path", "");
  options.database = arguments.text_or("db-filename", options.database);
  read_log_options(arguments, options.log, [&](const std::string& name, const std::string& origin) {
    options.origins["log." + name.substr(std::string("log-").size())] = origin;
  });
  options.log.slow = arguments.duration("log-slow").value_or(options.log.slow);
  note_flags(arguments, options);
  return options;
}

int run_start_dev(Session& session) {
  ServerOptions options = options_of(session);
  options.is_dev = true;
  options.virtual_time = session.arguments().has("virtual-time");
  options.demo_pool = !session.arguments().has("no-demo-pool");
  return run_server(options);
}

// Where a service keeps its data: systemd says, else as other programs of a user do.
std::string default_database() {
  if (const auto directory = environment_variable("STATE_DIRECTORY")) {
    return *directory + "/permit.db";
  }
  std::string state = environment_variable("HOME").value_or("") + "/.local/state";
  state = environment_variable("XDG_STATE_HOME").value_or(state) + "/permit";
  std::filesystem::create_directories(state);
  return state + "/permit.db";
}

int run_start(Session& session) {
  ServerOptions options = options_of(session);
  if (options.database.empty()) {
    options.database = default_database();
    if (environment_variable("STATE_DIRECTORY")) options.origins["database"] = "environment";
  }
  return run_server(options);
}

// The file is read as `server start` reads it; nothing is started.
int run_check(Session& session) {
  ServerOptions options;
  if (!session.arguments().has("config")) throw UsageError("say which file: --config FILE");
  read_server_config(session.arguments().text("config").value(), options);
  try {
    try_server(options);
  } catch (const Error& error) {
    throw UsageError(session.arguments().text("config").value() + ": " + error.message());
  }
  session.out().json(R"({"valid":true})");
  session.out().text(session.arguments().text("config").value() +
                     " is valid: " + std::to_string(options.pools.size()) + " pools");
  return exit_ok;
}

}  // namespace

std::vector<Command> server_commands() {
  std::vector<Flag> dev = shared_flags();
  dev.push_back({"db-filename", 0, ValueType::text, "FILE", "keep the data in this file (memory)",
                 Completes::file});
  dev.push_back({"no-demo-pool", 0, ValueType::none, "", "without the pool \"demo\" of 4 slots"});
  dev.push_back({"virtual-time", 0, ValueType::none, "",
                 "time stands still until POST /api/v1/test/advance moves it"});
  std::vector<Flag> service = shared_flags();
  service.push_back({"db-filename", 0, ValueType::text, "FILE",
                     "the database ($STATE_DIRECTORY/permit.db, else "
                     "~/.local/state/permit/permit.db)",
                     Completes::file});
  return {{"server start-dev",
           "a server to try things out with",
           "Keeps its data in memory unless told otherwise, makes a pool \"demo\", and serves "
           "permits itself.",
           {{"permit server start-dev", ""},
            {"permit server start-dev --db-filename dev.db --port 7400", ""}},
           {},
           dev,
           run_start_dev},
          {"server start",
           "a server that keeps its data",
           "",
           {{"permit server start --db-filename /var/lib/permit/permit.db", ""},
            {"permit server start --config /etc/permit/server.toml", ""}},
           {},
           service,
           run_start},
          {"server check",
           "read a server's configuration without starting it",
           "",
           {{"permit server check --config /etc/permit/server.toml", ""}},
           {},
           {config_flag},
           run_check}};
}

}  // namespace permit::cli
