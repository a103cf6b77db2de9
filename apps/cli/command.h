// What the `permit` command can do, as data. Parsing, help, man pages and completion all read these
// tables, so none of them can forget a flag.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace permit::cli {

class Session;

// What a value must look like; checked before anything runs.
enum class ValueType { none, text, number, duration, choice };
// Where the shell's completion finds values.
enum class Completes { nothing, pool, permit, workflow, file, choices };

struct Flag {
  std::string name;  // "max-hold", without dashes
  char letter = 0;   // 'p' for -p
  ValueType type = ValueType::none;
  std::string value;  // how help names it: "D", "POOL"
  std::string help;   // one line; says the default
  Completes completes = Completes::nothing;
  std::vector<std::string> choices{};
  std::int64_t min = 0;  // of a number
  std::int64_t max = INT64_MAX;
  bool repeats = false;            // may be given several times
  bool value_is_optional = false;  // "--gpu" or "--gpu=rocm"
};

struct Operand {
  std::string name;  // "POOL"
  Completes completes = Completes::nothing;
  bool required = true;
  bool repeats = false;                // the last one only
  std::vector<std::string> choices{};  // nothing else, if there are any
};

struct Example {
  std::string command;
  std::string what;  // what it is good for
};

struct Command {
  std::string name;     // "list", "pool set"
  std::string summary;  // lower case, no full stop
  std::string details;  // paragraphs for the long page
  std::vector<Example> examples;
  std::vector<Operand> operands;
  std::vector<Flag> flags;
  int (*run)(Session& session) = nullptr;
  std::string alias{};         // "ls" for "list"
  bool takes_command = false;  // what follows `--`
};

// All of them, in the order of the help page.
const std::vector<Command>& commands();
// Flags that every command takes, before or after its name.
const std::vector<Flag>& global_flags();

// Each group's own, for commands().
std::vector<Command> permit_commands();  // list, who, watch, describe, history, release, hold
std::vector<Command> run_commands();     // run
std::vector<Command> pool_commands();
std::vector<Command> server_commands();
std::vector<Command> api_key_commands();
std::vector<Command> workflow_commands();
std::vector<Command> worker_commands();
std::vector<Command> queue_commands();  // worker list, task-queue
std::vector<Command> config_commands();
std::vector<Command> doctor_commands();
std::vector<Command> completion_commands();
std::vector<Command> help_commands();

}  // namespace permit::cli
