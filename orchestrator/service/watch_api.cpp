// What is told to those who only watch: the event stream's messages, and the news they come from.
#include <algorithm>

#include "orchestrator/core/validate.h"
#include "orchestrator/protocol/version.h"
#include "orchestrator/service/news_log.h"
#include "orchestrator/service/service.h"
#include "orchestrator/store/reader.h"

namespace permit::service {

namespace {

constexpr std::size_t line_shown_max = 50;
constexpr std::size_t runs_told_max = 100;

RunChange run_change(const core::RunState& run) {
  RunChange change;
  change.workflow_id = run.workflow_id;
  change.run_id = run.run_id;
  change.type = run.started.workflow_type.name;
  change.task_queue = run.started.task_queue.name;
  change.status = run.status;
  change.start_time = run.start_time;
  change.close_time = run.close_time;
  if (run.started.parent_workflow_execution) {
    change.parent_workflow_id = run.started.parent_workflow_execution->workflow_id;
  }
  return change;
}

}  // namespace

// --- News ---

void Service::load_recent_holds() {
  constexpr std::size_t holds_max = 20'000;
  store::Reader reader(store_.database(), std::chrono::seconds(10));
  store::HoldQuery query;
  query.state = store::HoldState::closed;
  query.page_size = store::page_size_max;
  std::vector<PermitInfo> holds;
  do {
    store::HoldPage page = reader.list_holds(query);
    std::move(page.permits.begin(), page.permits.end(), std::back_inserter(holds));
    query.page_token = page.next_page_token;
  } while (!query.page_token.value.empty() && holds.size() < holds_max);
  std::stable_sort(holds.begin(), holds.end(), [](const PermitInfo& a, const PermitInfo& b) {
    return a.closed_at < b.closed_at;
  });
  for (PermitInfo& hold : holds) recent_holds_.ended(std::move(hold));
}

void Service::collect_news(const Change& change) {
  for (const RunNumber number : change.touched_runs()) {
    if (change.has_started(number)) news_.started.push_back(number);
    if (change.has_closed(number)) news_.closed.push_back(number);
    if (deciding_ && (change.has_started(number) || change.has_closed(number))) {
      news_.traces[number] = deciding_;
    }
    const core::RunState* run = cache_.find(number);
    if (run->is_permit()) news_.permits.insert(number);
    if (!run->activities.empty()) note_permits_of(*run);
  }
  for (const RunNumber number : change.late_releases()) {
    news_.permits.insert(number);
    news_.late_releases.push_back(number);
  }
  meter_.collect(change, news_.tally);
  std::map<PoolName, PoolNews> of_pools = pools_.take_news();
  news_.pools.merge(of_pools);
  for (const auto& [pool, what] : of_pools) {  // those that have news in this batch already
    PoolNews& news = news_.pools.at(pool);
    news.settings = news.settings || what.settings;
    news.line = news.line || what.line;
    news.acts.insert(news.acts.end(), what.acts.begin(), what.acts.end());
  }
}

// A permit shows the work that is done under it.
void Service::note_permits_of(const core::RunState& holder) {
  const auto works = [&](const RunId& permit) {
    return std::any_of(holder.activities.begin(), holder.activities.end(), [&](const auto& entry) {
      return entry.second.scheduled.permit_run_id == permit;
    });
  };
  for (const auto& [id, child] : holder.children) {
    for (const core::ChildState::Run& run : child.runs) {
      const auto permit = core::parse_permit_id(run.execution.workflow_id);
      if (!permit || !works(run.execution.run_id)) continue;
      const Pools::Pool* pool = pools_.find(permit->pool);
      if (pool == nullptr) continue;
      const auto held = pool->holders.find(permit->slot);
      if (held != pool->holders.end()) news_.permits.insert(held->second);
    }
  }
}

void Service::tell_news() {
  const News news = std::exchange(news_, {});
  meter_.count(news);
  if (news.empty()) return;
  remember_holds(news);
  journal_.note(news, store_.counters().commit_seq);
  log_news(*log_, news, cache_, now_);
}

void Service::remember_holds(const News& news) {
  Change change(parts_, now_);
  for (const RunNumber number : news.closed) {
    const core::RunState* run = change.find(number);
    if (run != nullptr && run->is_permit()) recent_holds_.ended(permit_info(change, *run));
  }
  for (const RunNumber number : news.late_releases) {
    const core::RunState* run = change.find(number);
    if (run == nullptr) continue;
    PermitInfo hold = permit_info(change, *run);
    hold.late_release_at = store_.late_release_of(hold.fence);
    recent_holds_.given_back_late(std::move(hold));
  }
  for (const auto& [pool, what] : news.pools) {
    if (what.settings && pools_.find(pool) == nullptr) recent_holds_.forget(pool);
  }
}

// --- Messages ---

PoolLine Service::line_info(const Pools::Pool& pool) {
  PoolLine line;
  line.pool = pool.name;
  line.waiting = static_cast<std::int32_t>(pool.line.size() + pool.sleepers.size());
  std::int32_t position = 0;
  for (const auto& [key, waiter] : pool.line) {
    if (line.waiters.size() >= line_shown_max) break;
    line.waiters.push_back(pools_.describe(pool, waiter, ++position));
  }
  for (const auto& [id, sleeper] : pool.sleepers) {
    if (line.waiters.size() >= line_shown_max) break;
    line.waiters.push_back(pools_.describe(pool, Pools::as_waiter(sleeper), 0));
  }
  return line;
}

StreamSnapshot Service::snapshot(const PoolName& only) {
  StreamSnapshot snapshot;
  snapshot.seq = Count{position()};
  snapshot.now = time();
  snapshot.version = version;
  Change change(parts_, now_);
  for (const auto& [name, pool] : pools_.all()) {
    if (!only.empty() && name != only) continue;
    snapshot.pools.push_back(pool_info(change, pool));
    PoolLine line = line_info(pool);
    if (line.waiting > 0) snapshot.lines.push_back(std::move(line));
    for (const auto& hold : recent_holds_.of(name)) snapshot.holds.push_back(*hold);
  }
  return snapshot;
}

std::optional<StreamChanges> Service::changes_since(std::int64_t since, const PoolName& only) {
  auto changed = journal_.since(since);
  if (!changed) return std::nullopt;
  StreamChanges told;
  told.seq = Count{position()};
  told.now = time();
  Change change(parts_, now_);
  std::map<PoolName, std::set<SlotName>> slots;
  for (const RunNumber number : changed->permits) {
    const core::RunState* permit = change.find(number);
    if (permit == nullptr) continue;  // it has been forgotten since
    const PermitGrant& grant = *permit->started.permit;
    changed->pools.try_emplace(grant.pool);
    slots[grant.pool].insert(grant.slot);
    if (!only.empty() && grant.pool != only) continue;
    told.holds.push_back(permit_info(change, *permit));
    if (!permit->is_open()) {
      told.holds.back().late_release_at = store_.late_release_of(grant.fence);
    }
  }
  for (const auto& [name, what] : changed->pools) {
    if (!only.empty() && name != only) continue;
    const Pools::Pool* pool = pools_.find(name);
    if (pool == nullptr) {
      told.removed.push_back(name);
      continue;
    }
    if (what.line) told.lines.push_back(line_info(*pool));
    if (what.settings) {
      told.pools.push_back(pool_info(change, *pool));
      continue;
    }
    PoolInfo info = pool_summary(*pool);
    info.partial = true;
    info.changes.clear();  // as they were
    for (const SlotSetting& slot : pool->settings.slots) {
      if (slots[name].contains(slot.slot)) info.slots.push_back(slot_info(change, *pool, slot));
    }
    told.pools.push_back(std::move(info));
  }
  if (!only.empty()) return told;
  told.more_workflows = changed->more_runs || changed->runs.size() > runs_told_max;
  for (const RunNumber number : changed->runs) {
    if (told.workflows.size() >= runs_told_max) break;
    const core::RunState* run = change.find(number);
    if (run != nullptr) told.workflows.push_back(run_change(*run));
  }
  return told;
}

// --- Queues ---

// Whether the task waits still: its run may have closed, or a timeout taken it back.
bool Service::stands(const Matching::QueueKey& queue, const Offer& offer) {
  if (offer.query != 0) return query_waits_.contains(offer.query);
  const core::RunState* run = cache_.find(offer.run);
  if (run == nullptr || !run->is_open()) return false;
  if (queue.type == TaskQueueType::workflow) {
    return run->has_task() && !run->task_started() && core::task_queue_of(*run) == queue.name;
  }
  const auto activity = run->activities.find(offer.scheduled_event_id);
  if (activity == run->activities.end() || activity->second.closed) return false;
  const core::ActivityAttempt& attempt = activity->second.attempt;
  return !attempt.waits_for_retry && !is_set(attempt.started_time);
}

TaskQueueInfo Service::queue_info(const Matching::QueueKey& queue) {
  TaskQueueInfo info;
  info.name = queue.name;
  info.kind = queue.type == TaskQueueType::activity ? "activity" : "workflow";
  const auto oldest =
      matching_.oldest(queue, [&](const Offer& offer) { return stands(queue, offer); });
  if (oldest) info.oldest_task = oldest->since;
  info.backlog = static_cast<std::int32_t>(matching_.backlog(queue));
  for (const auto& [identity, at] : matching_.pollers(queue, now_ - std::chrono::minutes(5))) {
    info.pollers.push_back({at, identity});
  }
  const Matching::Rates rates = matching_.rates(queue, time());
  info.added_per_second = rates.added;
  info.dispatched_per_second = rates.dispatched;
  return info;
}

std::vector<TaskQueueInfo> Service::queues() {
  std::vector<TaskQueueInfo> queues;
  for (const Matching::QueueKey& queue : matching_.queues()) queues.push_back(queue_info(queue));
  return queues;
}

}  // namespace permit::service
