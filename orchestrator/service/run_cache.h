// The run states in memory: a cache of the database, bounded by bytes. Of closed runs, which hardly
// anybody asks for again, only the last ones stay, so that the memory of one run is still at hand
// for the next. Undo is forgetting: a state that a failed request has spoiled is dropped, and the
// next use folds it from disk again.
// References stay good until forget(), forget_all() or trim().
#pragma once

#include <list>
#include <memory>
#include <unordered_map>

#include "orchestrator/core/run_state.h"
#include "orchestrator/store/store.h"

namespace permit::service {

class RunCache {
 public:
  RunCache(store::Store& store, std::size_t bytes_max) : store_(store), bytes_max_(bytes_max) {}

  // The run's state, loaded if need be; nullptr if there is no such run.
  core::RunState* find(RunNumber number);
  core::RunState& insert(std::unique_ptr<core::RunState> state);
  // Takes note of how large the state is now, and whether it is closed.
  void measure(RunNumber number);

  void forget(RunNumber number);
  void forget_all();
  // Drops what was not used for longest, down to the bound. Between requests only.
  void trim();

  template <class Visit>
  void for_each(Visit visit) const {
    for (const auto& [number, entry] : entries_) visit(*entry.state);
  }

  std::size_t bytes() const { return bytes_; }
  std::size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    std::unique_ptr<core::RunState> state;
    std::size_t bytes = 0;
    bool is_closed = false;
    std::list<std::int64_t>::iterator used;
  };
  using Entries = std::unordered_map<std::int64_t, Entry>;

  std::list<std::int64_t>& list_of(const Entry& entry) {
    return entry.is_closed ? closed_by_use_ : by_use_;
  }
  void forget(Entries::iterator entry);

  store::Store& store_;
  const std::size_t bytes_max_;
  std::size_t bytes_ = 0;
  Entries entries_;
  std::list<std::int64_t> by_use_;         // of the open ones; most recent first
  std::list<std::int64_t> closed_by_use_;  // likewise
};

// Folds a run from its stored rows; nullptr if there is none.
std::unique_ptr<core::RunState> load_run(store::Store& store, RunNumber number);

// The row that repeats a state for lists, uniqueness and timers.
store::RunRow row_of(const core::RunState& state);

}  // namespace permit::service
