// permit help, permit version.
#include <iostream>

#include "apps/cli/command.h"
#include "apps/cli/exit_codes.h"
#include "apps/cli/help.h"
#include "apps/cli/session.h"
#include "orchestrator/protocol/error.h"
#include "orchestrator/protocol/version.h"

namespace permit::cli {

namespace {

int run_help(Session& session) {
  std::string name;
  for (const std::string& word : session.arguments().operands) {
    name += (name.empty() ? "" : " ") + word;
  }
  std::cout << help_page(name, HelpLength::full);
  return exit_ok;
}

int run_version(Session& session) {
  const Output& out = session.out();
  std::string server;
  try {
    server = session.pools().status().version;
  } catch (const Error& error) {
    if (error.reason() != "SERVER_UNREACHABLE") throw;
  }
  std::string json = R"({"version":")" + std::string(client_version) + "\"";
  if (!server.empty()) json += R"(,"server":")" + server + "\"";
  out.json(json + "}");
  out.text(std::string("permit ") + client_version);
  out.text(server.empty() ? "no server at " + session.settings().text("address")
                          : "server " + server + " at " + session.settings().text("address"));
  return exit_ok;
}

}  // namespace

std::vector<Command> help_commands() {
  return {{"version",
           "versions of this program and of the server",
           "",
           {{"permit version", ""}},
           {},
           {},
           run_version},
          {"help",
           "the long help of a command, or exit-codes",
           "",
           {{"permit help run", ""}, {"permit help exit-codes", ""}},
           {{"COMMAND", Completes::nothing, false, true}},
           {},
           run_help}};
}

}  // namespace permit::cli
