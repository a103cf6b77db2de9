// permit completion, and what is not in the help: permit __complete for the shells' scripts,
// permit __man for packages, permit __commands and __parse for tests.
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "apps/cli/completion.h"
#include "apps/cli/exit_codes.h"
#include "apps/cli/help.h"
#include "apps/cli/workflow_commands.h"

namespace permit::cli {

namespace {

int run_completion(Session& session) {
  std::cout << completion_script(session.arguments().operand(0));
  return exit_ok;
}

// --- permit __complete -- WORDS… ---

// Nobody waits long for a TAB.
void give_up_soon() {
  std::signal(SIGALRM, [](int) { _exit(exit_ok); });
  itimerval timer{};
  timer.it_value.tv_usec = 800'000;
  setitimer(ITIMER_REAL, &timer, nullptr);
}

// Which server the line is about: its global flags, if they are whole.
std::vector<std::string> flags_of_server(const std::vector<std::string>& words) {
  std::vector<std::string> flags;
  for (std::size_t i = 0; i + 1 < words.size() && words[i] != "--"; ++i) {
    for (const char* name :
         {"--address", "--namespace", "-n", "--profile", "--config-file", "--api-key-file",
          "--tls-ca", "--tls-cert", "--tls-key", "--tls-server-name"}) {
      const std::string flag = name;
      if (words[i].starts_with(flag + "=")) flags.push_back(words[i]);
      if (words[i] != flag || i + 2 >= words.size()) continue;
      // -n is not always the namespace; a letter of a command's own is that command's.
      if (flag == "-n" && i > 0) continue;
      flags.push_back(flag);
      flags.push_back(words[i + 1]);
    }
  }
  return flags;
}

std::vector<std::string> permits_of(Session& session) {
  std::vector<std::string> names;
  for (const PoolInfo& pool : session.pools().list()) {
    for (const SlotInfo& slot : pool.slots) {
      names.push_back("permit:" + pool.pool.value + ":" + slot.slot.value);
    }
  }
  return names;
}

std::vector<std::string> workflows_of(Session& session, const std::string& prefix) {
  std::string quoted;
  for (const char c : prefix) {
    if (c == '\'' || c == '\\') quoted += '\\';
    quoted += c;
  }
  const std::string query = prefix.empty() ? "" : "WorkflowId STARTS_WITH '" + quoted + "'";
  constexpr std::size_t names_max = 200;
  std::vector<std::string> names;
  for (const WorkflowExecutionInfo& run : runs_found(session, query, names_max)) {
    const std::string& id = run.execution.workflow_id.value;
    // A permit is named where it is asked for.
    if (id.starts_with("permit:") && !prefix.starts_with("permit")) continue;
    if (std::find(names.begin(), names.end(), id) == names.end()) names.push_back(id);
  }
  return names;
}

std::vector<std::string> live_names(const std::vector<std::string>& words, Completes kind,
                                    const std::string& prefix) {
  try {
    std::vector<std::string> line = flags_of_server(words);
    line.emplace_back("version");
    Arguments arguments = parse_command_line(line);
    Settings settings(arguments, environment_variable);
    Session session(std::move(arguments), std::move(settings));
    if (kind == Completes::permit) return permits_of(session);
    if (kind == Completes::workflow) return workflows_of(session, prefix);
    std::vector<std::string> names;
    for (const PoolInfo& pool : session.pools().list()) names.push_back(pool.pool.value);
    return names;
  } catch (const std::exception&) {
    return {};  // no server, no names: not the moment to complain
  }
}

int run_complete(Session& session) {
  const std::vector<std::string>& words = session.arguments().rest;
  give_up_soon();
  const auto live = [&words](Completes kind, const std::string& prefix) {
    return live_names(words, kind, prefix);
  };
  for (const Candidate& candidate : complete(words, live)) {
    std::cout << candidate.word << "\t" << candidate.what << "\n";
  }
  return exit_ok;
}

// --- permit __man DIRECTORY ---

void write_page(const std::string& path, const std::string& page) {
  std::ofstream file(path);
  file << page << std::flush;
  if (!file) throw Error(ErrorCode::unknown, "PAGE_NOT_WRITTEN", "cannot write " + path);
}

int run_man(Session& session) {
  const std::string directory = session.arguments().operand(0);
  write_page(directory + "/permit.1", man_overview());
  for (const Command& command : commands()) {
    if (command.name.starts_with("_")) continue;
    std::string name = "/permit-" + command.name;
    std::replace(name.begin(), name.end(), ' ', '-');
    write_page((directory + name).append(".1"), man_page(command));
  }
  return exit_ok;
}

// --- permit __commands ---

nlohmann::ordered_json json_of(const Flag& flag) {
  nlohmann::ordered_json json;
  json["name"] = flag.name;
  if (flag.letter != 0) json["letter"] = std::string(1, flag.letter);
  json["takesValue"] = flag.type != ValueType::none;
  json["help"] = flag.help;
  if (!flag.choices.empty()) json["choices"] = flag.choices;
  return json;
}

nlohmann::ordered_json json_of(const Command& command) {
  nlohmann::ordered_json json;
  json["name"] = command.name;
  if (!command.alias.empty()) json["alias"] = command.alias;
  json["summary"] = command.summary;
  json["details"] = command.details;
  json["takesCommand"] = command.takes_command;
  json["examples"] = nlohmann::ordered_json::array();
  for (const Example& example : command.examples) json["examples"].push_back(example.command);
  json["operands"] = nlohmann::ordered_json::array();
  for (const Operand& operand : command.operands) {
    json["operands"].push_back({{"name", operand.name}, {"required", operand.required}});
  }
  json["flags"] = nlohmann::ordered_json::array();
  for (const Flag& flag : command.flags) json["flags"].push_back(json_of(flag));
  return json;
}

int run_commands(Session&) {
  nlohmann::ordered_json json;
  json["commands"] = nlohmann::ordered_json::array();
  for (const Command& command : commands()) {
    if (!command.name.starts_with("_")) json["commands"].push_back(json_of(command));
  }
  json["globalFlags"] = nlohmann::ordered_json::array();
  for (const Flag& flag : global_flags()) json["globalFlags"].push_back(json_of(flag));
  std::cout << json.dump() << "\n";
  return exit_ok;
}

// permit __parse -- WORDS…: of what command they are a line, if they are one.
int run_parse(Session& session) {
  const Arguments parsed = parse_command_line(session.arguments().rest);
  if (parsed.command == nullptr) throw UsageError("no command");
  std::cout << parsed.command->name << "\n";
  return exit_ok;
}

}  // namespace

std::vector<Command> completion_commands() {
  Command complete = {"__complete", "", "", {}, {}, {}, run_complete};
  complete.takes_command = true;
  Command parse = {"__parse", "", "", {}, {}, {}, run_parse};
  parse.takes_command = true;
  Operand shell = {"SHELL", Completes::choices};
  shell.choices = {"bash", "zsh", "fish"};
  return {{"completion",
           "what the shell needs to complete permit's words after a TAB",
           "Verbs, flags and their values; and names of pools, permits and workflows, asked of the "
           "server. For good, put the example's line into ~/.bashrc, into ~/.zshrc behind "
           "compinit, or into ~/.config/fish/config.fish.",
           {{"source <(permit completion bash)", ""},
            {"source <(permit completion zsh)", ""},
            {"permit completion fish | source", ""}},
           {shell},
           {},
           run_completion},
          complete,
          {"__man", "", "", {}, {{"DIRECTORY", Completes::file}}, {}, run_man},
          {"__commands", "", "", {}, {}, {}, run_commands},
          parse};
}

}  // namespace permit::cli
