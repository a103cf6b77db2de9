// What no server of this kind can exceed here.
#include <algorithm>
#include <memory>

#include "orchestrator/store/database.h"
#include "tests/bench/load.h"
#include "tests/bench/processes.h"
#include "tests/bench/scenarios.h"

namespace permit::bench {

namespace {

// Bare transactions through our own connection settings: as many rows in each as the median batch
// of the starts held requests, each row as many bytes as a start stored.
void run_sqlite(const Setting& setting, Report& report) {
  const auto rows = static_cast<std::int64_t>(std::max(1.0, report.last(starts_batch)));
  const std::string row(static_cast<std::size_t>(report.last(starts_row)), 'x');
  store::Database::Options options;
  options.path = setting.directory + "/limit.db";
  store::Database database(options);
  database.execute("CREATE TABLE rows (number INTEGER PRIMARY KEY, row TEXT) STRICT");
  store::Statement insert(database, "INSERT INTO rows VALUES (?, ?)");
  std::int64_t number = 0;
  const Clock::time_point start = Clock::now();
  while (Clock::now() - start < Seconds(1)) {
    store::Transaction transaction(database);
    for (std::int64_t i = 0; i < rows; ++i) insert.run(++number, row);
    transaction.commit();
  }
  const Seconds passed = Clock::now() - start;
  report.add("limit: SQLite FULL, such batches", "rows/s",
             static_cast<double>(number) / passed.count());
}

class Echoes : public Counter {
 public:
  explicit Echoes(Load& load) : load_(load), request_(post("/echo", start_body("echo"))) {}

  void begin(Load::Peer peer) {
    load_.send(peer, request_, [this, peer](std::string_view) {
      ++done;
      if (!stopping) begin(peer);
    });
  }

 private:
  Load& load_;
  std::string request_;
};

void run_echo(const Setting&, Report& report) {
  const EchoProcess server;
  Load load(server.port());
  Echoes echoes(load);
  for (int i = 0; i < 64; ++i) echoes.begin(load.connect());
  report.add("limit: HTTP echo, 64 connections", "requests/s", rate(load, echoes));
}

void add_share(const Setting&, Report& report) {
  const double lower = std::min(report.last("limit: SQLite FULL, such batches"),
                                report.last("limit: HTTP echo, 64 connections"));
  report.add("starts, 64 connections: of the lower limit", "share",
             report.last(starts_at_64) / lower);
}

}  // namespace

std::vector<Scenario> limit_scenarios() {
  return {{"limit sqlite", run_sqlite}, {"limit echo", run_echo}, {"limit share", add_share}};
}

}  // namespace permit::bench
