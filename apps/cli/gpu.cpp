#include "apps/cli/gpu.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <sstream>

#include "apps/cli/session.h"
#include "orchestrator/protocol/error.h"

namespace permit::cli {

namespace {

// What a program prints; nothing if it cannot be run or fails. The command is one of ours, with
// nothing of a user's in it.
std::optional<std::string> output_of(const char* command) {
  struct Close {
    void operator()(FILE* pipe) const { pclose(pipe); }
  };
  FILE* const opened = popen(command, "r");
  if (opened == nullptr) return std::nullopt;
  std::unique_ptr<FILE, Close> pipe(opened);
  std::string text;
  std::array<char, 4096> buffer{};
  while (const std::size_t n = fread(buffer.data(), 1, buffer.size(), pipe.get())) {
    text.append(buffer.data(), n);
  }
  if (pclose(pipe.release()) != 0) return std::nullopt;
  return text;
}

std::string trimmed(const std::string& text) {
  const std::size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

// Lines of comma-separated fields, as both tools print them.
std::vector<std::vector<std::string>> rows_of(const std::string& text) {
  std::vector<std::vector<std::string>> rows;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (trimmed(line).empty()) continue;
    std::vector<std::string> row;
    std::istringstream fields(line);
    for (std::string field; std::getline(fields, field, ',');) row.push_back(trimmed(field));
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<Gpu> nvidia_gpus(const std::string& text) {
  std::vector<Gpu> gpus;
  for (const auto& row : rows_of(text)) {
    if (row.size() >= 3) gpus.push_back({row[1], row[0], row[2]});
  }
  return gpus;
}

// device,Unique ID / card0,0x2f6a…
std::vector<Gpu> rocm_gpus(const std::string& text) {
  std::vector<Gpu> gpus;
  for (const auto& row : rows_of(text)) {
    if (row.size() < 2 || !row[0].starts_with("card")) continue;
    std::string id = row[1];
    if (id.starts_with("0x")) id.erase(0, 2);
    gpus.push_back({"GPU-" + id, row[0].substr(4), "ROCm"});
  }
  return gpus;
}

}  // namespace

std::vector<Gpu> find_gpus() {
  const auto nvidia =
      output_of("nvidia-smi --query-gpu=index,uuid,name --format=csv,noheader 2>/dev/null");
  if (nvidia) return nvidia_gpus(*nvidia);
  const auto rocm = output_of("rocm-smi --showuniqueid --csv 2>/dev/null");
  if (rocm) return rocm_gpus(*rocm);
  throw not_found("NO_GPU_TOOL",
                  "neither nvidia-smi nor rocm-smi runs here; name the devices: --device 0=GPU-…");
}

std::vector<GpuProcess> find_gpu_processes() {
  const auto text = output_of(
      "nvidia-smi --query-compute-apps=gpu_uuid,pid,process_name --format=csv,noheader "
      "2>/dev/null");
  if (!text) {
    throw not_found("NO_GPU_TOOL", "nvidia-smi does not run here, so its processes are unknown");
  }
  std::vector<GpuProcess> processes;
  for (const auto& row : rows_of(*text)) {
    if (row.size() < 3) continue;
    GpuProcess process{row[0], 0, row[2]};
    std::from_chars(row[1].data(), row[1].data() + row[1].size(), process.pid);
    if (process.pid > 0) processes.push_back(std::move(process));
  }
  return processes;
}

namespace {

// The process and those it descends from.
std::set<std::int64_t> ancestry(std::int64_t pid) {
  std::set<std::int64_t> pids;
  while (pid > 1 && pids.insert(pid).second) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
    std::string stat((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    const std::size_t after_name = stat.rfind(')');  // "pid (name) state parent …"
    if (after_name == std::string::npos) break;
    std::istringstream rest(stat.substr(after_name + 1));
    std::string state;
    rest >> state >> pid;
  }
  return pids;
}

// Of the wrapper or client that holds the permit, if it runs on this host.
std::int64_t holder_pid(const PermitInfo& permit) {
  const auto host = permit.labels.find("host");
  const auto pid = permit.labels.find("pid");
  if (host == permit.labels.end() || pid == permit.labels.end()) return 0;
  if (host->second != host_name()) return 0;
  std::int64_t value = 0;
  std::from_chars(pid->second.data(), pid->second.data() + pid->second.size(), value);
  return value;
}

}  // namespace

std::vector<GpuProcess> without_permit(const std::vector<PoolInfo>& pools,
                                       const std::vector<Gpu>& gpus,
                                       const std::vector<GpuProcess>& processes) {
  std::map<std::string, std::string> uuid_of_index;
  for (const Gpu& gpu : gpus) uuid_of_index[gpu.index] = gpu.uuid;
  std::set<std::string> ours;                         // GPUs that are slots
  std::map<std::string, std::set<std::int64_t>> may;  // uuid → processes of holders
  std::set<std::string> held_elsewhere;               // by a workflow: its processes are unknown
  for (const PoolInfo& pool : pools) {
    for (const SlotInfo& slot : pool.slots) {
      const auto index = uuid_of_index.find(slot.device);
      const std::string uuid = index == uuid_of_index.end() ? slot.device : index->second;
      if (uuid.empty()) continue;
      ours.insert(uuid);
      if (!slot.permit) continue;
      const std::int64_t pid = holder_pid(*slot.permit);
      if (pid != 0) {
        may[uuid].insert(pid);
      } else {
        held_elsewhere.insert(uuid);
      }
    }
  }
  std::vector<GpuProcess> strangers;
  for (const GpuProcess& process : processes) {
    if (!ours.contains(process.uuid) || held_elsewhere.contains(process.uuid)) continue;
    const std::set<std::int64_t> family = ancestry(process.pid);
    const auto& holders = may[process.uuid];
    const bool has_permit = std::any_of(family.begin(), family.end(),
                                        [&](std::int64_t pid) { return holders.contains(pid); });
    if (!has_permit) strangers.push_back(process);
  }
  return strangers;
}

void print_gpu_use(Session& session, const std::vector<PoolInfo>& pools) {
  const Output& out = session.out();
  const std::vector<Gpu> gpus = find_gpus();
  Table table({{"PERMIT"}, {"DEVICE"}, {"GPU"}});
  for (const PoolInfo& pool : pools) {
    for (const SlotInfo& slot : pool.slots) {
      if (slot.device.empty()) continue;
      const auto gpu = std::find_if(gpus.begin(), gpus.end(), [&](const Gpu& known) {
        return known.uuid == slot.device || known.index == slot.device;
      });
      table.add({{"permit:" + pool.pool.value + ":" + slot.slot.value},
                 {printable(slot.device, 60)},
                 {gpu == gpus.end() ? "not of this host" : gpu->index + " " + gpu->name}});
    }
  }
  out.text("");
  if (!table.empty()) out.table(table);
  for (const GpuProcess& process : without_permit(pools, gpus, find_gpu_processes())) {
    out.text(out.paint("without a permit: ", Style::yellow) + printable(process.name, 60) +
             " (pid " + std::to_string(process.pid) + ") uses " + process.uuid);
  }
}

}  // namespace permit::cli
