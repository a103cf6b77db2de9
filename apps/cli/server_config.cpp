#include "apps/cli/server_config.h"

#include <filesystem>

#include "apps/cli/duration_text.h"
#include "apps/cli/toml_values.h"

namespace permit::cli {

namespace {

// One file being read, for the places in its mistakes.
class Reader {
 public:
  Reader(const std::string& path, ServerOptions& options) : path_(path), options_(options) {}

  void read(const toml::table& file) {
    for (const auto& [key, node] : file) {
      const std::string name(key.str());
      if (name == "server") {
        for (const auto& [field, value] : table_at(path_, name, node)) {
          read_server(std::string(field.str()), value);
          options_.origins[std::string(field.str())] = "file " + path_;
        }
      } else if (name == "log") {
        for (const auto& [field, value] : table_at(path_, name, node)) {
          read_log(std::string(field.str()), value);
          options_.origins["log." + std::string(field.str())] = "file " + path_;
        }
      } else if (name == "pools") {
        for (const auto& [pool, value] : table_at(path_, name, node)) {
          read_pool(std::string(pool.str()), value);
        }
      } else {
        unknown_key(place_of(path_, node), "section", name, {"server", "log", "pools"});
      }
    }
  }

 private:
  std::string text(const std::string& key, const toml::node& node) const {
    if (const auto value = node.value_exact<std::string>()) return *value;
    const auto number = node.value_exact<std::int64_t>();
    if (number && (key == "retention" || key == "slow")) {
      const std::string digits = std::to_string(*number);
      throw UsageError(place_of(path_, node) + ": " + key + " = " + digits +
                       " is a bare number; say \"" + digits + "s\" or \"" + digits + "m\"");
    }
    throw UsageError(place_of(path_, node) + ": " + key + " must be a \"text\"");
  }
  std::vector<std::string> texts(const std::string& key, const std::string& example,
                                 const toml::node& node) const {
    const toml::array* list = node.as_array();
    if (list == nullptr) {
      throw UsageError(place_of(path_, node) + ": " + key + " must be a list: " + example);
    }
    std::vector<std::string> result;
    for (const toml::node& one : *list) result.push_back(text(key, one));
    return result;
  }
  bool flag(const std::string& key, const toml::node& node) const {
    if (const auto value = node.value_exact<bool>()) return *value;
    throw UsageError(place_of(path_, node) + ": " + key + " must be true or false");
  }
  Duration duration(const std::string& key, const toml::node& node) const {
    return parse_human_duration(place_of(path_, node) + ": " + key, text(key, node));
  }

  void read_server(const std::string& key, const toml::node& node) {
    const std::string place = place_of(path_, node);
    if (key == "listen") {
      parse_listen(place + ": listen", text(key, node), options_);
    } else if (key == "allowed_hosts") {
      for (const std::string& host : texts(key, R"(["permit.example.com"])", node)) {
        if (host.empty() || host.find_first_of(":/ ") != std::string::npos) {
          throw UsageError(place + ": allowed_hosts has names without http:// and port");
        }
        options_.allowed_hosts.push_back(host);
      }
    } else if (key == "auth") {
      options_.auth = text(key, node);
      if (options_.auth != "none" && options_.auth != "keys") {
        throw UsageError(place + ": auth is none or keys, not \"" + options_.auth + "\"");
      }
    } else if (key == "tls_cert") {
      options_.tls_cert = text(key, node);
    } else if (key == "tls_key") {
      options_.tls_key = text(key, node);
    } else if (key == "tls_client_ca") {
      options_.tls_client_ca = text(key, node);
    } else if (key == "database") {
      options_.database = text(key, node);
    } else if (key == "retention") {
      options_.retention = duration(key, node);
      if (options_.retention < std::chrono::seconds(1)) {
        throw UsageError(place + ": retention must be 1s or more");
      }
    } else if (key == "permit_queue") {
      options_.permit_queue = text(key, node);
    } else if (key == "permit_worker") {
      options_.permit_worker = flag(key, node);
    } else if (key == "metrics_per_slot") {
      options_.metrics_per_slot = flag(key, node);
    } else {
      unknown_key(place, "setting of the server", key,
                  {"listen", "auth", "allowed_hosts", "tls_cert", "tls_key", "tls_client_ca",
                   "database", "retention", "permit_queue", "permit_worker", "metrics_per_slot"});
    }
  }

  void read_log(const std::string& key, const toml::node& node) {
    const std::string place = place_of(path_, node);
    if (key == "level") {
      options_.log.level = text(key, node);
      check_log_choice(place + ": level", options_.log.level, log_levels());
    } else if (key == "format") {
      options_.log.format = text(key, node);
      check_log_choice(place + ": format", options_.log.format, log_formats());
    } else if (key == "slow") {
      options_.log.slow = duration(key, node);
    } else {
      unknown_key(place, "setting of the log", key, {"level", "format", "slow"});
    }
  }

  void read_pool(const std::string& name, const toml::node& node) {
    SetPoolRequest pool;
    pool.namespace_ = "default";
    pool.pool = PoolName(name);
    pool.identity = "config";
    pool.reason = path_;
    const toml::table& table = table_at(path_, "pools." + name, node);
    for (const auto& [key, value] : table) read_setting(pool, std::string(key.str()), value);
    if (!pool.capacity && !pool.slots) {
      throw UsageError(place_of(path_, node) + ": pool " + name + " needs capacity or slots");
    }
    if (pool.capacity && pool.slots) {
      throw UsageError(place_of(path_, node) + ": give capacity or slots, not both");
    }
    options_.pools.push_back(std::move(pool));
  }

  void read_setting(SetPoolRequest& pool, const std::string& key, const toml::node& node) {
    const std::string place = place_of(path_, node);
    if (key == "capacity") {
      const auto number = node.value_exact<std::int64_t>();
      if (!number || *number < 0 || *number > 100'000) {
        throw UsageError(place + ": capacity must be a whole number from 0 to 100000");
      }
      pool.capacity = static_cast<std::int32_t>(*number);
    } else if (key == "slots") {
      const auto names = texts(key, R"(["a", "b"])", node);
      pool.slots.emplace(names.begin(), names.end());
    } else if (key == "devices") {
      pool.devices.emplace();
      for (const auto& [slot, device] : table_at(path_, "devices", node)) {
        pool.devices->emplace(std::string(slot.str()), text("a device", device));
      }
    } else if (key == "order") {
      const std::string order = text(key, node);
      if (order != "fair" && order != "any") {
        throw UsageError(place + ": order is fair or any, not \"" + order + "\"");
      }
      pool.order = order == "fair" ? PermitOrder::fair : PermitOrder::any;
    } else if (key == "rate" || key == "burst") {
      const auto number = node.value<double>();
      if (!number || *number <= 0) throw UsageError(place + ": " + key + " must be above 0");
      if (!pool.rate) pool.rate = PoolRate{*number, *number};
      (key == "rate" ? pool.rate->per_second : pool.rate->burst) = *number;
    } else {
      unknown_key(place, "setting of a pool", key,
                  {"capacity", "slots", "devices", "order", "rate", "burst"});
    }
  }

  const std::string path_;
  ServerOptions& options_;
};

}  // namespace

void read_server_config(const std::string& path, ServerOptions& options) {
  if (!std::filesystem::exists(path)) throw UsageError("there is no file " + path);
  Reader(path, options).read(parse_toml(path));
}

void parse_listen(const std::string& what, const std::string& text, ServerOptions& options) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0) {
    throw UsageError(what + ": \"" + text + "\" is not ADDRESS:PORT, such as 127.0.0.1:7376");
  }
  std::string host = text.substr(0, colon);
  if (host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  options.port = static_cast<std::uint16_t>(parse_number(what, text.substr(colon + 1), 0, 65535));
  options.address = host;
}

}  // namespace permit::cli
