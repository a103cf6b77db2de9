// What a command works with: its arguments, the settings, the way to the server and the way to the
// terminal. Made once by main.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "apps/cli/command_line.h"
#include "apps/cli/output.h"
#include "apps/cli/settings.h"
#include "permits/pool_client.h"
#include "worker/client.h"
#include "worker/http_client.h"

namespace permit::cli {

class Session {
 public:
  Session(Arguments arguments, Settings settings);
  ~Session();

  const Arguments& arguments() const { return arguments_; }
  const Settings& settings() const { return settings_; }
  const Output& out() const { return out_; }

  // Made at the first use; a call that finds no server throws Error SERVER_UNREACHABLE.
  worker::HttpTransport& transport();
  permits::PoolClient pools();
  worker::Client client();

  // "ana@gpu-host", unless it is set.
  const std::string& identity() const { return identity_; }
  const std::string& namespace_name() const { return settings_.text("namespace"); }
  std::string api_key() const;  // "" is none
  worker::TlsOptions tls() const;
  // The server's clock, so that what is left of a lease is right on a host whose clock is not.
  Time now();

  // Whether somebody sits there who can be asked.
  bool is_interactive() const;
  // Asks on the terminal; the line typed, without its end.
  std::string ask(const std::string& question) const;

 private:
  const Arguments arguments_;
  const Settings settings_;
  const Output out_;
  const std::string identity_;
  std::unique_ptr<worker::HttpTransport> transport_;
  std::optional<Time> asked_at_;  // the server's time
  std::chrono::steady_clock::time_point asked_;
};

// Runs the command that was typed; returns the exit code. Prints what went wrong as one sentence.
int run_command_line(const std::vector<std::string>& words);

// "name" of "ana@gpu-host"; who runs this process, and where.
std::string user_name();
std::string host_name();

}  // namespace permit::cli
