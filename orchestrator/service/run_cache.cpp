#include "orchestrator/service/run_cache.h"

#include "orchestrator/protocol/ensure.h"
#include "orchestrator/protocol/json_codec.h"

namespace permit {
PERMIT_JSON(core::Volatile)
PERMIT_JSON(core::ActivityAttempt)
}  // namespace permit

namespace permit::service {

namespace {

constexpr std::size_t closed_runs_max = 256;

}  // namespace

core::RunState* RunCache::find(RunNumber number) {
  const auto found = entries_.find(number.value);
  if (found != entries_.end()) {
    std::list<std::int64_t>& list = list_of(found->second);
    list.splice(list.begin(), list, found->second.used);
    return found->second.state.get();
  }
  auto state = load_run(store_, number);
  return state ? &insert(std::move(state)) : nullptr;
}

core::RunState& RunCache::insert(std::unique_ptr<core::RunState> state) {
  core::RunState& inserted = *state;
  const std::int64_t number = state->number.value;
  by_use_.push_front(number);
  const auto [entry, is_new] =
      entries_.emplace(number, Entry{std::move(state), 0, false, by_use_.begin()});
  ENSURE(is_new);
  measure(inserted.number);
  return inserted;
}

void RunCache::measure(RunNumber number) {
  Entry& entry = entries_.at(number.value);
  bytes_ -= entry.bytes;
  entry.bytes = core::footprint(*entry.state);
  bytes_ += entry.bytes;
  if (!entry.is_closed && !entry.state->is_open()) {
    closed_by_use_.splice(closed_by_use_.begin(), by_use_, entry.used);
    entry.is_closed = true;
  }
}

void RunCache::forget(RunNumber number) {
  const auto found = entries_.find(number.value);
  if (found != entries_.end()) forget(found);
}

void RunCache::forget(Entries::iterator entry) {
  bytes_ -= entry->second.bytes;
  list_of(entry->second).erase(entry->second.used);
  entries_.erase(entry);
}

void RunCache::forget_all() {
  entries_.clear();
  by_use_.clear();
  closed_by_use_.clear();
  bytes_ = 0;
}

void RunCache::trim() {
  while (closed_by_use_.size() > closed_runs_max ||
         (bytes_ > bytes_max_ && !closed_by_use_.empty())) {
    forget(RunNumber{closed_by_use_.back()});
  }
  while (bytes_ > bytes_max_ && !by_use_.empty()) forget(RunNumber{by_use_.back()});
}

std::unique_ptr<core::RunState> load_run(store::Store& store, RunNumber number) {
  const auto row = store.run(number);
  if (!row) return nullptr;
  auto state = std::make_unique<core::RunState>();
  state->number = row->number;
  state->namespace_ = row->namespace_;
  state->workflow_id = row->workflow_id;
  state->run_id = row->run_id;
  for (const store::HistoryBatch& batch : store.history(number)) {
    read_events(batch.events, [&](const Event& event) { core::apply(*state, event); });
  }
  ENSURE(state->next_event_id == row->next_event_id);
  ENSURE(state->status == row->status);
  state->history_bytes = row->history_bytes;
  state->volatile_state = read_json<core::Volatile>(row->volatile_json);
  state->wants_workflow_task = false;  // between requests it never does without having one
  for (const store::ActivityRow& activity : store.activities(number)) {
    const auto pending = state->activities.find(activity.scheduled_event_id);
    ENSURE(pending != state->activities.end());
    pending->second.attempt = read_json<core::ActivityAttempt>(activity.attempt_json);
  }
  for (const Event& event : state->volatile_state.buffered) core::note_buffered(*state, event);
  return state;
}

store::RunRow row_of(const core::RunState& state) {
  store::RunRow row;
  row.number = state.number;
  row.namespace_ = state.namespace_;
  row.workflow_id = state.workflow_id;
  row.run_id = state.run_id;
  row.status = state.status;
  row.workflow_type = state.started.workflow_type.name;
  row.task_queue = state.started.task_queue.name;
  row.parent = state.started.parent_workflow_execution;
  row.start_time = state.start_time;
  row.close_time = state.close_time;
  row.next_event_id = state.next_event_id;
  row.history_bytes = state.history_bytes;
  row.next_due = core::next_due(state);
  if (state.is_open() && state.has_task() && !state.task_started()) {
    row.offered_on = core::task_queue_of(state);
  }
  write_json(state.volatile_state, row.volatile_json);
  if (state.is_permit()) {
    row.permit = state.started.permit;
    row.permit->deadline = state.volatile_state.permit_deadline;
  }
  if (state.hold_end) {
    row.outcome = state.hold_end->outcome;
    row.cause = state.hold_end->cause;
  }
  return row;
}

}  // namespace permit::service
