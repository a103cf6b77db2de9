// Reading TOML with the place of every mistake. The one header that includes the library; for the
// two sources that read files.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#define TOML_EXCEPTIONS 1
#include <toml++/toml.h>

#include "apps/cli/command_line.h"
#include "orchestrator/protocol/nearest.h"

namespace permit::cli {

// "permit.toml:12"
inline std::string place_of(const std::string& path, const toml::node& node) {
  return path + ":" + std::to_string(node.source().begin.line);
}

inline toml::table parse_toml(const std::string& path) {
  try {
    return toml::parse_file(path);
  } catch (const toml::parse_error& error) {
    throw UsageError(path + ":" + std::to_string(error.source().begin.line) + ": " +
                     std::string(error.description()));
  }
}

inline const toml::table& table_at(const std::string& path, const std::string& name,
                                   const toml::node& node) {
  if (const toml::table* table = node.as_table()) return *table;
  throw UsageError(place_of(path, node) + ": write [" + name + "] above its settings");
}

// `what` is what keys are called here: "setting".
[[noreturn]] inline void unknown_key(const std::string& place, const std::string& what,
                                     const std::string& key,
                                     const std::vector<std::string>& known) {
  const auto nearest = nearest_name(key, known);
  std::string names;
  for (const std::string& name : known) names += (names.empty() ? "" : ", ") + name;
  throw UsageError(place + ": there is no " + what + " " + key + "; " +
                   (nearest ? "did you mean " + *nearest + "?" : "there are " + names));
}

}  // namespace permit::cli
