// The configuration file of the commands, TOML: one table per profile.
//
//   [profile.default]
//   address = "http://gpu-host:7376"
//
//   [profile.lab]
//   address = "http://lab:7376"
//   output = "json"
#pragma once

#include <map>
#include <optional>
#include <string>

namespace permit::cli {

// Profile → key → value. Throws UsageError with file and line: not TOML, a table that is no
// profile, an unknown key (with the nearest known one), a value that is not a text or does not fit.
using Profiles = std::map<std::string, std::map<std::string, std::string>>;
Profiles read_profiles(const std::string& path);  // none, if there is no such file

// Writes one key of one profile, or takes it away, and leaves the rest of the file's values as they
// are. Throws Error CONFIG_NOT_WRITTEN.
void write_profile(const std::string& path, const std::string& profile, const std::string& key,
                   const std::optional<std::string>& value);

// That there is such a setting, and that the value fits it. Throws UsageError, with `place` in
// front.
void check_key(const std::string& place, const std::string& key);
void check_setting(const std::string& place, const std::string& key, const std::string& value);

}  // namespace permit::cli
