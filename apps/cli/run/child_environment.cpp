#include "apps/cli/run/child_environment.h"

#include <algorithm>
#include <cctype>
#include <map>

#include "orchestrator/protocol/error.h"
#include "orchestrator/protocol/time_text.h"

namespace permit::cli {

namespace {

std::string joined(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) all += (all.empty() ? "" : ",") + text;
  return all;
}

bool is_number(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(),
                                      [](unsigned char c) { return std::isdigit(c) != 0; });
}

// Numbers by their value, before names.
bool device_before(const std::string& a, const std::string& b) {
  if (is_number(a) != is_number(b)) return is_number(a);
  if (is_number(a) && a.size() != b.size()) return a.size() < b.size();
  return a < b;
}

using Values = std::map<std::string, std::string>;

// "{slot}" becomes the slot; "{{" and "}}" stand for one brace. Throws Error TEMPLATE_INVALID.
std::string fill(const std::string& text, const Values& values) {
  std::string filled;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c != '{' && c != '}') {
      filled += c;
      continue;
    }
    if (at + 1 < text.size() && text[at + 1] == c) {
      filled += c;
      ++at;
      continue;
    }
    const std::size_t end = c == '{' ? text.find('}', at) : std::string::npos;
    const auto value =
        end == std::string::npos ? values.end() : values.find(text.substr(at + 1, end - at - 1));
    if (value == values.end()) {
      std::string names;
      for (const auto& [name, one] : values) {
        names += names.empty() ? "{" : ", {";
        names += name + "}";
      }
      throw invalid_argument("TEMPLATE_INVALID", "in \"" + text + "\", after " +
                                                     std::to_string(at) + " characters: one of " +
                                                     names + " was expected, or {{ for a brace");
    }
    filled += value->second;
    at = end;
  }
  return filled;
}

Values values_of(const Granted& granted) {
  const AcquireResponse& grant = granted.grant;
  std::vector<std::string> slots;
  slots.reserve(grant.slots.size());
  for (const GrantedSlot& slot : grant.slots) slots.push_back(slot.slot.value);
  const GrantedSlot first = grant.slots.empty() ? GrantedSlot() : grant.slots.front();
  return {{"id", first.id.value},
          {"slot", first.slot.value},
          {"slots", joined(slots)},
          {"fence", std::to_string(grant.fence.value)},
          {"run_id", first.run_id.value},
          {"device", joined(granted.devices)},
          {"deadline", is_set(grant.deadline) ? format_time(grant.deadline) : ""}};
}

// Variables that are set, and variables of other makers that would filter the devices once more.
struct Mask {
  std::vector<std::string> set;
  std::vector<std::string> unset;
};

Mask mask_of(GpuKind kind) {
  switch (kind) {
    case GpuKind::none:
      return {};
    case GpuKind::cuda:
      return {{"CUDA_VISIBLE_DEVICES"}, {}};
    case GpuKind::rocm:
      return {{"ROCR_VISIBLE_DEVICES"},
              {"HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL"}};
    case GpuKind::all:
      break;
  }
  return {{"CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL"},
          {"HIP_VISIBLE_DEVICES"}};
}

}  // namespace

std::vector<std::string> devices_of(const AcquireResponse& grant) {
  std::vector<std::string> devices;
  for (const GrantedSlot& slot : grant.slots) {
    const std::string device = slot.device.empty() ? slot.slot.value : slot.device;
    if (slot.device.empty() && !is_number(device)) {
      throw invalid_argument("SLOT_NO_DEVICE",
                             "slot " + slot.slot.value + " of " + grant.pool.value +
                                 " is no device number; say which device it is: permit pool set " +
                                 grant.pool.value + " --device " + slot.slot.value + "=GPU-...");
    }
    devices.push_back(device);
  }
  std::sort(devices.begin(), devices.end(), device_before);
  return devices;
}

void check_variable(const std::string& name, const std::string& text) {
  const bool is_name = !name.empty() && !is_number(name.substr(0, 1)) &&
                       std::all_of(name.begin(), name.end(), [](unsigned char c) {
                         return std::isalnum(c) != 0 || c == '_';
                       });
  if (!is_name) {
    throw invalid_argument("VARIABLE_INVALID", "\"" + name + "\" is no name of a variable");
  }
  const AcquireResponse nothing;
  fill(text, values_of({nothing, {}, "", {}}));
}

std::string device_mask(const RunOptions& options, const std::vector<std::string>& devices) {
  const Mask mask = mask_of(options.gpu);
  return mask.set.empty() ? "" : mask.set.front() + "=" + joined(devices);
}

std::vector<std::string> child_environment(const std::vector<std::string>& inherited,
                                           const RunOptions& options, const Granted& granted) {
  const Values values = values_of(granted);
  Values added{{"PERMIT_ID", values.at("id")},
               {"PERMIT_POOL", granted.grant.pool.value},
               {"PERMIT_SLOT", values.at("slot")},
               {"PERMIT_SLOTS", values.at("slots")},
               {"PERMIT_RUN_ID", values.at("run_id")},
               {"PERMIT_FENCE", values.at("fence")},
               {"PERMIT_LEASE_DEADLINE", values.at("deadline")},
               {"PERMIT_HOLDER", granted.holder},
               {"PERMIT_ADDRESS", options.address},
               {"PERMIT_NAMESPACE", options.namespace_name}};
  const worker::TlsOptions& tls = options.tls;
  for (const auto& [name, file] : {std::pair("PERMIT_TLS_CA", tls.ca),
                                   {"PERMIT_TLS_CERT", tls.certificate},
                                   {"PERMIT_TLS_KEY", tls.key},
                                   {"PERMIT_TLS_SERVER_NAME", tls.server_name}}) {
    if (!file.empty()) added[name] = file;
  }
  std::vector<std::string> removed{"PERMIT_MAX_HOLD_DEADLINE"};  // of a run around this one
  if (is_set(granted.max_hold_deadline)) {
    added["PERMIT_MAX_HOLD_DEADLINE"] = format_time(granted.max_hold_deadline);
  }
  const Mask mask = mask_of(options.gpu);
  for (const std::string& name : mask.set) added[name] = values.at("device");
  if (!mask.set.empty() && mask.set.front().starts_with("CUDA")) {
    added["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID";
  }
  removed.insert(removed.end(), mask.unset.begin(), mask.unset.end());
  for (const auto& [name, text] : options.environment) added[name] = fill(text, values);

  std::vector<std::string> environment;
  for (const std::string& variable : inherited) {
    const std::string name = variable.substr(0, variable.find('='));
    const bool is_removed = std::find(removed.begin(), removed.end(), name) != removed.end();
    if (!is_removed && !added.contains(name)) environment.push_back(variable);
  }
  for (const auto& [name, value] : added) {
    std::string variable = name;
    variable += '=';
    variable += value;
    environment.push_back(std::move(variable));
  }
  return environment;
}

}  // namespace permit::cli
