// The table of all commands, in the order of the help page.
#include <iterator>

#include "apps/cli/command.h"

namespace permit::cli {

const std::vector<Flag>& global_flags() {
  static const std::vector<Flag> flags = {
      {"address", 0, ValueType::text, "URL", "the server (http://127.0.0.1:7376)"},
      {"namespace", 'n', ValueType::text, "NAME", "the namespace (default)"},
      {"profile", 0, ValueType::text, "NAME", "the profile of the configuration file (default)"},
      {"config-file", 0, ValueType::text, "FILE",
       "the configuration file (~/.config/permit/permit.toml)", Completes::file},
      {"api-key", 0, ValueType::text, "KEY", "the API key; better keep it in a file"},
      {"api-key-file", 0, ValueType::text, "FILE", "a file with the API key", Completes::file},
      {"tls-ca", 0, ValueType::text, "FILE",
       "whom to trust when the address is https:// (the system's authorities)", Completes::file},
      {"tls-cert", 0, ValueType::text, "FILE", "your certificate, for a server that asks for one",
       Completes::file},
      {"tls-key", 0, ValueType::text, "FILE", "its key", Completes::file},
      {"tls-server-name", 0, ValueType::text, "NAME",
       "whom the server's certificate must be for (the address's host)"},
      {"identity", 0, ValueType::text, "NAME", "who you are, for the record (user@host)"},
      {"output",
       'o',
       ValueType::choice,
       "",
       "how the answer looks (text)",
       Completes::choices,
       {"text", "json", "jsonl", "none"}},
      {"time-format",
       0,
       ValueType::choice,
       "",
       "how times look (relative)",
       Completes::choices,
       {"relative", "iso", "raw"}},
      {"color",
       0,
       ValueType::choice,
       "",
       "whether the answer is colored (auto)",
       Completes::choices,
       {"auto", "always", "never"}},
      {"command-timeout", 0, ValueType::duration, "D", "give up after this long: exit code 124"},
      {"yes", 'y', ValueType::none, "", "do not ask, do it"},
      {"no-input", 0, ValueType::none, "", "never ask; what would have to is refused"},
      {"quiet", 'q', ValueType::none, "", "leave out what is not the answer"},
      {"help", 'h', ValueType::none, "", "show help"},
  };
  return flags;
}

const std::vector<Command>& commands() {
  static const std::vector<Command> all = [] {
    std::vector<Command> joined;
    for (auto* group : {run_commands, permit_commands, pool_commands, workflow_commands,
                        worker_commands, queue_commands, server_commands, api_key_commands,
                        config_commands, completion_commands, doctor_commands, help_commands}) {
      std::vector<Command> commands = group();
      std::move(commands.begin(), commands.end(), std::back_inserter(joined));
    }
    return joined;
  }();
  return all;
}

}  // namespace permit::cli
