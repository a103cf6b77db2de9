#include "tests/bench/outside_limits.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <stdexcept>
#include <thread>

#include "orchestrator/store/database.h"
#include "tests/bench/load.h"
#include "tests/bench/outside_names.h"
#include "tests/bench/processes.h"

namespace permit::bench {

namespace {

constexpr Seconds measured(0.6);

struct Ticks {
  double busy = 0;
  double all = 0;
};

// Of all cores since the machine started.
Ticks ticks() {
  std::ifstream stat("/proc/stat");
  std::string name;
  stat >> name;
  Ticks ticks;
  double value = 0;
  for (int column = 0; column < 8 && stat >> value; ++column) {
    const bool idle = column == 3 || column == 4;  // the second: waiting for a disk
    ticks.all += value;
    if (!idle) ticks.busy += value;
  }
  return ticks;
}

// What others do while nothing is measured: a run beside that says little.
void add_others(Report& report) {
  const Ticks before = ticks();
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  const Ticks after = ticks();
  const double share = (after.busy - before.busy) / (after.all - before.all);
  report.add(busy_before, "cores", share * static_cast<double>(sysconf(_SC_NPROCESSORS_ONLN)));
}

// How long each of these takes, one after the other.
void add_repeated(const std::string& name, const std::string& unit, Report& report,
                  const std::function<void()>& what) {
  std::vector<double> took_ms;
  const Clock::time_point start = Clock::now();
  Clock::time_point before = start;
  while (before - start < measured) {
    what();
    const Clock::time_point now = Clock::now();
    took_ms.push_back(Seconds(now - before).count() * 1'000);
    before = now;
  }
  const double seconds = Seconds(before - start).count();
  report.add(name, unit, static_cast<double>(took_ms.size()) / seconds);
  std::sort(took_ms.begin(), took_ms.end());
  report.add(name + ": p50", "ms", took_ms[took_ms.size() / 2]);
}

void add_append(const Setting& setting, Report& report) {
  const std::string path = setting.directory + "/append";
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  const std::string block(4'096, 'x');
  add_repeated(limit_append, "syncs/s", report, [&] {
    const ssize_t written = write(file, block.data(), block.size());
    if (written != static_cast<ssize_t>(block.size()) || fdatasync(file) != 0) {
      throw std::runtime_error("cannot write " + path);
    }
  });
  close(file);
  unlink(path.c_str());
}

// Through our own connection settings, a row of the size that an acquire stores.
void add_commit(const Setting& setting, Report& report) {
  store::Database::Options options;
  options.path = setting.directory + "/commits.db";
  store::Database database(options);
  database.execute("CREATE TABLE IF NOT EXISTS rows (number INTEGER PRIMARY KEY, row TEXT) STRICT");
  store::Statement insert(database, "INSERT OR REPLACE INTO rows VALUES (?, ?)");
  const std::string row(400, 'x');
  std::int64_t number = 0;
  add_repeated(limit_commit, "commits/s", report, [&] {
    store::Transaction transaction(database);
    insert.run(++number, row);
    transaction.commit();
  });
}

void add_round_trip(Report& report) {
  const EchoProcess server;
  Load load(server.port());
  const Load::Peer peer = load.connect();
  const std::string request = post("/echo", start_body("echo"));
  add_repeated(limit_round_trip, "requests/s", report, [&] {
    load.send(peer, request, [](std::string_view) {});
    load.run_until([&] { return load.outstanding() == 0; });
  });
}

}  // namespace

void add_outside_limits(const Setting& setting, Report& report) {
  add_others(report);
  add_append(setting, report);
  add_commit(setting, report);
  add_round_trip(report);
}

}  // namespace permit::bench
