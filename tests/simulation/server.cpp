#include "tests/simulation/server.h"

namespace permit::simulation {

namespace {

constexpr Time beginning{std::chrono::seconds(1'800'000'000)};

}  // namespace

Server::Server(bool on_disk, Chance& chance) : chance_(chance), clock_(beginning) {
  if (on_disk) vfs_ = std::make_unique<test::CrashVfs>();
  restart();
}

void Server::start_service() {
  service::Options options;
  options.seed = chance_.word() | 1U;
  options.token_secret = "simulated";
  options.retention = std::chrono::hours(24 * 365 * 20);
  if (chance_.percent(30)) options.cache_bytes_max = 4'000;  // runs are folded again and again
  service_ = std::make_unique<service::Service>(*store_, clock_, std::move(options));
  ++starts_;
}

void Server::restart() {
  power_lost_ = false;
  if (!store_) {
    store::Database::Options options;
    if (vfs_) {
      options.path = "/permit.db";
      options.vfs = vfs_->name();
      options.autocheckpoint_pages_min = chance_.percent(50) ? 8 : 250;
    } else {
      options.mode = store::Database::Mode::in_memory;
    }
    store_ = std::make_unique<store::Store>(std::move(options));
  }
  start_service();
}

void Server::kill() {
  service_.reset();
  if (!vfs_) return;  // what was committed in memory stays: the process dies, not the machine
  if (!power_lost_) lose_power();
  store_.reset();
  vfs_->on_sync({});
  vfs_->clear_faults();
}

void Server::lose_power() {
  using test::CrashMode;
  static const std::vector<CrashMode> modes = {CrashMode::drop_all,      CrashMode::drop_all,
                                               CrashMode::keep_all,      CrashMode::keep_prefix,
                                               CrashMode::random_subset, CrashMode::torn_sector};
  const CrashMode mode = chance_.pick(modes);
  vfs_->crash([this](std::uint32_t n) { return static_cast<std::uint32_t>(chance_.below(n)); },
              mode);
  power_lost_ = true;
}

void Server::lose_power_soon() {
  const std::size_t last = vfs_->syncs() + 1 + chance_.below(4);
  const auto edge = chance_.percent(50) ? test::SyncEdge::before : test::SyncEdge::after;
  vfs_->on_sync([this, last, edge](std::size_t sync, test::SyncEdge at) {
    if (sync >= last && at == edge && !power_lost_) lose_power();
  });
}

void Server::fail_next_sync() { vfs_->fail_next_sync(); }

void Server::fill_disk() {
  vfs_->disk_limit(vfs_->disk_size());
  disk_full_ = true;
}

void Server::free_disk() {
  vfs_->disk_limit(std::nullopt);
  disk_full_ = false;
}

Server::Batch Server::run_batch() {
  try {
    const bool worked = service_->run_batch();
    if (power_lost_) return Batch::died;  // just after the sync: this batch was answered
    return worked ? Batch::done : Batch::idle;
  } catch (const store::StoreFailed& failed) {
    require(vfs_ != nullptr, std::string("a store in memory does not fail: ") + failed.what());
    return Batch::died;
  }
}

}  // namespace permit::simulation
