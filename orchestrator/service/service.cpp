#include "orchestrator/service/service.h"

#include <algorithm>
#include <iostream>
#include <utility>

#include "orchestrator/core/clock_transitions.h"
#include "orchestrator/protocol/ensure.h"
#include "orchestrator/service/full_disk.h"
#include "orchestrator/service/self_check.h"

namespace permit::service {

namespace {

constexpr int due_slice = 500;

// Some rows of a request are in the batch without the others: nothing of it can be kept.
class BatchSpoiled : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

Error internal_error() { return Error(ErrorCode::internal, "INTERNAL", "Internal error"); }

// For tests, which take whatever it says for a bug: who runs a server gives it a log.
std::unique_ptr<Log> log_to_cerr() {
  return std::make_unique<Log>(LogFormat::text, LogLine::Level::error,
                               [](std::string_view lines) { std::cerr << lines; });
}

// Or the server has ended the permit without it.
bool lease_has_fired(const core::RunState& permit) {
  if (permit.lease_timer_fired || !permit.is_open()) return true;
  const auto timer = permit.timers.find("lease");
  return timer != permit.timers.end() && timer->second.fired;
}

Options with_secret(Options options) {
  if (options.token_secret.empty()) {
    options.token_secret = std::to_string(random_seed()) + std::to_string(random_seed());
  }
  return options;
}

std::uint64_t seed_of(const Options& options) {
  return options.seed != 0 ? options.seed : random_seed();
}

}  // namespace

Service::Service(store::Store& store, Clock& clock, Options options)
    : store_(store),
      clock_(clock),
      options_(with_secret(std::move(options))),
      own_log_(options_.log == nullptr ? log_to_cerr() : nullptr),
      log_(own_log_ ? own_log_.get() : options_.log),
      permit_queue_{TaskQueueType::workflow, options_.limits.permit_queue},
      ids_(seed_of(options_)),
      cache_(store, options_.cache_bytes_max),
      pools_(store, seed_of(options_)),
      api_keys_(store),
      parts_{store_,
             cache_,
             matching_,
             pools_,
             ids_,
             options_.limits,
             TokenSeal(options_.token_secret)},
      meter_(parts_),
      journal_(store_.counters().commit_seq) {
  now_ = std::max(clock_.now(), store_.counters().time_max);
  retained_ = now_;
  began_ = now_;
  load_offers();
  pools_.start_over(now_);
  load_recent_holds();
  meter_.load(now_);
}

Service::~Service() = default;

// --- The batch ---

bool Service::run_batch() {
  now_ = std::max({now_, clock_.now(), store_.counters().time_max});
  const bool time_has_work = next_due() <= now_;
  if (!time_has_work && jobs_.empty()) return false;
  try {
    deciding_ = nullptr;
    fire_due();
    std::size_t taken = 0;
    for (; !jobs_.empty() && taken < options_.batch_requests_max; ++taken) {
      std::unique_ptr<Job> job = std::move(jobs_.front());
      jobs_.pop_front();
      const std::size_t replies_before = replies_.size();
      run_job(*job);
      if (job->reads_only && replies_.size() > replies_before) {
        reads_.push_back({std::move(job), replies_before});
      }
    }
    deciding_ = nullptr;
    retain();
    const bool writes = store_.in_batch();
    commit_batch();
    if (writes) {
      meter_.metrics.batch_sizes.note(taken);
      note_disk(store_.reserve_used());
    }
  } catch (const store::DiskFull&) {
    note_disk(true);
    store_.use_reserve();
    fail_batch(disk_full());
  } catch (const BatchSpoiled& spoiled) {
    complain("batch_failed", spoiled);
    fail_batch(internal_error());
  }
  if (jobs_.empty()) gone_early_.clear();
  if (options_.check_every_batch) check_batch();
  cache_.trim();
  log_->flush();
  return true;
}

void Service::note_disk(bool is_full) {
  if (std::exchange(disk_is_full_, is_full) == is_full || own_log_) return;
  LogLine line;
  line.level = is_full ? LogLine::Level::error : LogLine::Level::info;
  line.event = is_full ? "store_full" : "store_writable";
  line.msg = is_full
                 ? "the disk is full: what would change anything is refused until there is space"
                 : "there is space again";
  log_->write(line);
}

// A bug that costs what it was found in, and nothing else.
void Service::complain(std::string_view event, const std::exception& bug) {
  LogLine line;
  line.level = LogLine::Level::error;
  line.event = event;
  line.error = bug.what();
  log_->write(line);
}

void Service::run_job(Job& job) {
  // Whom else it has answered, polls and waits, keep their answer: it shares the batch's fate.
  const auto replies_before = static_cast<std::ptrdiff_t>(replies_.size());
  const auto refuse = [&](const Error& error) {
    std::unique_ptr<Reply> refusal = job.refusal(error);
    const auto own = [&](const auto& reply) { return reply->to() == refusal->to(); };
    const auto first = replies_.begin() + replies_before;
    replies_.erase(std::remove_if(first, replies_.end(), own), replies_.end());
    replies_.push_back(std::move(refusal));
  };
  deciding_ = std::move(job.trace);
  try {
    job.decide();
  } catch (const Error& error) {
    refuse(error);
  } catch (const store::DiskFull&) {
    refuse(disk_full());
    throw;
  } catch (const store::StoreFailed&) {
    throw;
  } catch (const store::OwnershipLost&) {
    throw;
  } catch (const std::exception& bug) {
    // A broken invariant, or what the library throws for one. It costs this request only, unless
    // some of its rows are in the batch already.
    refuse(internal_error());
    if (writing_) throw BatchSpoiled(bug.what());
    complain("invariant_violated", bug);
  }
}

void Service::commit_batch() {
  if (store_.in_batch()) {
    const auto began = std::chrono::steady_clock::now();
    store_.commit(now_);
    const auto took =
        std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now() - began);
    meter_.metrics.commit_latency.observe(took);
    meter_.metrics.totals.commit_latency.observe(took);
  }
  tell_news();
  log_->flush();  // before the answers: what was acknowledged has its line
  const std::vector<std::unique_ptr<Reply>> replies = std::move(replies_);
  replies_.clear();
  reads_.clear();
  for (const std::unique_ptr<Reply>& reply : replies) reply->send();
}

// Nothing of the batch is on disk: memory goes back to what is, and everybody is told. Who only
// looked looks again, now at what is on disk.
void Service::fail_batch(const Error& error) {
  ++meter_.metrics.commits_failed;
  recover();
  drop_lost_acquire_waits(error);
  drop_lost_history_waits(error);
  refuse_polls(error);
  offer_queries_again(error);
  std::vector<std::unique_ptr<Reply>> replies = std::move(replies_);
  replies_.clear();
  const std::vector<Read> reads = std::move(reads_);
  reads_.clear();
  for (const Read& read : reads) replies[read.reply].reset();
  for (const std::unique_ptr<Reply>& reply : replies) {
    if (reply) reply->refuse(error);
  }
  for (const Read& read : reads) {
    try {
      run_job(*read.job);
    } catch (const store::DiskFull&) {
      // Has been answered with that.
    }
  }
  commit_batch();
  retry_at_ = now_ + std::chrono::seconds(1);
}

void Service::recover() {
  store_.roll_back();
  news_ = {};
  writing_ = false;
  cache_.forget_all();
  pools_.start_over(now_);
  api_keys_.load();
  matching_.forget_offers();
  load_offers();
}

void Service::load_offers() {
  for (const store::OfferedTask& task : store_.offered_workflow_tasks()) {
    matching_.offer({TaskQueueType::workflow, task.queue}, Offer{task.run, 0, 0, now_});
  }
  for (const store::OfferedTask& task : store_.offered_activities()) {
    matching_.offer({TaskQueueType::activity, task.queue},
                    Offer{task.run, task.scheduled_event_id, 0, now_});
  }
  horizon_ = store_.next_due();
}

// --- Time ---

Time Service::next_due() {
  const Time due = std::min(horizon_, pools_.next_due());
  return std::max(due, retry_at_);
}

void Service::fire_due() {
  if (next_due() > now_) return;
  if (horizon_ <= now_) {
    for (const RunNumber number : store_.due(now_, due_slice)) fire_due_of(number);
    horizon_ = store_.next_due();
    if (!stuck_.empty() && horizon_ <= now_) horizon_ = now_ + std::chrono::seconds(1);
  }
  if (pools_.next_due() <= now_) fire_due_of_pools();
}

void Service::fire_due_of_pools() {
  try {
    Change change(parts_, now_);
    pools_.fire_due(change);
    finish(change);
  } catch (const std::logic_error& bug) {
    if (writing_) throw BatchSpoiled(bug.what());
    complain("pools_late", bug);
    retry_at_ = now_ + std::chrono::seconds(1);
  }
}

void Service::fire_due_of(RunNumber number) {
  if (stuck_.contains(number)) return;
  try {
    Change change(parts_, now_);
    core::RunState& run = change.run(number);
    // An earlier run of this slice may have dealt with it.
    const Time due = core::next_due(run);
    if (due > now_) return;
    const Time deadline = run.volatile_state.permit_deadline;
    const bool lease_ends = run.is_managed_permit() && deadline <= now_ && !run.lease_timer_fired;
    change.step(run, [](core::Transition& t) { core::fire_due(t); });
    finish(change);
    news_.tally.timer_lags.push_back(now_ - due);
    if (lease_ends && lease_has_fired(run)) news_.tally.lease_lags.push_back(now_ - deadline);
  } catch (const std::logic_error& bug) {
    if (writing_) throw BatchSpoiled(bug.what());
    // One broken run must not stop the clock for all others.
    complain("run_left_alone", bug);
    stuck_.insert(number);
  }
}

// Closed runs are kept for a while, then go, a slice at a time.
void Service::retain() {
  constexpr Duration pause = std::chrono::seconds(1);
  if (now_ < retained_ + pause) return;
  retained_ = now_;
  store_.restore_reserve();
  matching_.forget_idle(now_ - std::chrono::minutes(10));
  workers_.forget_silent(now_);
  if (!store_.in_batch()) return;  // no commit of its own: the next one takes it along
  for (const RunNumber run : store_.delete_closed_before(now_ - options_.retention, due_slice)) {
    cache_.forget(run);
  }
  trim_ledger();
}

// The holds of one pool each time, in turn.
void Service::trim_ledger() {
  const auto& pools = pools_.all();
  auto pool = pools.upper_bound(trimmed_last_);
  if (pool == pools.end()) pool = pools.begin();
  if (pool == pools.end()) return;
  trimmed_last_ = pool->first;
  for (const SlotSetting& slot : pool->second.settings.slots) {
    store_.trim_holds(pool->first, slot.slot, options_.holds_kept);
  }
}

// --- Concluding a change ---

void Service::finish(Change& change) {
  change.settle();
  if (!store_.in_batch()) store_.begin();
  writing_ = true;
  change.write();
  writing_ = false;
  for (const RunNumber number : change.touched_runs()) {
    const core::RunState& run = change.run(number);
    if (options_.check_every_batch) unchecked_.insert(number);
    const Time due = core::next_due(run);
    horizon_ = std::min(horizon_, due);
    news_.tally.runs_due += (due != never ? 1 : 0) - (change.was_due(number) ? 1 : 0);
    if (run.task_started()) {
      started_tasks_.insert(number);
    } else {
      started_tasks_.erase(number);
    }
  }
  answer_matches(change);
  if (!query_waits_.empty()) {
    for (const RunNumber number : change.touched_runs()) hand_out_queries(change.run(number));
  }
  wake_history_waits(change);
  collect_news(change);
  answer_settled(pools_.take_settled());
}

void Service::check_batch() {
  for (const RunNumber number : std::exchange(unchecked_, {})) {
    const core::RunState* run = cache_.find(number);
    if (run != nullptr) check_against_store(store_, *run);
  }
}

std::optional<WorkflowExecution> Service::busy_workflow_task() {
  for (const RunNumber number : started_tasks_) {
    const core::RunState* run = cache_.find(number);
    if (run != nullptr && run->task_started()) return run->execution();
  }
  for (const store::OfferedTask& task : store_.offered_workflow_tasks()) {
    if (!matching_.polled_since({TaskQueueType::workflow, task.queue}, now_)) continue;
    const core::RunState* run = cache_.find(task.run);
    if (run != nullptr) return run->execution();
  }
  return std::nullopt;
}

void Service::check_everything() {
  check_against_store(store_, cache_, pools_);
  check_tickets();
  meter_.check();
}

}  // namespace permit::service
