// permit_power_loss [--commits N] [--variants N] [--seed S]: the power fails at every sync of a
// server that works, and each time the disk may have kept this or that of what was not synced yet.
// What is then on the disk must be, row for row, what the last acknowledged commit left, or the one
// that was under way, whole. With a redo log that is what the next start makes of it.
#include <CLI/CLI.hpp>
#include <chrono>
#include <iostream>
#include <memory>
#include <stdexcept>

#include "tests/power_loss/world.h"

namespace {

using namespace permit::power_loss;
using permit::store::Database;
using permit::test::CrashMode;
using permit::test::CrashVfs;
using permit::test::Disk;
using permit::test::SyncEdge;

struct Options {
  int commits = 40;
  int variants = 20;
  std::uint32_t seed = 1;
  double seconds = 1e9;
};

struct Figures {
  std::size_t syncs = 0;
  std::size_t images = 0;
  std::size_t with_unsynced = 0;  // images in which something could be lost
  std::size_t under_way = 0;      // that hold the commit which had not been acknowledged
  std::size_t started = 0;        // on which a server was started
  std::size_t lost = 0;           // that are not what they should be
};

struct Moment {
  Disk disk;
  std::size_t acknowledged;  // commits that had returned
};

constexpr std::size_t starts_every = 40;  // images

// Cycles through the ways to lose power; the first two leave nothing to choose.
CrashMode mode_of(int variant) {
  if (variant == 0) return CrashMode::drop_all;
  if (variant == 1) return CrashMode::keep_all;
  static constexpr CrashMode modes[] = {CrashMode::keep_prefix, CrashMode::random_subset,
                                        CrashMode::torn_sector};
  return modes[variant % 3];
}

std::string integrity(Database& database) {
  permit::store::Statement statement(database, "PRAGMA integrity_check");
  std::string report;
  for (auto row = statement.bind(); row.step();) report += std::string(row.text(0)) + "\n";
  return report;
}

class Trace {
 public:
  // With `log_bytes`, commits go to a redo log, and from so many on into the tables.
  Trace(const Options& options, const char* synchronous, std::int64_t log_bytes = 0)
      : options_(options), dice_(options.seed), synchronous_(synchronous) {
    opening_.logs = log_bytes > 0;
    opening_.settle_bytes = log_bytes;
  }

  Figures run() {
    CrashVfs vfs;
    lose_power_in_creation(vfs);
    CrashVfs working;
    World world(working, options_.seed, opening_);
    world.store().database().execute(synchronous_);
    states_.push_back(state_of(working, world));
    working.on_sync(
        [&](std::size_t, SyncEdge) { moments_.push_back({working.copy(), states_.size() - 1}); });
    const auto end =
        std::chrono::steady_clock::now() + std::chrono::duration<double>(options_.seconds);
    for (int i = 0; i < options_.commits && std::chrono::steady_clock::now() < end; ++i) {
      world.commit();
      states_.push_back(state_of(working, world));
      moments_.push_back({working.copy(), states_.size() - 1});  // between two commits
      try_moments();
    }
    working.on_sync({});
    figures_.syncs = working.syncs();
    if (world.acknowledged() < states_.size() / 2) {
      throw std::runtime_error("the server did too little to mean something");
    }
    return figures_;
  }

 private:
  // Nothing has been acknowledged yet: whatever is there must do for a start.
  void lose_power_in_creation(CrashVfs& vfs) {
    std::vector<Disk> disks;
    vfs.on_sync([&](std::size_t, SyncEdge) { disks.push_back(vfs.copy()); });
    static_cast<void>(std::make_unique<World>(vfs, options_.seed, opening_));
    vfs.on_sync({});
    for (const Disk& disk : disks) {
      for (int variant = 0; variant < options_.variants; ++variant) {
        ++figures_.images;
        ++figures_.started;
        const CrashVfs image(after_loss(disk, variant));
        start_and_check(image);
      }
    }
  }

  // With a log, of what a start makes of the disk as it is.
  std::size_t state_of(const CrashVfs& working, World& world) const {
    if (!opening_.logs) return fingerprint(world.store().database());
    const CrashVfs image(working.copy());
    return fingerprint_of_start(image);
  }
  static std::size_t fingerprint_of_start(const CrashVfs& image) {
    permit::store::Store store(on(image));
    return fingerprint(store.database());
  }

  Disk after_loss(const Disk& disk, int variant) {
    Disk image = disk;
    image.lose_power([this](std::uint32_t n) { return static_cast<std::uint32_t>(dice_() % n); },
                     mode_of(variant));
    return image;
  }

  void try_moments() {
    for (const Moment& moment : moments_) {
      for (int variant = 0; variant < options_.variants; ++variant) {
        ++figures_.images;
        if (moment.disk.unsynced_changes() > 0) ++figures_.with_unsynced;
        const CrashVfs image(after_loss(moment.disk, variant));
        try_image(image, moment.acknowledged);
      }
    }
    moments_.clear();
  }

  void try_image(const CrashVfs& image, std::size_t acknowledged) {
    {
      Database database(on(image));
      const std::string report = integrity(database);
      if (report != "ok\n") throw std::runtime_error("integrity_check: " + report);
      const std::size_t found = opening_.logs ? fingerprint_of_start(image) : fingerprint(database);
      const bool is_next = acknowledged + 1 < states_.size() && found == states_[acknowledged + 1];
      if (is_next) ++figures_.under_way;
      if (found != states_[acknowledged] && !is_next) ++figures_.lost;
    }
    if (figures_.images % starts_every != 0) return;
    ++figures_.started;
    start_and_check(image);
  }

  const Options& options_;
  permit::store::Opening opening_;
  Dice dice_;
  const char* synchronous_;
  std::vector<std::size_t> states_;  // after each commit
  std::vector<Moment> moments_;      // since the last one
  Figures figures_;
};

void run(const Options& options, std::int64_t log_bytes) {
  const auto began = std::chrono::steady_clock::now();
  const Figures figures = Trace(options, "PRAGMA synchronous = FULL", log_bytes).run();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  std::cout << (log_bytes > 0 ? "with a redo log: " : "") << figures.images << " images of "
            << figures.syncs << " syncs, " << figures.with_unsynced << " with something to lose; "
            << figures.under_way << " held the commit under way; servers started on "
            << figures.started << "; " << figures.lost << " violations; " << took.count() << " s\n";
  if (figures.lost > 0) throw std::runtime_error("a state that no commit has left");
  if (figures.under_way == 0) throw std::runtime_error("no commit was ever hit");
}

void run(const Options& options) {
  constexpr std::int64_t some_commits = 6'000;
  run(options, 0);
  run(options, some_commits);

  // If this lost nothing either, what is above would prove nothing.
  Options careless = options;
  careless.commits = 15;
  careless.variants = 3;
  if (Trace(careless, "PRAGMA synchronous = NORMAL").run().lost == 0) {
    throw std::runtime_error("nothing was lost without syncs");
  }
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("permit_power_loss: the power fails at every sync");
  app.add_option("--commits", options.commits);
  app.add_option("--variants", options.variants, "Of what is left, at each moment");
  app.add_option("--seed", options.seed);
  app.add_option("--seconds", options.seconds, "Begin no other commit after this");
  CLI11_PARSE(app, argc, argv);
  try {
    run(options);
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "permit_power_loss: seed " << options.seed << ": " << error.what() << "\n";
    return 1;
  }
}
