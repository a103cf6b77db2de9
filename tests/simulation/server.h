// The real engine on a disk or in memory, a clock that we turn, and its death: a Server can lose
// power at any sync and be started again on what the disk then holds. One thread.
#pragma once

#include <memory>

#include "orchestrator/service/service.h"
#include "orchestrator/store/store.h"
#include "tests/simulation/chance.h"
#include "tests/support/crash_vfs.h"

namespace permit::simulation {

class Server {
 public:
  Server(bool on_disk, Chance& chance);

  service::Service& service() { return *service_; }
  store::Store& store() { return *store_; }
  service::ManualClock& clock() { return clock_; }
  bool on_disk() const { return vfs_ != nullptr; }

  enum class Batch { idle, done, died };
  // One batch. `died`: the process is gone, with it every request that had no answer; restart().
  Batch run_batch();

  // Power fails at one of the next syncs: just before it, or just after it.
  void lose_power_soon();
  void fail_next_sync();
  void fill_disk();
  void free_disk();
  bool disk_is_full() const { return disk_full_; }

  // The process ends now, between two batches.
  void kill();
  void restart();
  // How often the server was started.
  int starts() const { return starts_; }

 private:
  void start_service();
  void lose_power();

  Chance& chance_;
  service::ManualClock clock_;
  std::unique_ptr<test::CrashVfs> vfs_;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<service::Service> service_;
  bool power_lost_ = false;
  bool disk_full_ = false;
  int starts_ = 0;
};

}  // namespace permit::simulation
