#include "apps/cli/config_file.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "apps/cli/settings.h"
#include "apps/cli/toml_values.h"
#include "orchestrator/protocol/error.h"

namespace permit::cli {

namespace {

std::vector<std::string> setting_keys() {
  std::vector<std::string> keys;
  for (const Setting& setting : known_settings()) keys.push_back(setting.key);
  return keys;
}

std::map<std::string, std::string> read_profile(const std::string& path, const std::string& name,
                                                const toml::node& node) {
  const toml::table& table = table_at(path, "profile." + name, node);
  std::map<std::string, std::string> values;
  for (const auto& [key, value] : table) {
    const std::string place = place_of(path, value);
    const auto text = value.value_exact<std::string>();
    if (!text) throw UsageError(place + ": " + std::string(key.str()) + " must be a \"text\"");
    check_setting(place, std::string(key.str()), *text);
    values[std::string(key.str())] = *text;
  }
  return values;
}

}  // namespace

namespace {

const Setting* find_setting(const std::string& key) {
  const auto& settings = known_settings();
  const auto known = std::find_if(settings.begin(), settings.end(),
                                  [&](const Setting& setting) { return setting.key == key; });
  return known == settings.end() ? nullptr : &*known;
}

}  // namespace

void check_key(const std::string& place, const std::string& key) {
  if (find_setting(key) == nullptr) unknown_key(place, "setting", key, setting_keys());
}

void check_setting(const std::string& place, const std::string& key, const std::string& value) {
  check_key(place, key);
  const Setting* known = find_setting(key);
  if (known->choices.empty()) return;
  if (std::find(known->choices.begin(), known->choices.end(), value) != known->choices.end())
    return;
  std::string choices;
  for (const std::string& choice : known->choices) {
    choices += (choices.empty() ? "" : ", ") + choice;
  }
  throw UsageError(place + ": " + key + " is one of " + choices + ", not \"" + value + "\"");
}

Profiles read_profiles(const std::string& path) {
  if (!std::filesystem::exists(path)) return {};
  Profiles profiles;
  const toml::table file = parse_toml(path);
  for (const auto& [name, node] : file) {
    if (name.str() != "profile") {
      unknown_key(place_of(path, node), "section", std::string(name.str()), {"profile"});
    }
    for (const auto& [profile, values] : table_at(path, "profile.NAME", node)) {
      profiles[std::string(profile.str())] = read_profile(path, std::string(profile.str()), values);
    }
  }
  return profiles;
}

void write_profile(const std::string& path, const std::string& profile, const std::string& key,
                   const std::optional<std::string>& value) {
  toml::table file;
  if (std::filesystem::exists(path)) file = parse_toml(path);
  if (!file.contains("profile")) file.insert("profile", toml::table{});
  toml::table& profiles = *file["profile"].as_table();
  if (!profiles.contains(profile)) profiles.insert(profile, toml::table{});
  toml::table& values = *profiles[profile].as_table();
  if (value) {
    values.insert_or_assign(key, *value);
  } else {
    values.erase(key);
  }
  std::ostringstream text;
  text << file << "\n";
  // Another file moved into its place, so that nobody reads half of one.
  std::error_code failed;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), failed);
  const std::string fresh = path + "." + std::to_string(getpid());
  std::ofstream out(fresh);
  out << text.str() << std::flush;
  const bool written = out.good();
  out.close();
  if (written) std::filesystem::rename(fresh, path, failed);
  if (!written || failed) {
    std::filesystem::remove(fresh, failed);
    throw failed_precondition("CONFIG_NOT_WRITTEN", "cannot write " + path);
  }
}

}  // namespace permit::cli
