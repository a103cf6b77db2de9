// The server without its sockets, on a disk in memory and a clock that stands still: one thread,
// everything happens when it is asked for. Runs have names by order of creation ("w#2"), times are
// relative to the start. When it goes, it checks everything there is to check.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "orchestrator/service/service.h"
#include "orchestrator/store/store.h"
#include "tests/support/crash_vfs.h"

namespace permit::test {

class Cluster {
 public:
  Cluster();
  ~Cluster() noexcept(false);
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  service::Service& service() { return *service_; }
  store::Store& store() { return *store_; }
  Time now() { return clock_.now(); }

  // Submits a call and runs batches until nothing is left to do. Empty if the answer is not there
  // yet; `late` is then called with it, whenever it comes.
  template <class T, class Submit>
  std::optional<service::Result<T>> call(const Submit& submit,
                                         std::function<void(service::Result<T>)> late = {});

  // Runs batches until nothing is left to do at this instant.
  void settle();
  // Moves time to the next due instant, or to `goal` if nothing is due before; settles.
  void step_to(Time goal);

  // Power loss: what was not committed is gone. After `down` the server starts again.
  void crash(Duration down);
  // A clean stop and a start.
  void restart(Duration down);

  // Every write fails from now on, until there is space again.
  void fill_disk() { vfs_.disk_limit(vfs_.disk_size()); }
  void free_disk() { vfs_.disk_limit(std::nullopt); }

  Disk disk() const { return vfs_.copy(); }

  // --- Names ---
  std::string name(const RunId& run_id);
  std::string name(const WorkflowExecution& execution);
  RunId run_id(const std::string& name);  // of "w#2"
  // `text` with every run id replaced by the run's name.
  std::string with_names(std::string text);
  std::string relative(Time time) const;

  // --- What the database holds ---
  struct Run {
    RunNumber number;
    std::string name;
  };
  std::vector<Run> runs();  // by creation; retention may have deleted some of all
  std::vector<Event> history(RunNumber run);
  // What was committed since the last call, in order of commit, then of run.
  struct Commit {
    std::int64_t seq = 0;
    std::vector<std::pair<std::string, Event>> events;
  };
  std::vector<Commit> new_commits();

  // Memory against the database, every history against its rules, the ledger's sums.
  void check();

 private:
  void open();
  void close();
  void reopen(Duration down);
  void learn_names();
  void check_ledger();
  void check_file();

  CrashVfs vfs_;
  service::ManualClock clock_;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<service::Service> service_;
  std::int64_t last_run_ = 0;
  std::int64_t last_commit_ = 0;
  std::map<std::string, int> runs_of_id_;
  std::map<std::string, std::string> names_;    // by run id
  std::map<std::string, std::string> run_ids_;  // by name
};

template <class T, class Submit>
std::optional<service::Result<T>> Cluster::call(const Submit& submit,
                                                std::function<void(service::Result<T>)> late) {
  struct Answer {
    bool is_late = false;
    std::optional<service::Result<T>> result;
  };
  auto answer = std::make_shared<Answer>();
  submit([answer, late = std::move(late)](service::Result<T> result) {
    if (answer->is_late) {
      if (late) late(std::move(result));
    } else {
      answer->result = std::move(result);
    }
  });
  settle();
  answer->is_late = true;
  return std::move(answer->result);
}

}  // namespace permit::test
