// `permit server …`: builds the orchestrator from its parts and runs it until a signal. The one
// file besides tests that sees all of it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "apps/cli/log_options.h"
#include "orchestrator/protocol/pools.h"

namespace permit::cli {

struct ServerOptions {
  bool is_dev = false;  // start-dev: says what to try
  std::string address = "127.0.0.1";
  std::uint16_t port = 7376;
  std::string auth;       // "none" or "keys"; empty: none on loopback, keys elsewhere
  bool insecure = false;  // beyond loopback without TLS
  std::vector<std::string> allowed_hosts;  // names of the server besides localhost and address
  std::string tls_cert;                    // PEM; empty, as the next two: plain HTTP
  std::string tls_key;
  std::string tls_client_ca;  // clients need a certificate of one of these
  std::string database;       // empty: in memory, gone on exit
  bool virtual_time = false;
  Duration retention = std::chrono::hours(72);
  bool permit_worker = true;  // inside the server; not with virtual time
  std::string permit_queue = "permits";
  std::vector<SetPoolRequest> pools;          // set at each start
  std::string page_directory;                 // serve the page from there; empty: from the binary
  bool metrics_per_slot = false;              // GET /metrics has a series for each slot, too
  std::optional<std::int64_t> fence_epoch{};  // begin this one; for a restored copy
  bool demo_pool = false;                     // "demo" with 4 slots, unless there is one
  LogOptions log;
  // Where settings came from that are not as by default: "flag", "environment", "file NAME".
  std::map<std::string, std::string> origins{};

  bool has_tls() const { return !(tls_cert.empty() && tls_key.empty() && tls_client_ca.empty()); }
};

// Returns the process's exit code.
int run_server(const ServerOptions& options);
// Sets the pools of a server in memory as a start would. Throws Error.
void try_server(ServerOptions options);

}  // namespace permit::cli
