#include "tests/support/cluster.h"

#include <algorithm>
#include <exception>
#include <stdexcept>

#include "orchestrator/core/invariants.h"
#include "orchestrator/protocol/ensure.h"
#include "orchestrator/protocol/json.h"
#include "orchestrator/service/file_check.h"
#include "orchestrator/store/packed_events.h"

namespace permit::test {

namespace {

const Time start_of_time{std::chrono::sys_days{std::chrono::year{2026} / 1 / 1}};

service::Options options() {
  service::Options options;
  options.seed = 1;
  options.token_secret = "secret";
  options.check_every_batch = true;
  return options;
}

}  // namespace

Cluster::Cluster() : clock_(start_of_time) { open(); }

Cluster::~Cluster() noexcept(false) {
  if (std::uncaught_exceptions() == 0) check();
  close();
}

void Cluster::open() {
  store::Database::Options database;
  database.path = "/permit.db";
  database.vfs = vfs_.name();
  store_ = std::make_unique<store::Store>(database);
  service_ = std::make_unique<service::Service>(*store_, clock_, options());
  settle();
}

void Cluster::close() {
  service_.reset();
  store_.reset();
}

void Cluster::crash(Duration down) {
  learn_names();
  vfs_.crash([](std::uint32_t) { return 0U; }, CrashMode::drop_all);
  reopen(down);
}

void Cluster::restart(Duration down) {
  learn_names();
  reopen(down);
}

void Cluster::reopen(Duration down) {
  close();
  clock_.set(clock_.now() + down);
  open();
}

void Cluster::settle() {
  constexpr int batches_max = 10'000;
  for (int i = 0; service_->run_batch(); ++i) {
    if (i == batches_max) throw std::runtime_error("the server does not come to rest");
  }
}

void Cluster::step_to(Time goal) {
  clock_.set(std::min(goal, std::max(service_->next_due(), clock_.now())));
  settle();
}

// --- Names ---

void Cluster::learn_names() {
  store::Statement runs{store_->database(),
                        "SELECT number, workflow_id, run_id FROM runs WHERE number > ? "
                        "ORDER BY number"};
  for (auto row = runs.bind(last_run_); row.step();) {
    last_run_ = row.i64(0);
    const std::string id(row.text(1));
    const std::string run_id(row.text(2));
    const std::string name = id + "#" + std::to_string(++runs_of_id_[id]);
    names_[run_id] = name;
    run_ids_[name] = run_id;
  }
}

std::string Cluster::name(const RunId& run_id) {
  learn_names();
  const auto found = names_.find(run_id.value);
  return found == names_.end() ? "unknown run" : found->second;
}

std::string Cluster::name(const WorkflowExecution& execution) {
  return execution.run_id.empty() ? execution.workflow_id.value : name(execution.run_id);
}

RunId Cluster::run_id(const std::string& name) {
  learn_names();
  const auto found = run_ids_.find(name);
  if (found == run_ids_.end()) throw std::runtime_error("there is no run " + name);
  return RunId(found->second);
}

std::string Cluster::with_names(std::string text) {
  learn_names();
  for (const auto& [run_id, name] : names_) {
    for (auto at = text.find(run_id); at != std::string::npos; at = text.find(run_id)) {
      text.replace(at, run_id.size(), name);
    }
  }
  return text;
}

std::string Cluster::relative(Time time) const {
  if (time == never) return "never";
  const auto ms = (time - start_of_time).count() / 1000;
  char text[32];
  std::snprintf(text, sizeof text, "%02lld:%02lld:%02lld.%03lld",
                static_cast<long long>(ms / 3'600'000), static_cast<long long>(ms / 60'000 % 60),
                static_cast<long long>(ms / 1000 % 60), static_cast<long long>(ms % 1000));
  return text;
}

// --- What the database holds ---

std::vector<Cluster::Run> Cluster::runs() {
  store::Statement numbers{store_->database(), "SELECT number, run_id FROM runs ORDER BY number"};
  std::vector<Run> runs;
  for (auto row = numbers.bind(); row.step();) {
    runs.push_back({RunNumber{row.i64(0)}, name(RunId(row.text(1)))});
  }
  return runs;
}

std::vector<Event> Cluster::history(RunNumber run) {
  std::vector<Event> history;
  for (const store::HistoryBatch& batch : store_->history(run)) {
    for (Event& event : read_json<std::vector<Event>>("[" + batch.events + "]")) {
      history.push_back(std::move(event));
    }
  }
  return history;
}

std::vector<Cluster::Commit> Cluster::new_commits() {
  store::Statement batches{store_->database(),
                           "SELECT h.commit_seq, r.run_id, h.events FROM history h "
                           "JOIN runs r ON r.number = h.run WHERE h.commit_seq > ? "
                           "ORDER BY h.commit_seq, h.run, h.first_event_id"};
  std::vector<Commit> commits;
  for (auto row = batches.bind(last_commit_); row.step();) {
    if (commits.empty() || commits.back().seq != row.i64(0)) commits.push_back({row.i64(0), {}});
    const std::string run = name(RunId(row.text(1)));
    const std::string text = store::unpack_events(row.blob(2)).value();
    const auto added = store::split_batches(1, text);
    for (const store::HistoryBatch& batch : added.value()) {
      for (Event& event : read_json<std::vector<Event>>("[" + batch.events + "]")) {
        commits.back().events.emplace_back(run, std::move(event));
      }
    }
  }
  last_commit_ = store_->counters().commit_seq;
  return commits;
}

// --- Checks ---

void Cluster::check() {
  service_->check_everything();
  for (const Run& run : runs()) core::check_history(history(run.number));
  check_ledger();
  check_file();
}

// What `permit server check` would say of it.
void Cluster::check_file() {
  store::Database::Options database;
  database.path = "/permit.db";
  database.vfs = vfs_.name();
  const auto report = service::check_file(database, [](const auto&, auto, auto) {});
  for (const store::Fault& fault : report.faults) {
    throw InvariantViolated(fault.table + ", " + fault.row + ": " + fault.what);
  }
  ENSURE(report.fault_count == 0);
}

// Every grant ended in exactly one way or is still held: by the counts, and by the rows.
void Cluster::check_ledger() {
  store::Statement counts{store_->database(),
                          "SELECT coalesce(sum(holds) FILTER (WHERE outcome = 0), 0), "
                          "coalesce(sum(holds) FILTER (WHERE outcome <> 0), 0) FROM hold_counts"};
  store::Statement open{store_->database(), "SELECT count(*) FROM holds WHERE outcome IS NULL"};
  auto count = counts.bind();
  ENSURE(count.step());
  auto held = open.bind();
  ENSURE(held.step());
  ENSURE(count.i64(0) == count.i64(1) + held.i64(0));
  ENSURE(static_cast<std::size_t>(held.i64(0)) == store_->open_permits().size());
}

}  // namespace permit::test
