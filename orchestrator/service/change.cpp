#include "orchestrator/service/change.h"

#include <algorithm>
#include <iterator>

#include "orchestrator/core/activity_transitions.h"
#include "orchestrator/core/client_transitions.h"
#include "orchestrator/core/worker_transitions.h"
#include "orchestrator/protocol/ensure.h"
#include "orchestrator/protocol/json.h"
#include "orchestrator/service/pools.h"

namespace permit::service {

Change::Change(Parts& parts, Time now) : parts_(parts), context_{now, &parts.ids} {}

Change::~Change() {
  if (written_) return;
  for (const RunNumber number : order_) parts_.cache.forget(number);
  for (auto& [queue, poller] : pollers_taken_) {
    parts_.matching.return_poller(queue, std::move(poller));
  }
  parts_.pools.forget();
}

// --- Looking up ---

core::RunState& Change::run(RunNumber number) {
  core::RunState* state = find(number);
  ENSURE(state != nullptr);
  return *state;
}

core::RunState* Change::open_run(const std::string& namespace_, const WorkflowId& id) {
  const auto own = started_.find({namespace_, id});
  if (own != started_.end()) {
    core::RunState& state = run(own->second);
    return state.is_open() ? &state : nullptr;
  }
  const auto number = parts_.store.open_run(namespace_, id);
  if (!number) return nullptr;
  core::RunState& state = run(*number);
  return state.is_open() ? &state : nullptr;  // or closed by this change
}

core::RunState* Change::latest_run(const std::string& namespace_, const WorkflowId& id) {
  const auto own = started_.find({namespace_, id});
  if (own != started_.end()) return &run(own->second);
  const auto number = parts_.store.latest_run(namespace_, id);
  return number ? &run(*number) : nullptr;
}

core::RunState* Change::run_by_id(const RunId& run_id) {
  for (const auto& [key, number] : started_) {
    core::RunState& state = run(number);
    if (state.run_id == run_id) return &state;
  }
  const auto number = parts_.store.run_by_id(run_id);
  return number ? &run(*number) : nullptr;
}

// --- Deciding ---

Change::Touched& Change::touched(RunNumber number) {
  const auto [entry, is_new] = touched_.try_emplace(number);
  if (is_new) {
    const core::RunState& state = run(number);
    order_.push_back(number);
    entry->second.was_open = state.is_open();
    entry->second.had_activities = !state.activities.empty();
    entry->second.was_due = core::next_due(state) != never;
  }
  return entry->second;
}

void Change::record(core::RunState& state, core::Decision decision) {
  Touched& touched = this->touched(state.number);
  if (touched.events.empty()) {
    touched.events = std::move(decision.events);
  } else {
    touched.events.reserve(touched.events.size() + decision.events.size());
    std::move(decision.events.begin(), decision.events.end(), std::back_inserter(touched.events));
  }
  for (core::Message& message : decision.messages) messages_.push_back(std::move(message));
  for (const std::int64_t id : decision.activities_offered)
    touched.activities_offered.push_back(id);
  for (const std::int64_t id : decision.activities_changed) touched.activities_changed.insert(id);
  std::move(decision.activities_silent.begin(), decision.activities_silent.end(),
            std::back_inserter(silent_));
  touched.task_offered = touched.task_offered || decision.workflow_task_offered;
}

core::RunState& Change::start_run(NewRun new_run) {
  auto fresh = std::make_unique<core::RunState>();
  fresh->number = parts_.store.next_run_number();
  fresh->namespace_ = new_run.namespace_;
  fresh->workflow_id = new_run.workflow_id;
  fresh->run_id = new_run.run_id.empty() ? parts_.ids.new_run_id(now()) : new_run.run_id;
  event::WorkflowExecutionStarted& started = new_run.started;
  started.workflow_id = fresh->workflow_id;
  started.original_execution_run_id = fresh->run_id;
  if (started.first_execution_run_id.empty()) started.first_execution_run_id = fresh->run_id;
  if (!started.root_workflow_execution) started.root_workflow_execution = fresh->execution();
  core::RunState& state = parts_.cache.insert(std::move(fresh));
  Touched& touched = this->touched(state.number);
  touched.is_new = true;
  touched.was_due = false;
  started_[{state.namespace_, state.workflow_id}] = state.number;
  record(state, core::start(state, std::move(started), context_, limits()));
  return state;
}

std::int64_t Change::next_arrival() {
  const std::int64_t arrival = parts_.store.counters().arrival + 1;
  parts_.store.set_arrival(arrival);
  return arrival;
}

Fence Change::next_fence() {
  const std::int64_t fence = parts_.store.counters().fence + 1;
  parts_.store.set_fence(fence);
  return Fence{fence};
}

void Change::claim_workflow_task(RunNumber run, std::string identity) {
  claims_[run] = std::move(identity);
}

// What a message leads to comes before the next one: a release has freed its slot before the
// command behind it asks for one.
void Change::deliver_messages() {
  std::vector<core::Message> waiting;  // the next one is the last
  for (;;) {
    if (waiting.empty()) {
      waiting.swap(messages_);
      std::reverse(waiting.begin(), waiting.end());
    } else {
      std::move(messages_.rbegin(), messages_.rend(), std::back_inserter(waiting));
      messages_.clear();
    }
    if (waiting.empty()) return;
    core::Message message = std::move(waiting.back());
    waiting.pop_back();
    std::visit([this](auto& m) { deliver(m); }, message);
  }
}

void Change::settle() {
  for (;;) {
    deliver_messages();
    for (std::size_t i = 0; i < order_.size(); ++i) finish(run(order_[i]));
    if (messages_.empty()) break;
  }
  for (std::size_t i = 0; i < order_.size(); ++i) hand_out(run(order_[i]));
  ENSURE(messages_.empty());
}

// What each touched run needs once its events are complete: an end if it has grown too large, a
// workflow task if there is something to see.
void Change::finish(core::RunState& state) {
  if (!state.is_open()) return;
  if (core::over_history_limit(state, limits())) {
    event::WorkflowExecutionTerminated terminated;
    terminated.reason = "history has reached its limit; continue as new earlier";
    terminated.identity = "permit-server";
    step(state, [&](core::Transition& t) { core::terminate(t, terminated); });
    return;
  }
  if (state.task_started() && core::buffer_is_full(state, limits())) {
    step(state, [](core::Transition& t) {
      core::fail_workflow_task(t, {WorkflowTaskFailedCause::force_close_command, {}, ""});
    });
  }
  if (!state.wants_workflow_task || state.has_task()) return;
  const std::string& sticky = state.volatile_state.sticky.name;
  const Time recently = now() - std::chrono::seconds(10);
  if (!sticky.empty() &&
      !parts_.matching.polled_since({TaskQueueType::workflow, sticky}, recently)) {
    state.volatile_state.sticky = {};
  }
  step(state, [](core::Transition& t) { t.schedule_workflow_task_if_wanted(); });
}

// --- Handing out ---

void Change::begin_workflow_task(core::RunState& state, const std::string& identity) {
  const Duration waited = now() - state.workflow_task().scheduled_time;
  step(state, [&](core::Transition& t) {
    core::start_workflow_task(t, {identity, parts_.ids.nonce()}, limits());
  });
  task_starts_.push_back({state.number, 0, waited, !claims_granted_.contains(state.number)});
}

void Change::begin_activity(core::RunState& state, std::int64_t scheduled_event_id,
                            const std::string& identity) {
  const Duration waited = now() - state.activities.at(scheduled_event_id).attempt.scheduled_time;
  step(state, [&](core::Transition& t) {
    core::start_activity(t, {scheduled_event_id}, identity, parts_.ids.nonce());
  });
  task_starts_.push_back({state.number, scheduled_event_id, waited, true});
}

void Change::hand_out(core::RunState& state) {
  if (!state.is_open()) return;
  Touched& touched = this->touched(state.number);
  const std::vector<std::int64_t> activities = std::move(touched.activities_offered);
  touched.activities_offered.clear();
  if (touched.task_offered && state.has_task() && !state.task_started()) {
    hand_out_workflow_task(state);
  }
  for (const std::int64_t id : activities) {
    const auto activity = state.activities.find(id);
    if (activity == state.activities.end() || activity->second.closed) continue;
    hand_out_activity(state, id);
  }
}

void Change::hand_out_workflow_task(core::RunState& state) {
  const auto claim = claims_.find(state.number);
  if (claim != claims_.end()) {
    claims_granted_.insert(state.number);
    begin_workflow_task(state, claim->second);
    return;
  }
  const Matching::QueueKey queue{TaskQueueType::workflow, core::task_queue_of(state)};
  if (auto poller = parts_.matching.take_poller(queue)) {
    pollers_taken_.emplace_back(queue, *poller);
    begin_workflow_task(state, poller->identity);
    matches_.push_back({std::move(*poller), Offer{state.number}});
    return;
  }
  offers_made_.emplace_back(queue, Offer{state.number, 0, 0, now()});
}

void Change::hand_out_activity(core::RunState& state, std::int64_t id) {
  const Matching::QueueKey queue{TaskQueueType::activity,
                                 state.activities.at(id).scheduled.task_queue.name};
  if (auto poller = parts_.matching.take_poller(queue)) {
    pollers_taken_.emplace_back(queue, *poller);
    begin_activity(state, id, poller->identity);
    matches_.push_back({std::move(*poller), Offer{state.number, id}});
    return;
  }
  offers_made_.emplace_back(queue, Offer{state.number, id, 0, now()});
}

bool Change::take(const Matching::QueueKey& queue, const Offer& offer,
                  const std::string& identity) {
  core::RunState* state = find(offer.run);
  if (state == nullptr || !state->is_open()) return false;
  if (queue.type == TaskQueueType::workflow) {
    if (!state->has_task() || state->task_started()) return false;
    if (core::task_queue_of(*state) != queue.name) return false;
    begin_workflow_task(*state, identity);
    return true;
  }
  const auto activity = state->activities.find(offer.scheduled_event_id);
  if (activity == state->activities.end() || activity->second.closed) return false;
  const core::ActivityAttempt& attempt = activity->second.attempt;
  if (attempt.waits_for_retry || is_set(attempt.started_time)) return false;
  begin_activity(*state, offer.scheduled_event_id, identity);
  return true;
}

// --- Writing ---

void Change::write_history(core::RunState& state, const Touched& touched) {
  if (touched.events.empty()) return;
  std::string& text = parts_.scratch;
  text.clear();
  for (const Event& event : touched.events) {
    if (!text.empty()) text += ',';
    write_json(event, text);
  }
  state.history_bytes += static_cast<std::int64_t>(text.size());
  parts_.store.append_history(state.number, touched.events.front().event_id, text);
}

void Change::write_activities(const core::RunState& state, const Touched& touched) {
  for (const std::int64_t id : touched.activities_changed) {
    const auto activity = state.activities.find(id);
    if (activity == state.activities.end()) continue;
    store::ActivityRow row;
    row.scheduled_event_id = id;
    const core::ActivityAttempt& attempt = activity->second.attempt;
    const bool waits = attempt.waits_for_retry || is_set(attempt.started_time);
    if (!waits && !activity->second.closed) {
      row.offered_on = activity->second.scheduled.task_queue.name;
    }
    write_json(attempt, row.attempt_json);
    parts_.store.put_activity(state.number, std::move(row));
  }
  for (const Event& event : touched.events) {
    std::visit(
        [&]<class T>(const T& e) {
          if constexpr (std::is_same_v<T, event::ActivityTaskCompleted> ||
                        std::is_same_v<T, event::ActivityTaskFailed> ||
                        std::is_same_v<T, event::ActivityTaskTimedOut> ||
                        std::is_same_v<T, event::ActivityTaskCanceled>) {
            parts_.store.delete_activity(state.number, e.scheduled_event_id);
          }
        },
        event.attributes);
  }
}

void Change::write() {
  ENSURE(messages_.empty());
  for (const RunNumber number : order_) write_history(run(number), touched_.at(number));
  // First what closes, then what opens under the same id.
  for (const RunNumber number : order_) {
    if (!touched_.at(number).is_new) parts_.store.update_run(row_of(run(number)));
  }
  for (const RunNumber number : order_) {
    if (touched_.at(number).is_new) parts_.store.insert_run(row_of(run(number)));
  }
  for (const RunNumber number : order_) {
    const core::RunState& state = run(number);
    const Touched& touched = touched_.at(number);
    write_activities(state, touched);
    if (!state.is_open() && touched.had_activities) parts_.store.delete_activities(number);
    parts_.cache.measure(number);
  }
  for (const auto& write : extra_) write(parts_.store);
  for (const auto& [queue, poller] : pollers_taken_) {
    parts_.matching.note_added(queue, now());
    parts_.matching.note_dispatched(queue, now());
  }
  for (auto& [queue, offer] : offers_made_) {
    parts_.matching.note_added(queue, now());
    parts_.matching.offer(queue, offer);
  }
  parts_.pools.written();
  written_ = true;
}

bool Change::has_new_events(RunNumber run) const {
  const auto found = touched_.find(run);
  return found != touched_.end() && !found->second.events.empty();
}

bool Change::has_closed(RunNumber run) const {
  const core::RunState* state = parts_.cache.find(run);
  return touched_.at(run).was_open && state != nullptr && !state->is_open();
}

}  // namespace permit::service
