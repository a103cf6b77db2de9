// The example of the GPU training: what its starter, its workers and its tests agree on.
//
// Many trainings, four GPUs. A training is a workflow that takes a permit of the pool, and runs one
// activity under it, which says after each epoch how far it has come. If its worker dies, another
// goes on from there, on the same GPU, since the permit is the workflow's and not the worker's.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "orchestrator/protocol/ids.h"
#include "worker/names.h"
#include "worker/registry.h"

namespace gpu_training {

inline constexpr const char* pool = "gpu-pool";
inline constexpr int gpus = 4;

// What a run is to do: its input.
struct Training {
  std::string model = "llama";
  int epochs = 10;
  double time_scale = 1;     // divides all durations, so that people need not wait for hours
  int hang_after_epoch = 0;  // where every attempt falls silent, to show what comes then; 0: never
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Training, model, epochs, time_scale,
                                                hang_after_epoch)

// What an attempt leaves to the next one. A real one saves its weights to a file, fence and all
// (apps/fenced_files), and says here which; ours is one number.
struct Checkpoint {
  int epochs_done = 0;
  double weight = 0;
  double loss = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Checkpoint, epochs_done, weight, loss)

struct Trained {
  std::string model;
  int epochs = 0;
  double loss = 0;
  int attempts = 0;
  std::string permit;
  std::int64_t fence = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Trained, model, epochs, loss, attempts, permit, fence)

inline constexpr permit::worker::WorkflowName<Trained(Training)> workflow_name{"GpuTraining"};
// The training, the permit's id, its fence.
inline constexpr permit::worker::ActivityName<Trained(Training, std::string, std::int64_t)>
    activity_name{"run_training"};

// How long things take, and may take. Each is what it is because of another.
struct Limits {
  explicit Limits(double time_scale);

  // Each ends with a heartbeat, so it has to be shorter than the silence that is put up with …
  permit::Duration epoch;  // 2 min
  // … which is how long a GPU idles after its worker has died, before another one goes on.
  permit::Duration silence;  // 3 min
  // Between one attempt and the next; doubled each time up to the second.
  permit::Duration pause;      // 10 s
  permit::Duration pause_max;  // 1 min
  // One attempt: ten epochs take 20 min. What is to do longer goes on in another attempt.
  permit::Duration attempt;  // 30 min
  // Longer than an attempt and than the silence after it: for the server, an attempt that renews
  // nothing is over before its permit is, and 15 min are left to find another worker. Heartbeats
  // renew it. So it runs out if, and only if, no attempt has finished an epoch for so long.
  permit::Duration lease;  // 45 min
  // However often it is tried: the GPU goes to the next in line after this.
  permit::Duration max_hold;  // 2 h
};

// What the training does besides computing. Tests have their own.
struct World {
  std::function<void(const std::string& line)> say;        // from several threads
  std::function<void(permit::Duration duration)> compute;  // for so long
};

// Both the workflow and the activity.
void register_training(permit::worker::Registry& registry, World world);

}  // namespace gpu_training
