#include "orchestrator/service/file_check.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>

#include "orchestrator/core/invariants.h"
#include "orchestrator/protocol/ensure.h"
#include "orchestrator/protocol/json.h"
#include "orchestrator/service/pools.h"
#include "orchestrator/service/run_cache.h"

namespace permit::service {

namespace {

using store::Fault;
using store::RunRow;

constexpr std::size_t parents_bytes_max = std::size_t{32} * 1024 * 1024;
constexpr std::int64_t runs_a_report = 1000;

// What the row says and what its events come to, column by column.
std::string difference(const RunRow& row, const RunRow& folded) {
  std::string names;
  const auto compare = [&](const char* name, bool same) {
    if (!same) names += (names.empty() ? "" : ", ") + std::string(name);
  };
  compare("namespace", row.namespace_ == folded.namespace_);
  compare("workflow_id", row.workflow_id == folded.workflow_id);
  compare("run_id", row.run_id == folded.run_id);
  compare("status", row.status == folded.status);
  compare("workflow_type", row.workflow_type == folded.workflow_type);
  compare("task_queue", row.task_queue == folded.task_queue);
  compare("parent", row.parent == folded.parent);
  compare("start_time", row.start_time == folded.start_time);
  compare("close_time", row.close_time == folded.close_time);
  compare("next_event_id", row.next_event_id == folded.next_event_id);
  compare("next_due", row.next_due == folded.next_due);
  compare("offered_on", row.offered_on == folded.offered_on);
  compare("volatile", row.volatile_json == folded.volatile_json);
  compare("outcome", row.outcome == folded.outcome);
  compare("cause", row.cause == folded.cause);
  compare("permit", row.permit.has_value() == folded.permit.has_value());
  if (row.permit && folded.permit) {
    compare("pool", row.permit->pool == folded.permit->pool);
    compare("slot", row.permit->slot == folded.permit->slot);
    compare("fence", row.permit->fence == folded.permit->fence);
    compare("deadline", row.permit->deadline == folded.permit->deadline);
  }
  return names;
}

class Checker {
 public:
  Checker(const store::Database::Options& options, const CheckProgress& progress)
      : options_(options), progress_(progress) {
    options_.mode = store::Database::Mode::read_only;
    open();
  }

  FileReport check(bool looks_at_mark) {
    if (looks_at_mark) check_mark();
    section("the file", [this] { check_structure(); });
    for (int i = 0; i < store::row_check_count; ++i) {
      section("rows", [this, i] {
        store::check_rows(store_->database(), i, [this](Fault fault) { note(std::move(fault)); });
      });
    }
    section("pools", [this] { check_pools(); });
    section("runs", [this] { check_runs(); });
    return std::move(report_);
  }

 private:
  // One snapshot from here on, whatever a server commits meanwhile.
  void open() {
    pools_.reset();
    cache_.reset();
    snapshot_.reset();
    store_.reset();
    store_ = std::make_unique<store::Store>(options_);
    snapshot_.emplace(store_->database());
    cache_.emplace(*store_, parents_bytes_max);
    pools_.emplace(*store_, 1);
    const store::Counters& counters = store_->counters();
    report_.schema = store_->database().user_version();
    report_.commit = counters.commit_seq;
    report_.fence = counters.fence;
    report_.fence_epoch = store_->fence_epoch();
  }

  void note(Fault fault) {
    ++report_.fault_count;
    if (report_.faults.size() < faults_kept) report_.faults.push_back(std::move(fault));
  }

  // What cannot be read ends its section, and the connection with it; the others go on.
  template <class Look>
  void section(const char* what, const Look& look) {
    progress_(what, 0, 0);
    try {
      look();
    } catch (const store::StoreFailed& failed) {
      note({what, "", failed.what()});
      const std::vector<std::int64_t> pages = store_->database().damaged_pages();
      for (const std::int64_t page : pages) note_page(page);
      reopen();
    } catch (const std::exception& error) {
      note({what, "", error.what()});
    }
  }

  void note_page(std::int64_t page) {
    if (!pages_noted_.insert(page).second) return;
    note({"the file", "page " + std::to_string(page), "it is not as it was written"});
  }

  void reopen() {
    try {
      open();
    } catch (const std::exception& error) {
      note({"the file", "", error.what()});
    }
  }

  // Of a database that is in use, the mark may be ahead of a snapshot taken before.
  void check_mark() {
    const auto file = std::filesystem::weakly_canonical(options_.path);  // the mark is beside that
    const auto acknowledged = store::CommitMark::read(file.string() + ".commit");
    constexpr int looks_max = 10;  // a server that settles meanwhile takes its log from under us
    for (int i = 0; i < looks_max; ++i) {
      if (!acknowledged || *acknowledged <= store_->last_logged()) return;
      reopen();
    }
    note({"server", "commit_seq",
          "the file and its redo log end with commit " + std::to_string(store_->last_logged()) +
              ", but commit " + std::to_string(*acknowledged) + " was acknowledged"});
  }

  void check_structure() {
    const std::string report = store_->database().integrity_check();
    if (report == "ok") return;
    for (std::size_t at = 0; at < report.size();) {
      const std::size_t end = std::min(report.find('\n', at), report.size());
      note({"the file", "", report.substr(at, end - at)});
      at = end + 1;
    }
  }

  // --- Runs ---

  void check_runs() {
    const std::int64_t count = store::count_runs(store_->database());
    store::for_each_run(store_->database(), [&](RunNumber number) {
      check_run(number);
      if (++report_.runs % runs_a_report == 0) progress_("runs", report_.runs, count);
    });
  }

  void check_run(RunNumber number) {
    const std::string name = "run " + std::to_string(number.value);
    try {
      const auto row = store_->run(number);
      ENSURE(row.has_value());
      check_history(*row, name);
      const core::RunState* state = cache_->find(number);
      ENSURE(state != nullptr);
      core::check_run(*state);
      std::string names = difference(*row, row_of(*state));
      if (state->started.workflow_id != row->workflow_id) names += " workflow_id";
      if (state->started.original_execution_run_id != row->run_id) names += " run_id";
      if (!names.empty()) note({"runs", name, "its row is not what its events come to: " + names});
      if (state->is_open()) check_relatives(*state, name);
      cache_->trim();
    } catch (const store::StoreFailed&) {
      throw;
    } catch (const std::exception& error) {
      note({"runs", name, error.what()});
    }
  }

  // Ids 1 to n, each answer behind its question, and the bytes that the row says.
  void check_history(const RunRow& row, const std::string& name) {
    std::vector<Event> events;
    std::int64_t bytes = 0;
    for (const store::HistoryBatch& batch : store_->history(row.number)) {
      bytes += static_cast<std::int64_t>(batch.events.size());
      const std::int64_t first = static_cast<std::int64_t>(events.size()) + 1;
      if (batch.first_event_id != first) {
        note({"history", name + ", event " + std::to_string(batch.first_event_id),
              "events " + std::to_string(first) + " and on are missing"});
      }
      read_events(batch.events, [&](Event&& event) { events.push_back(std::move(event)); });
    }
    report_.events += static_cast<std::int64_t>(events.size());
    if (bytes != row.history_bytes) {
      note({"history", name,
            "it has " + std::to_string(bytes) + " bytes, its run's row says " +
                std::to_string(row.history_bytes)});
    }
    core::check_history(events);
  }

  // The children that it knows are its own; whose child it is knows it.
  void check_relatives(const core::RunState& state, const std::string& name) {
    if (store_->activities(state.number).size() != state.activities.size()) {
      note({"activities", name, "a pending activity has no row"});
    }
    for (const auto& [id, child] : state.children) {
      if (!child.waits_for.empty() && !waiting_.contains({state.number.value, id})) {
        note({"waiters", name,
              "its event " + std::to_string(id) + " waits for pool " + child.waits_for.value +
                  ", and is in no line"});
      }
      for (const core::ChildState::Run& run : child.runs) {
        const auto number = store_->run_by_id(run.execution.run_id);
        const auto row = number ? store_->run(*number) : std::nullopt;
        if (row && row->parent == state.execution()) continue;
        note({"runs", name,
              "its child " + run.execution.workflow_id.value + " of event " + std::to_string(id) +
                  (row ? " has another parent" : " is missing")});
      }
    }
    const auto& parent = state.started.parent_workflow_execution;
    if (!parent) return;
    const auto number = store_->run_by_id(parent->run_id);
    const core::RunState* found = number ? cache_->find(*number) : nullptr;
    if (found == nullptr || !found->is_open()) {
      if (state.is_permit()) note({"runs", name, "a permit is held, but its holder is not open"});
      return;
    }
    for (const auto& [id, child] : found->children) {
      for (const core::ChildState::Run& run : child.runs) {
        if (run.execution.run_id == state.first_run_id()) return;
      }
    }
    note({"runs", name, "its parent does not know it"});
  }

  // --- Pools and lines ---

  void check_pools() {
    for (const auto& [name, pool] : pools_->all()) {
      report_.permits_held += static_cast<std::int64_t>(pool.holders.size());
      for (const auto& [key, waiter] : pool.line) {
        check_waiter(name, waiter.id, waiter.run);
        waiting_.insert({waiter.run, waiter.initiated_event_id});
      }
      for (const auto& [id, sleeper] : pool.sleepers) check_waiter(name, id, sleeper.run.value);
    }
  }

  void check_waiter(const PoolName& pool, std::int64_t id, std::int64_t run) {
    if (run == 0) return;  // a ticket
    const auto row = store_->run(RunNumber{run});
    if (row && row->status == WorkflowExecutionStatus::running) return;
    note({"waiters", "place " + std::to_string(id),
          "it waits for pool " + pool.value + ", and its run " + std::to_string(run) +
              " is not open"});
  }

  store::Database::Options options_;
  const CheckProgress& progress_;
  FileReport report_;
  std::unique_ptr<store::Store> store_;
  std::optional<store::Transaction> snapshot_;
  std::optional<RunCache> cache_;
  std::optional<Pools> pools_;
  std::set<std::int64_t> pages_noted_;
  std::set<std::pair<std::int64_t, std::int64_t>> waiting_;  // runs and what they asked with
};

}  // namespace

FileReport check_file(const store::Database::Options& options, const CheckProgress& progress,
                      bool looks_at_mark) {
  return Checker(options, progress).check(looks_at_mark);
}

}  // namespace permit::service
