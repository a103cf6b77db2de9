#include "tests/simulation/server.h"

#include "tests/simulation/sometimes.h"

namespace permit::simulation {

namespace {

constexpr Time beginning{std::chrono::seconds(1'800'000'000)};
constexpr Time boot_beginning{std::chrono::seconds(86'400)};
constexpr const char* path = "/permit.db";

}  // namespace

Server::Server(const Plan& plan, Chance& chance)
    : plan_(plan), chance_(chance), wall_(beginning), boot_(boot_beginning) {
  if (plan.level == 2) vfs_ = std::make_unique<test::CrashVfs>();
  open_store();
  if (plan.fences_high) {
    store_->begin();
    store_->set_fence((std::int64_t{1} << 32U) - 3);
    store_->commit(wall_);
  }
  start_service();
}

void Server::open_store() {
  power_lost_ = false;
  if (store_) return;
  store::Database::Options options;
  if (vfs_) {
    options.path = path;
    options.vfs = vfs_->name();
    options.autocheckpoint_pages_min = chance_.percent(50) ? 8 : 250;
  } else {
    options.mode = store::Database::Mode::in_memory;
  }
  store::Opening opening;
  opening.logs = vfs_ != nullptr && starts_ % 3 != 2;
  opening.settle_bytes = 1;  // with each commit: what looks on reads the tables
  store_ = std::make_unique<store::Store>(std::move(options), opening);
}

void Server::start_service() {
  service::Options options;
  options.seed = chance_.word() | 1U;
  options.token_secret = "simulated";
  options.retention = std::chrono::hours(24 * 365 * 20);
  if (plan_.retention.count() > 0) options.retention = plan_.retention;
  if (chance_.percent(30)) options.cache_bytes_max = 4'000;  // runs are folded again and again
  if (chance_.percent(15)) options.batch_requests_max = 1 + chance_.below(3);
  if (chance_.percent(15)) options.holds_kept = 1;
  const Time stored = store_->counters().time_max;
  sometimes(wall_ < stored, "started with a wall clock behind what is stored");
  clock_ = std::make_unique<service::SystemClock>(
      stored, [this](clockid_t clock) { return read_clock(clock); });
  anchor_ = std::max(wall_, stored);
  boot_anchor_ = boot_;
  service_ = std::make_unique<service::Service>(*store_, *clock_, std::move(options));
  ++starts_;
}

void Server::wait_until(Time time) {
  const Duration more = time - now();
  if (more.count() <= 0) return;
  wall_ += more;
  boot_ += more;
}

// --- Ends and beginnings ---

void Server::restart(int crashes_of_recovery) {
  for (int attempt = 0;; ++attempt) {
    if (vfs_ && attempt < 3 && chance_.percent(crashes_of_recovery)) lose_power_soon();
    try {
      open_store();
      start_service();
      return;
    } catch (const store::StoreFailed& failed) {
      require(power_lost_, [&] { return std::string("it does not start: ") + failed.what(); });
      sometimes("power lost while the server recovers");
      sometimes(attempt > 0, "power lost in a recovery of a recovery");
      kill();
    }
  }
}

void Server::kill() {
  service_.reset();
  if (!vfs_) return;  // what was committed in memory stays: the process dies, not the machine
  if (!power_lost_) lose_power();
  store_.reset();
  vfs_->on_sync({});
  last_sync_.reset();
  slow_ = {};
  vfs_->clear_faults();
}

void Server::lose_power() {
  using test::CrashMode;
  static const std::vector<CrashMode> modes = {CrashMode::drop_all,      CrashMode::drop_all,
                                               CrashMode::keep_all,      CrashMode::keep_prefix,
                                               CrashMode::random_subset, CrashMode::torn_sector};
  const CrashMode mode = chance_.pick(modes);
  sometimes(vfs_->unsynced_bytes() > 0, "power lost with writes that were not synced");
  sometimes(mode == CrashMode::torn_sector && vfs_->unsynced_bytes() > 512,
            "power lost in the middle of a write");
  sometimes(mode == CrashMode::random_subset && vfs_->unsynced_bytes() > 0,
            "power lost with writes out of order");
  vfs_->crash([this](std::uint32_t n) { return static_cast<std::uint32_t>(chance_.below(n)); },
              mode);
  power_lost_ = true;
}

void Server::hook_syncs() {
  vfs_->on_sync([this](std::size_t sync, test::SyncEdge at) {
    if (at == test::SyncEdge::before && slow_.count() > 0) {
      sometimes("a sync that takes long");
      const Duration slow = std::exchange(slow_, Duration(0));
      wall_ += slow;
      boot_ += slow;
    }
    if (!last_sync_ || sync < *last_sync_ || at != edge_ || power_lost_) return;
    sometimes(edge_ == test::SyncEdge::before ? "power lost just before a sync"
                                              : "power lost just after a sync");
    lose_power();
  });
}

void Server::lose_power_soon() {
  last_sync_ = vfs_->syncs() + 1 + chance_.below(4);
  edge_ = chance_.percent(50) ? test::SyncEdge::before : test::SyncEdge::after;
  hook_syncs();
}

// --- Other faults ---

void Server::fail_next_sync() { vfs_->fail_next_sync(); }
void Server::lie_next_sync() { vfs_->lie_next_sync(); }
void Server::fail_a_write() { vfs_->fail_write_after(chance_.below(6)); }

void Server::fill_disk() {
  vfs_->disk_limit(vfs_->disk_size());
  disk_full_ = true;
}

void Server::free_disk() {
  vfs_->disk_limit(std::nullopt);
  disk_full_ = false;
}

Server::Batch Server::run_batch() {
  if (vfs_ && slow_.count() > 0) hook_syncs();
  if (vfs_) vfs_->fail_read_after(std::exchange(fails_read_, std::nullopt));
  try {
    const bool worked = service_->run_batch();
    settle();
    if (vfs_) vfs_->fail_read_after(std::nullopt);  // what looks at it afterwards can read
    if (power_lost_) return Batch::died;            // just after the sync: this batch was answered
    return worked ? Batch::done : Batch::idle;
  } catch (const store::StoreFailed& failed) {
    require(vfs_ != nullptr,
            [&] { return std::string("a store in memory does not fail: ") + failed.what(); });
    sometimes(!power_lost_, "the store fails, and the server stops");
    return Batch::died;
  }
}

// Who looks on reads the tables, so on a full disk these alone get the room that they need.
void Server::settle() {
  try {
    store_->settle();
  } catch (const store::DiskFull&) {
    vfs_->disk_limit(std::nullopt);
    store_->settle();
    vfs_->disk_limit(vfs_->disk_size());
  }
}

// --- What must not be ---

std::string Server::usurp() {
  const std::unique_ptr<store::Store> old_store = std::move(store_);
  const std::unique_ptr<service::Clock> old_clock = std::move(clock_);
  const std::unique_ptr<service::Service> old = std::move(service_);
  vfs_->on_sync({});
  vfs_->clear_faults();
  last_sync_.reset();
  open_store();
  start_service();
  StartWorkflowExecutionRequest request;
  request.namespace_ = "default";
  request.workflow_id = WorkflowId("usurped" + std::to_string(starts_));
  request.workflow_type.name = "Parent";
  request.task_queue.name = "work";
  bool answered = false;
  old->start(request,
             [&](const service::Result<StartWorkflowExecutionResponse>&) { answered = true; });
  try {
    while (old->run_batch()) {  // a batch may hold few requests, and others were there before
    }
  } catch (const store::OwnershipLost&) {
    sometimes("a server that lost its file writes no more");
    return answered ? "a server that has lost its file answers" : "";
  } catch (const store::StoreFailed&) {
    return "";
  }
  return "a server that has lost its file has committed to it";
}

std::string Server::open_damaged() {
  test::Disk disk = vfs_->copy();
  const std::optional<std::string> file = disk.get(path);
  const std::optional<std::string> log = disk.get(std::string(path) + "-wal");
  if (!file || file->size() < 8192 || !log || log->empty()) return "";
  // The first page may be in the log, and then nobody misses it in the file. So either the file is
  // gone and its log is not, or the log is gone and the file is damaged.
  std::string damaged = *file;
  const bool has_log = chance_.percent(50);
  if (has_log) {
    damaged.clear();
  } else {
    for (std::size_t i = 0; i < 100; ++i) damaged[i] = 'x';
    disk.put(std::string(path) + "-wal", "");
  }
  disk.put(path, std::move(damaged));
  test::CrashVfs vfs(std::move(disk));
  store::Database::Options options;
  options.path = path;
  options.vfs = vfs.name();
  try {
    const store::Store opened(std::move(options));
  } catch (const store::StoreFailed&) {
    sometimes(has_log, "a lost file is refused, since its log is there");
    sometimes(!has_log, "a damaged file is refused");
    return "";
  }
  return "a damaged file was opened as if nothing were wrong";
}

}  // namespace permit::simulation
