#include "apps/cli/server_settings.h"

#include "apps/cli/duration_text.h"
#include "apps/cli/exposure.h"

namespace permit::cli {

namespace {

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

std::string word_of(bool flag) { return flag ? "true" : "false"; }

}  // namespace

std::vector<SettingInfo> settings_in_force(const ServerOptions& options) {
  std::vector<SettingInfo> settings;
  const auto add = [&](const std::string& name, std::string value) {
    const auto origin = options.origins.find(name);
    const bool given = origin != options.origins.end();
    settings.push_back({name, std::move(value), given ? origin->second : "default", false});
  };
  const bool is_v6 = options.address.find(':') != std::string::npos;
  add("listen",
      (is_v6 ? "[" + options.address + "]" : options.address) + ":" + std::to_string(options.port));
  const Exposure exposure{options.address, options.database, options.auth};
  add("auth", needs_key(exposure) ? "keys" : "none");
  add("allowed_hosts", joined(options.allowed_hosts));
  if (options.has_tls()) {
    add("tls_cert", options.tls_cert);
    add("tls_key", options.tls_key);
    add("tls_client_ca", options.tls_client_ca);
  }
  add("database", options.database.empty() ? "memory" : options.database);
  add("retention", type_duration(options.retention));
  add("permit_worker", word_of(options.permit_worker && !options.virtual_time));
  add("permit_queue", options.permit_queue);
  add("log.level", options.log.level);
  add("log.format", options.log.format);
  add("log.slow", type_duration(options.log.slow));
  if (!options.page_directory.empty()) add("ui-asset-path", options.page_directory);
  if (options.virtual_time) add("virtual-time", "true");
  for (const SetPoolRequest& pool : options.pools) {
    settings.push_back({"pools." + pool.pool.value,
                        pool.capacity ? std::to_string(*pool.capacity) + " slots"
                                      : std::to_string(pool.slots->size()) + " named slots",
                        "file " + pool.reason, false});
  }
  // With it holders' tokens are made; see token_secret() in server_command.cpp.
  const bool kept = !options.database.empty();
  settings.push_back(
      {"token_key", "(set)", kept ? "file " + options.database + ".key" : "default", true});
  return settings;
}

}  // namespace permit::cli
