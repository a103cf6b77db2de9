// What a store answers does not depend on whether its commits are in the tables yet: one with a
// redo log, which settles now and then, beside one in memory, whose tables have everything at once.
#include <doctest/doctest.h>

#include <algorithm>
#include <deque>
#include <random>
#include <sstream>

#include "orchestrator/store/store.h"
#include "tests/store/rows.h"
#include "tests/support/crash_vfs.h"

namespace permit::store {

namespace {

using test::CrashVfs;
using test_rows::noon;
using namespace std::chrono_literals;

// --- What is read, as text ---

std::ostream& operator<<(std::ostream& out, Time time) {
  return out << time.time_since_epoch().count();
}

void describe(std::ostream& out, const RunRow& row) {
  out << row.number.value << ' ' << row.namespace_ << ' ' << row.workflow_id.value << ' '
      << row.run_id.value << ' ' << static_cast<int>(row.status) << ' ' << row.start_time << ' '
      << row.close_time << ' ' << row.next_event_id << ' ' << row.history_bytes << ' '
      << row.next_due << ' ' << row.offered_on.value_or("-") << ' ' << row.volatile_json << ' '
      << (row.parent ? row.parent->workflow_id.value : "-") << ' '
      << (row.permit ? row.permit->slot.value : "-") << ' ' << static_cast<int>(row.outcome) << ' '
      << row.cause << '\n';
}

// However its events lie in batches.
void describe(std::ostream& out, const std::vector<HistoryBatch>& batches) {
  std::string joined;
  for (const HistoryBatch& batch : batches) joined += (joined.empty() ? "" : ",") + batch.events;
  out << joined << '\n';
}

std::string everything_in(Store& store, std::int64_t runs, std::int64_t ids) {
  std::ostringstream out;
  for (std::int64_t i = 1; i <= runs; ++i) {
    const RunNumber number{i};
    const auto row = store.run(number);
    if (!row) continue;
    describe(out, *row);
    describe(out, store.history(number));
    for (const ActivityRow& activity : store.activities(number)) {
      out << activity.scheduled_event_id << activity.offered_on.value_or("-")
          << activity.attempt_json << '\n';
    }
    const auto found = store.run_by_id(row->run_id);
    out << (found ? found->value : 0) << ' ' << store.late_release_of(Fence{i}) << '\n';
  }
  for (std::int64_t i = 0; i < ids; ++i) {
    const WorkflowId id("id" + std::to_string(i));
    const auto open = store.open_run("default", id);
    const auto latest = store.latest_run("default", id);
    out << (open ? open->value : 0) << ' ' << (latest ? latest->value : 0) << ':';
    for (const RunNumber run : store.recent_runs("default", id, 3)) out << ' ' << run.value;
    out << '\n';
  }
  for (const int count : {2, 1'000}) {
    for (const RunNumber run : store.due(noon + 50s, count)) out << run.value << ' ';
    out << store.next_due() << '\n';
  }
  for (const auto& tasks : {store.offered_workflow_tasks(), store.offered_activities()}) {
    for (const OfferedTask& task : tasks) {
      out << task.run.value << ' ' << task.scheduled_event_id << ' ' << task.queue << '\n';
    }
  }
  for (const auto& [name, settings] : store.pools()) out << name.value << settings << '\n';
  for (const WaiterRow& row : store.waiters()) out << row.id << row.waiter_json << '\n';
  for (const ApiKeyRow& key : store.api_keys()) out << key.id << key.name << key.expires_at << '\n';
  for (const RunNumber run : store.open_permits()) out << run.value << ' ';
  std::vector<std::int64_t> permits;
  for (const auto& permit : store.open_permits_by_pool()) permits.push_back(permit.run.value);
  std::sort(permits.begin(), permits.end());
  for (const std::int64_t run : permits) out << run << ' ';
  out << store.open_run_count() << ' ' << store.due_run_count() << '\n';
  for (const auto& [pool, counts] : store.hold_counts()) {
    for (const OutcomeCount& count : counts) {
      out << pool.value << static_cast<int>(count.outcome) << count.cause << count.holds.value
          << '\n';
    }
    out << store.hold_counts(pool).size() << '\n';
  }
  return out.str();
}

// --- What is written: the same to two stores ---

class Pair {
 public:
  explicit Pair(std::uint32_t seed) : dice_(seed) {
    Opening opening;
    opening.logs = true;
    opening.settle_bytes = std::int64_t{1} << (dice_() % 14);
    opening_ = opening;
    open();
  }

  void commit() {
    const std::string before = everything();
    for (Store* store : both()) store->begin();
    std::vector<Model> model = model_;
    for (auto changes = 1 + dice_() % 5; changes > 0; --changes) change();
    compare();  // with the batch open
    if (dice_() % 8 == 0) {
      for (Store* store : both()) store->roll_back();
      model_ = std::move(model);
      REQUIRE(everything() == before);
      return;
    }
    for (Store* store : both()) store->commit(noon + std::chrono::seconds(++commits_));
    compare();
    if (dice_() % 10 == 0) logged_->settle();
    if (dice_() % 15 == 0) restart();
    compare();
  }

 private:
  struct Model {
    RunRow row;
    std::int64_t events = 0;
    std::vector<std::int64_t> activities = {};
    bool has_hold = false;
    bool is_gone = false;
  };

  static Database::Options on(const CrashVfs& vfs) { return test_rows::on(vfs); }
  std::vector<Store*> both() { return {logged_.get(), &plain_}; }
  int pick(int below) { return static_cast<int>(dice_() % static_cast<unsigned>(below)); }

  void open() { logged_ = std::make_unique<Store>(on(vfs_), opening_); }

  // Or the power fails, and nothing that was not synced is left.
  void restart() {
    if (dice_() % 2 == 0) {
      logged_.reset();
      CHECK(vfs_.copy().find("/permit.db-redo1a") == std::nullopt);
    } else {
      vfs_.crash([](std::uint32_t) { return 0U; }, test::CrashMode::drop_all);
    }
    open();
    CHECK(logged_->counters().commit_seq == plain_.counters().commit_seq);
  }

  std::string everything() {
    const auto runs = static_cast<std::int64_t>(model_.size());
    return everything_in(*logged_, runs, ids);
  }
  void compare() {
    const auto runs = static_cast<std::int64_t>(model_.size());
    REQUIRE(everything_in(*logged_, runs, ids) == everything_in(plain_, runs, ids));
  }

  template <class Write>
  void write(const Write& write) {
    for (Store* store : both()) write(*store);
  }

  void change() {
    switch (pick(14)) {
      case 0:
      case 1:
      case 2:
        return start();
      case 3:
      case 4:
      case 5:
        return update();
      case 6:
      case 7:
        return close();
      case 8:
        return note_activity();
      case 9:
        return change_pools();
      case 10:
        return change_waiters();
      case 11:
        return change_keys();
      case 12:
        return forget();
      default:
        return note_late_release();
    }
  }

  // Not of the slot that is trimmed, in the tables only once it is settled.
  void note_late_release() {
    for (const Model& model : model_) {
      if (!model.has_hold || model.row.permit->pool == trimmed || pick(4) > 0) continue;
      write([&](Store& store) { store.note_late_release(model.row.permit->fence, noon + 1s); });
    }
  }

  Model* some_open() {
    std::vector<Model*> open;
    for (Model& model : model_) {
      if (model.row.is_open()) open.push_back(&model);
    }
    return open.empty() ? nullptr : open[dice_() % open.size()];
  }

  void start() {
    const std::string id = "id" + std::to_string(pick(ids));
    const bool is_taken = std::any_of(model_.begin(), model_.end(), [&](const Model& model) {
      return model.row.is_open() && model.row.workflow_id.value.ends_with(id);
    });
    if (is_taken) return;
    Model made;
    RunRow& row = made.row;
    row.namespace_ = "default";
    row.run_id = RunId("run-" + std::to_string(commits_) + "-" + std::to_string(dice_()));
    row.start_time = noon + std::chrono::seconds(commits_);
    row.volatile_json = "{}";
    if (pick(3) == 0) row.parent = WorkflowExecution{WorkflowId("parent"), RunId("p")};
    if (pick(2) == 0) row.offered_on = "queue";
    if (pick(2) == 0) row.next_due = noon + std::chrono::seconds(pick(100));
    row.workflow_id = WorkflowId(id);
    write([&](Store& store) { row.number = store.next_run_number(); });
    made.has_hold = pick(2) == 0;
    if (made.has_hold) {
      row.workflow_id = WorkflowId("permit:pool:" + id);
      row.permit = PermitGrant{PoolName("pool" + std::to_string(pick(3))), SlotName(id),
                               Fence{row.number.value}, noon + 9s};
      HoldRow hold;
      hold.grant = *row.permit;
      hold.run = row.number;
      hold.run_id = row.run_id;
      hold.granted_at = row.start_time;
      write([&](Store& store) { store.open_hold(hold); });
    }
    model_.push_back(made);
    append(model_.back());
    write([&](Store& store) { store.insert_run(model_.back().row); });
  }

  void append(Model& model) {
    std::string events;
    const std::int64_t first = model.events + 1;
    for (int i = 0; i <= pick(3); ++i) {
      events += (i == 0 ? "" : ",") + std::to_string(++model.events);
    }
    model.row.next_event_id = model.events + 1;
    model.row.history_bytes += std::ssize(events);
    write([&](Store& store) { store.append_history(model.row.number, first, events); });
  }

  void update() {
    Model* model = some_open();
    if (model == nullptr) return;
    append(*model);
    model->row.volatile_json = std::to_string(dice_());
    model->row.next_due = pick(2) == 0 ? never : noon + std::chrono::seconds(pick(100));
    if (pick(2) == 0) model->row.offered_on.reset();
    write([&](Store& store) { store.update_run(model->row); });
  }

  void close() {
    Model* model = some_open();
    if (model == nullptr) return;
    RunRow& row = model->row;
    append(*model);
    row.status = WorkflowExecutionStatus::completed;
    row.close_time = noon + std::chrono::seconds(commits_);
    row.next_due = never;
    row.offered_on.reset();
    if (model->has_hold) {
      row.outcome = Outcome::released;
      row.cause = pick(2) == 0 ? "" : "why";
      write([&](Store& store) {
        store.close_hold(*row.permit, row.close_time, row.outcome, row.cause);
      });
    }
    write([&](Store& store) {
      if (!model->activities.empty()) store.delete_activities(row.number);
      store.update_run(row);
    });
    model->activities.clear();
  }

  void note_activity() {
    Model* model = some_open();
    if (model == nullptr) return;
    const RunNumber run = model->row.number;
    const std::int64_t id = 1 + pick(3);
    const auto known = std::find(model->activities.begin(), model->activities.end(), id);
    if (known != model->activities.end() && pick(2) == 0) {
      model->activities.erase(known);
      write([&](Store& store) { store.delete_activity(run, id); });
      return;
    }
    if (known == model->activities.end()) model->activities.push_back(id);
    ActivityRow row{id, std::nullopt, std::to_string(dice_())};
    if (pick(2) == 0) row.offered_on = "queue";
    write([&](Store& store) { store.put_activity(run, row); });
  }

  void change_pools() {
    const PoolName pool("pool" + std::to_string(pick(4)));
    if (pick(3) == 0) return write([&](Store& store) { store.delete_pool(pool); });
    const std::string settings = std::to_string(dice_());
    write([&](Store& store) { store.put_pool(pool, settings); });
  }

  void change_waiters() {
    const std::int64_t last = plain_.counters().arrival;
    if (last > 0 && pick(2) == 0) {
      const std::int64_t id = 1 + pick(static_cast<int>(last));
      return write([&](Store& store) { store.delete_waiter(id); });
    }
    const WaiterRow row{last + 1, PoolName("pool1"), std::to_string(dice_())};
    write([&](Store& store) {
      store.set_arrival(last + 1);
      store.put_waiter(row);
    });
  }

  void change_keys() {
    ApiKeyRow row;
    row.id = 1 + pick(4);
    if (pick(3) == 0) return write([&](Store& store) { store.remove_api_key(row.id); });
    row.name = "key" + std::to_string(dice_());
    row.digest = row.name;
    row.role = Role::read;
    row.created_at = noon;
    if (pick(2) == 0) row.expires_at = noon + 5s;
    write([&](Store& store) { store.put_api_key(row); });
  }

  // Which runs go depends on what is settled, so both are told of the same ones.
  void forget() {
    if (!logged_->is_settled()) return;
    std::vector<std::vector<RunNumber>> gone;
    write([&](Store& store) {
      gone.push_back(store.delete_closed_before(noon + std::chrono::seconds(commits_ / 2), 2));
      store.trim_holds(trimmed, SlotName("id1"), 1);
    });
    CHECK(gone[0] == gone[1]);
  }

  static constexpr int ids = 6;
  const PoolName trimmed{"pool1"};
  std::mt19937 dice_;
  CrashVfs vfs_;
  Opening opening_;
  std::unique_ptr<Store> logged_;
  Store plain_{test_rows::in_memory()};
  std::vector<Model> model_;
  std::int64_t commits_ = 0;
};

}  // namespace

TEST_CASE("what is only in the redo log is read like what is in the tables") {
  for (std::uint32_t seed = 1; seed <= 25; ++seed) {
    CAPTURE(seed);
    Pair pair(seed);
    for (int i = 0; i < 60; ++i) pair.commit();
  }
}

}  // namespace permit::store
