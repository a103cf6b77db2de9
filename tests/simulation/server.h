// The real engine on a disk or in memory, clocks that we turn, and its death: a Server can lose
// power at any sync and be started again on what the disk then holds. One thread.
#pragma once

#include <memory>

#include "orchestrator/service/service.h"
#include "orchestrator/store/store.h"
#include "tests/simulation/plan.h"
#include "tests/support/crash_vfs.h"

namespace permit::simulation {

class Server {
 public:
  Server(const Plan& plan, Chance& chance);

  service::Service& service() { return *service_; }
  store::Store& store() { return *store_; }
  bool on_disk() const { return vfs_ != nullptr; }
  // Neither killed nor without power.
  bool is_up() const { return service_ != nullptr && !power_lost_; }

  // The server's time as it must be, whatever its own clock says: the wall's at the start, or the
  // last that was stored, and what has passed since.
  Time now() const { return anchor_ + (boot_ - boot_anchor_); }
  // What is sooner stays.
  void wait_until(Time time);
  // The wall's clock is set, forward or back.
  void jump_wall(Duration by) { wall_ += by; }

  enum class Batch { idle, done, died };
  // One batch. `died`: the process is gone, with it every request that had no answer; restart().
  Batch run_batch();

  // Power fails at one of the next syncs: just before it, or just after it.
  void lose_power_soon();
  void fail_next_sync();
  // It says that it failed, and all is on disk.
  void lie_next_sync();
  void fail_a_write();
  void fail_a_read() { fails_read_ = chance_.below(6); }  // of the next batch
  // The next sync takes that long.
  void slow_next_sync(Duration time) { slow_ = time; }
  void fill_disk();
  void free_disk();
  bool disk_is_full() const { return disk_full_; }

  // The process ends now, between two batches.
  void kill();
  // Starts again on what the disk holds; power may fail while it recovers, so often in a hundred.
  void restart(int crashes_of_recovery);
  // How often the server was started.
  int starts() const { return starts_; }

  // Another server takes the file while this one lives. Returns what the old one then does with a
  // request, which must be nothing: it says why if it is not.
  std::string usurp();
  // A copy of the file is damaged, and must be refused. Only while the server is down.
  std::string open_damaged();

 private:
  void open_store();
  void settle();
  void start_service();
  void lose_power();
  Time read_clock(clockid_t clock) const { return clock == CLOCK_REALTIME ? wall_ : boot_; }
  void hook_syncs();

  const Plan& plan_;
  Chance& chance_;
  Time wall_;
  Time boot_;
  Time anchor_{};
  Time boot_anchor_{};
  std::unique_ptr<test::CrashVfs> vfs_;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<service::Clock> clock_;
  std::unique_ptr<service::Service> service_;
  bool power_lost_ = false;
  bool disk_full_ = false;
  std::optional<std::size_t> last_sync_;  // power fails there
  test::SyncEdge edge_ = test::SyncEdge::before;
  Duration slow_{};
  std::optional<std::size_t> fails_read_;
  int starts_ = 0;
};

}  // namespace permit::simulation
