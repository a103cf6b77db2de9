// GPUs of this host: what nvidia-smi says of them and of the processes on them.
#pragma once

#include <string>
#include <vector>

#include "orchestrator/protocol/pools.h"

namespace permit::cli {

class Session;

struct Gpu {
  std::string uuid;   // "GPU-8932f937-…"
  std::string index;  // "0"
  std::string name;
};
struct GpuProcess {
  std::string uuid;  // of the GPU
  std::int64_t pid = 0;
  std::string name;
};

// From `nvidia-smi`, else `rocm-smi`, found on PATH. Throws Error NO_GPU_TOOL (not_found).
std::vector<Gpu> find_gpus();
std::vector<GpuProcess> find_gpu_processes();

// Processes of this host that use the GPU of a slot of `pools` and are no part of its holder.
std::vector<GpuProcess> without_permit(const std::vector<PoolInfo>& pools,
                                       const std::vector<Gpu>& gpus,
                                       const std::vector<GpuProcess>& processes);

// The end of `permit list --gpu`.
void print_gpu_use(Session& session, const std::vector<PoolInfo>& pools);

}  // namespace permit::cli
