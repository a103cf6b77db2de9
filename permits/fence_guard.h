// For the thing that a permit guards: a store, a robot, an API. It remembers the highest fence it
// has seen of each slot and refuses lower ones, so that a holder who was paused beyond its lease,
// and wakes up believing that it still has the slot, can do no harm.
//
//   FenceGuard guard("fences");              // remembered across restarts
//   if (!guard.admit("permit:gpu:0", fence)) refuse();
//
// Ask before each write, and let no other write of the slot come between the two. Thread-safe. A
// file belongs to one guard.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <string>

#include "orchestrator/protocol/ids.h"
#include "permits/errors.h"

namespace permit::permits {

// The writer's permit has ended, and a later one has been seen.
class StaleFence : public PermitError {
 public:
  StaleFence(const std::string& slot, Fence fence, Fence highest);
  Fence highest() const { return highest_; }

 private:
  Fence highest_;
};

class FenceGuard {
 public:
  // Forgets all when it goes: for what is itself gone then.
  FenceGuard() = default;
  // Reads the file, if it is there. A fence is in it, on disk, before it is admitted. Throws
  // std::runtime_error for a file that is not of a guard, std::system_error if it cannot be read.
  explicit FenceGuard(std::filesystem::path file);
  FenceGuard(const FenceGuard&) = delete;
  FenceGuard& operator=(const FenceGuard&) = delete;

  // Whether no higher fence has been seen of this slot. `slot` is any name that its holders agree
  // on, such as the permit's id; without a newline. Throws std::system_error if the file cannot be
  // written: then nothing is admitted.
  bool admit(const std::string& slot, Fence fence);
  // Throws StaleFence instead.
  void check(const std::string& slot, Fence fence);
  // Zero: none yet.
  Fence highest(const std::string& slot) const;

 private:
  void load();
  void save(const std::map<std::string, Fence>& fences) const;

  const std::filesystem::path file_;  // absent: in memory only
  mutable std::mutex mutex_;          // guards what follows, and the file
  std::map<std::string, Fence> highest_;
};

}  // namespace permit::permits
