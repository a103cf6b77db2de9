#include "apps/cli/settings.h"

#include <cstdlib>
#include <filesystem>

#include "apps/cli/command.h"
#include "apps/cli/config_file.h"

namespace permit::cli {

const std::vector<Setting>& known_settings() {
  static const std::vector<Setting> settings = {
      {"address", "PERMIT_ADDRESS", "http://127.0.0.1:7376", "the server"},
      {"namespace", "PERMIT_NAMESPACE", "default", "the namespace"},
      {"task_queue", "PERMIT_TASK_QUEUE", "default", "the task queue of workflows to start"},
      {"api_key_file", "PERMIT_API_KEY_FILE", "", "a file with the API key"},
      {"tls_ca", "PERMIT_TLS_CA", "", "whom to trust, PEM; else the system's authorities"},
      {"tls_cert", "PERMIT_TLS_CERT", "", "your certificate, PEM"},
      {"tls_key", "PERMIT_TLS_KEY", "", "the key of your certificate, PEM"},
      {"tls_server_name", "PERMIT_TLS_SERVER_NAME", "", "whom the server's certificate is for"},
      {"identity", "PERMIT_IDENTITY", "", "who asks; else user@host"},
      {"output", "PERMIT_OUTPUT", "text", "how answers look", {"text", "json", "jsonl", "none"}},
      {"time_format",
       "PERMIT_TIME_FORMAT",
       "relative",
       "how times look",
       {"relative", "iso", "raw"}},
      {"color", "PERMIT_COLOR", "auto", "whether answers are colored", {"auto", "always", "never"}},
  };
  return settings;
}

std::optional<std::string> environment_variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

namespace {

std::string flag_of(const std::string& key) {
  std::string flag = key;
  for (char& c : flag) {
    if (c == '_') c = '-';
  }
  return flag;
}

std::string default_file(const Settings::Environment& environment) {
  if (const auto home = environment("XDG_CONFIG_HOME")) return *home + "/permit/permit.toml";
  return environment("HOME").value_or("") + "/.config/permit/permit.toml";
}

}  // namespace

Settings::Settings(const Arguments& arguments, const Environment& environment) {
  const auto named_file = arguments.has("config-file") ? arguments.text("config-file")
                                                       : environment("PERMIT_CONFIG_FILE");
  file_ = named_file.value_or(default_file(environment));
  const auto named_profile =
      arguments.has("profile") ? arguments.text("profile") : environment("PERMIT_PROFILE");
  profile_ = named_profile.value_or("default");

  const bool may_make_it = arguments.command != nullptr && arguments.command->name == "config set";
  std::error_code unreadable;
  if (named_file && !may_make_it && !std::filesystem::is_regular_file(file_, unreadable)) {
    throw UsageError("there is no configuration file " + file_);
  }
  Profiles profiles = read_profiles(file_);
  const bool makes_it = arguments.command != nullptr && arguments.command->name == "config set";
  if (named_profile && !profiles.contains(profile_) && !makes_it) {
    throw UsageError("there is no profile " + profile_ + " in " + file_ +
                     "; make it with: permit config set address ADDRESS --profile " + profile_);
  }
  const auto& of_profile = profiles[profile_];
  for (const Setting& setting : known_settings()) {
    Value& value = values_[setting.key];
    const std::string flag = flag_of(setting.key);
    const auto from_environment =
        setting.environment.empty() ? std::nullopt : environment(setting.environment);
    if (const auto given = arguments.text(flag)) {
      value = {*given, "--" + flag};
    } else if (from_environment) {
      check_setting(setting.environment, setting.key, *from_environment);
      value = {*from_environment, setting.environment};
    } else if (of_profile.contains(setting.key)) {
      value = {of_profile.at(setting.key), "profile " + profile_ + " in " + file_};
    } else {
      value = {setting.otherwise, "default"};
    }
  }
}

}  // namespace permit::cli
