// What was typed, checked against the tables of command.h. Nothing here does anything but read.
#pragma once

#include <exception>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/cli/command.h"
#include "orchestrator/protocol/ids.h"

namespace permit::cli {

// Wrong usage: one sentence with the way out. Exit code 2, nothing was done.
class UsageError : public std::exception {
 public:
  explicit UsageError(std::string message) : message_(std::move(message)) {}
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  std::string message_;
};

class Arguments {
 public:
  // No command: then it is `help`, or an empty line. Help of a noun: `help_for` is "pool".
  const Command* command = nullptr;
  bool wants_help = false;  // -h, --help
  std::string help_for;     // the words before -h
  std::vector<std::string> operands;
  std::vector<std::string> rest;  // what follows `--`

  bool has(const std::string& flag) const { return flags_.contains(flag); }
  // The last one given.
  std::optional<std::string> text(const std::string& flag) const;
  std::string text_or(const std::string& flag, std::string otherwise) const;
  std::optional<std::int64_t> number(const std::string& flag) const;
  std::optional<Duration> duration(const std::string& flag) const;
  const std::vector<std::string>& all(const std::string& flag) const;
  // "" if it was left out.
  std::string operand(std::size_t index) const;

 private:
  friend class CommandLine;
  std::map<std::string, std::vector<std::string>> flags_;
};

// `words` is argv without the program's name. Throws UsageError: a verb or flag that does not
// exist, with the nearest that does; a value that does not fit; operands missing or too many.
Arguments parse_command_line(const std::vector<std::string>& words);

// A number within bounds, as flags have it. Throws UsageError.
std::int64_t parse_number(const std::string& what, const std::string& text, std::int64_t min,
                          std::int64_t max);

}  // namespace permit::cli
