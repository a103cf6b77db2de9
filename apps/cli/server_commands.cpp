// permit server start-dev | start: from flags to ServerOptions; and what else is done with a
// server.
#include <filesystem>

#include "apps/cli/command.h"
#include "apps/cli/database_commands.h"
#include "apps/cli/exit_codes.h"
#include "apps/cli/server_command.h"
#include "apps/cli/server_config.h"
#include "apps/cli/session.h"
#include "orchestrator/protocol/error.h"
#include "orchestrator/protocol/json.h"

namespace permit::cli {

namespace {

using namespace std::chrono_literals;

const Flag config_flag = {"config",
                          0,
                          ValueType::text,
                          "FILE",
                          "the configuration, TOML: [server], [log] and [pools.NAME]",
                          Completes::file};

const Flag database_flag = {
    "database", 0, ValueType::text, "FILE", "the database (as of server start)", Completes::file};

std::vector<Flag> shared_flags() {
  std::vector<Flag> flags = {
      {"ip", 0, ValueType::text, "ADDRESS", "the address to listen on (127.0.0.1)"},
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
      {"auth",
       0,
       ValueType::choice,
       "",
       "whether requests need an API key (none on loopback, keys elsewhere)",
       Completes::choices,
       {"none", "keys"}},
      {"insecure", 0, ValueType::none, "",
       "listen beyond loopback without TLS: keys and data are sent in the clear"},
      {"tls-cert", 0, ValueType::text, "FILE", "serve https with this certificate, PEM",
       Completes::file},
      {"tls-key", 0, ValueType::text, "FILE", "its key; mode 0600", Completes::file},
      {"tls-client-ca", 0, ValueType::text, "FILE",
       "clients need a certificate of one of these authorities", Completes::file},
      config_flag,
      {"retention", 0, ValueType::duration, "D", "how long closed runs are kept (72h)"},
      {"permit-queue", 0, ValueType::text, "NAME",
       "the task queue that permits are on ($PERMIT_QUEUE, else permits)"},
      {"no-permit-worker", 0, ValueType::none, "",
       "leave permits to a worker elsewhere: permit worker start"},
      {"fence-epoch",
       0,
       ValueType::number,
       "N",
       "at the first start of a restored copy: grants from now on have fences above all before",
       Completes::nothing,
       {},
       1,
       (1 << 13) - 1},
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
      {"auth", "auth"},
      {"tls-cert", "tls_cert"},
      {"tls-key", "tls_key"},
      {"tls-client-ca", "tls_client_ca"},
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
  options.auth = arguments.text_or("auth", options.auth);
  options.insecure = arguments.has("insecure");
  options.tls_cert = arguments.text_or("tls-cert", options.tls_cert);
  options.tls_key = arguments.text_or("tls-key", options.tls_key);
  options.tls_client_ca = arguments.text_or("tls-client-ca", options.tls_client_ca);
  options.retention = arguments.duration("retention").value_or(options.retention);
  if (options.retention < 1s) throw UsageError("--retention: at least 1s");
  options.permit_queue = arguments.text_or("permit-queue", options.permit_queue);
  if (arguments.has("no-permit-worker")) options.permit_worker = false;
  options.fence_epoch = arguments.number("fence-epoch");
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

int run_start(Session& session) {
  ServerOptions options = options_of(session);
  if (options.database.empty()) {
    options.database = default_database();
    std::filesystem::create_directories(std::filesystem::path(options.database).parent_path());
    if (environment_variable("STATE_DIRECTORY")) options.origins["database"] = "environment";
  }
  return run_server(options);
}

// The file is read as `server start` reads it; nothing is started.
void check_config(Session& session, const std::string& file) {
  ServerOptions options;
  read_server_config(file, options);
  try {
    try_server(options);
  } catch (const Error& error) {
    throw UsageError(file + ": " + error.message());
  }
  session.out().json(R"({"valid":true})");
  session.out().text(file + " is valid: " + std::to_string(options.pools.size()) + " pools");
}

int run_check(Session& session) {
  const auto config = session.arguments().text("config");
  const auto database = session.arguments().text("database");
  if (config && database) throw UsageError("--config and --database are checked one at a time");
  if (!config) return check_database(session, database.value_or(default_database()));
  check_config(session, *config);
  return exit_ok;
}

int run_backup(Session& session) {
  const auto to = session.arguments().text("to");
  if (!to) throw UsageError("say where to: --to FILE");
  return back_up_database(session, session.arguments().text_or("database", default_database()),
                          *to);
}

int run_status(Session& session) {
  const ServerStatus status = session.pools().status();
  if (!session.out().is_text()) {
    std::string json;
    write_json(status, json);
    session.out().json(json);
    return exit_ok;
  }
  std::string state = status.ready ? "ready" : "not ready";
  for (const std::string& warning : status.warnings) state += "; " + warning;
  Table table({{"SERVER"}, {session.settings().text("address")}});
  table.add({{"version"}, {status.version}});
  table.add({{"state"}, {state}});
  table.add({{"store"}, {status.store}});
  table.add({{"commit"}, {std::to_string(status.commit.value)}});
  table.add({{"fence epoch"}, {std::to_string(status.fence_epoch)}});
  table.add({{"held"}, {std::to_string(status.held)}});
  table.add({{"waiting"}, {std::to_string(status.waiting)}});
  session.out().table(table);
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
  return {
      {"server start-dev",
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
      {"server status",
       "how a server is: its version, its database, its fence epoch",
       "",
       {{"permit server status", ""}, {"permit server status -o json | jq .commit", ""}},
       {},
       {},
       run_status},
      {"server check",
       "look whether a database is sound, or read a configuration",
       "Reads all of the database and changes nothing, also while a server runs on it: every "
       "page against its checksum, every index, every row against the events it stands for, the "
       "ledger against its counts. Exit code 1 if anything is wrong, 66 if the file cannot be "
       "read. With --config it reads a server's configuration instead, and starts nothing.",
       {{"permit server check --database /var/lib/permit/permit.db", ""},
        {"permit server check --config /etc/permit/server.toml", ""}},
       {},
       {database_flag, config_flag},
       run_check},
      {"server backup",
       "copy a database while its server goes on",
       "The copy is of one moment, synced to disk and checked before it gets its name; a file "
       "that exists is not overwritten. Holders' tokens are made with FILE.key, which is not in "
       "the copy: keep a copy of it, too.",
       {{"permit server backup --to /backup/permit-2026-11-19.db", ""},
        {"permit server backup --database dev.db --to copy.db", ""}},
       {},
       {{"to", 0, ValueType::text, "FILE", "the copy; must not exist", Completes::file},
        database_flag},
       run_backup}};
}

}  // namespace permit::cli
