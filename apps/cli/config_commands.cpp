// permit config list | get | set | delete | path
#include <iostream>

#include "apps/cli/command.h"
#include "apps/cli/config_file.h"
#include "apps/cli/exit_codes.h"
#include "apps/cli/session.h"
#include "orchestrator/protocol/error.h"
#include "orchestrator/protocol/json_writer.h"

namespace permit::cli {

namespace {

std::string quoted(const std::string& text) {
  std::string out;
  append_json_string(text, out);
  return out;
}

int run_config_list(Session& session) {
  const Output& out = session.out();
  const bool origins = session.arguments().has("show-origin");
  std::vector<Table::Column> columns = {{"SETTING"}, {"VALUE"}};
  if (origins) columns.push_back({"FROM"});
  Table table(columns);
  std::string document;
  std::vector<std::string> lines;
  for (const Setting& setting : known_settings()) {
    const Settings::Value& value = session.settings().get(setting.key);
    std::vector<Table::Cell> row = {{setting.key}, {value.text.empty() ? "-" : value.text}};
    if (origins) row.push_back({value.origin});
    table.add(std::move(row));
    const std::string line = "{\"setting\":" + quoted(setting.key) +
                             ",\"value\":" + quoted(value.text) +
                             ",\"origin\":" + quoted(value.origin) + "}";
    lines.push_back(line);
    document += (document.empty() ? "" : ",") + line;
  }
  out.json("{\"settings\":[" + document + "]}", lines);
  out.table(table);
  return exit_ok;
}

int run_config_get(Session& session) {
  const std::string key = session.arguments().operand(0);
  const Output& out = session.out();
  check_key("config get", key);
  const Settings::Value& value = session.settings().get(key);
  out.json("{\"setting\":" + quoted(key) + ",\"value\":" + quoted(value.text) +
           ",\"origin\":" + quoted(value.origin) + "}");
  out.text(value.text);
  return exit_ok;
}

int run_config_set(Session& session) {
  const Arguments& arguments = session.arguments();
  check_setting("config set", arguments.operand(0), arguments.operand(1));
  write_profile(session.settings().file(), session.settings().profile(), arguments.operand(0),
                arguments.operand(1));
  return exit_ok;
}

int run_config_delete(Session& session) {
  const std::string key = session.arguments().operand(0);
  check_key("config delete", key);
  write_profile(session.settings().file(), session.settings().profile(), key, std::nullopt);
  return exit_ok;
}

int run_config_path(Session& session) {
  session.out().json("{\"path\":" + quoted(session.settings().file()) + "}");
  session.out().text(session.settings().file());
  return exit_ok;
}

}  // namespace

std::vector<Command> config_commands() {
  const Operand key = {"SETTING"};
  return {{"config list",
           "every setting, and where it comes from",
           "A flag wins over the environment, that over the profile, that over the default.",
           {{"permit config list --show-origin", ""}},
           {},
           {{"show-origin", 0, ValueType::none, "", "also say where each value comes from"}},
           run_config_list},
          {"config get",
           "one setting",
           "",
           {{"permit config get address", ""}},
           {key},
           {},
           run_config_get},
          {"config set",
           "keep a setting in the configuration file",
           "In the profile that --profile names. Comments in the file are not kept.",
           {{"permit config set address http://gpu-host:7376", ""},
            {"permit config set output json --profile lab", "in another profile"}},
           {key, {"VALUE"}},
           {},
           run_config_set},
          {"config delete",
           "take a setting out of the configuration file",
           "",
           {{"permit config delete address", ""}},
           {key},
           {},
           run_config_delete},
          {"config path",
           "where the configuration file is",
           "",
           {{"permit config path", ""}},
           {},
           {},
           run_config_path}};
}

}  // namespace permit::cli
