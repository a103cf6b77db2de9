// Whether a server may start as it is set up: the one place that decides who may reach it, and how.
#pragma once

#include <optional>
#include <string>

namespace permit::cli {

struct Exposure {
  std::string address;   // numeric, or localhost
  std::string database;  // empty: in memory
  std::string auth;      // "none" or "keys" as it was set; empty: it was not
  bool has_tls = false;
  bool allows_plain = false;  // --insecure
  int admin_keys = 0;         // in the database, good at this moment
};

bool is_loopback(const std::string& address);

// Whether every request needs an API key: off loopback always, on loopback if it is set.
bool needs_key(const Exposure& exposure);

// Why it must not start: a sentence with the way out. Nothing: it may.
std::optional<std::string> refusal_of(const Exposure& exposure);

}  // namespace permit::cli
