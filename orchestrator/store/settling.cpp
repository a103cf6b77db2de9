// How commits get into the redo log, and from there into the tables.
#include "orchestrator/protocol/ensure.h"
#include "orchestrator/store/store.h"

namespace permit::store {

namespace {

using namespace std::chrono_literals;
using SteadyClock = std::chrono::steady_clock;

// So long at most a commit is in the log only, if the disk has room.
constexpr auto settling_pause = 250ms;
constexpr auto retry_pause = 1s;
// If the tables cannot keep up, commits wait for them from here on.
constexpr std::int64_t log_bytes_max = 64 << 20;
constexpr int wal_pages_max = 1000;

}  // namespace

// --- Commits ---

// Nobody is told before it is certain that this is still the owner: the next one takes the database
// first and reads our log then, so either it has this commit, or we learn of it here.
void Store::commit_to_log() {
  const auto fail = [this](const auto& error) {
    failed_ = true;
    throw error;
  };
  try {
    log_->append(counters_.commit_seq, *record_);
  } catch (const StoreFailed& error) {
    fail(error);
  }
  {
    auto row = owner_->bind();
    if (!row.step() || row.i64(0) != counters_.epoch) {
      fail(OwnershipLost("another server has taken this database"));
    }
  }
  if (unsettled_.empty()) unsettled_since_ = SteadyClock::now();
  unsettled_.push_back(record_);
  if (log_->bytes() < settle_bytes_) return;
  begin_settling();
  if (log_->bytes() >= log_bytes_max && settler_) settler_->wait();
}

void Store::commit_to_tables() {
  writer_->write({record_}, counters_.epoch);
  pending_.clear();
  due_from_ = {};
}

void Store::roll_back() {
  in_batch_ = false;
  counters_ = committed_;
  pending_.clear();
  due_from_ = {};
  for (const CommitRecord& record : settling_) pending_.add_record(record);
  if (!settling_.empty()) pending_.begin_generation();
  for (const CommitRecord& record : unsettled_) pending_.add_record(record);
}

// --- Settling ---

// What could not be settled for want of room comes first, and again.
void Store::begin_settling() {
  if (settler_ && settler_->is_busy()) return;
  if (settling_.empty()) {
    if (unsettled_.empty()) return;
    settling_.swap(unsettled_);
    settling_end_ = counters_.commit_seq;
    pending_.begin_generation();
    log_->turn();
  }
  const auto write = [this, records = settling_, epoch = counters_.epoch] {
    writer_->write(records, epoch);
  };
  if (settler_) {
    settler_->start(write, [this](const std::exception_ptr& result) { end_settling(result); });
    return;
  }
  std::exception_ptr result;
  try {
    write();
  } catch (...) {
    result = std::current_exception();
  }
  end_settling(result);
}

void Store::end_settling(const std::exception_ptr& result) {
  has_no_room_ = false;
  try {
    if (result) std::rethrow_exception(result);
  } catch (const DiskFull&) {
    has_no_room_ = true;
    retry_at_ = SteadyClock::now() + retry_pause;
    return call_waiting(counters_.commit_seq);
  } catch (...) {
    failed_ = true;
    throw;
  }
  settling_.clear();
  pending_.settle_oldest();
  due_from_ = {};
  if (!settler_) return call_waiting(settling_end_);
  take_snapshot();
  call_waiting(settling_end_);
  if (database_.wal_pages() >= wal_pages_max) {
    shorten_wal();
  } else if (!waiting_.empty()) {
    begin_settling();
  }
}

// The log of SQLite begins anew if nobody reads what is in it: not the engine either, whose
// snapshot is therefore taken again.
void Store::shorten_wal() {
  settler_->start([this] { database_.checkpoint(); },
                  [this](const std::exception_ptr& result) {
                    if (result) {
                      failed_ = true;
                      std::rethrow_exception(result);
                    }
                    take_snapshot();
                    if (!waiting_.empty()) begin_settling();
                  });
}

void Store::take_snapshot() {
  snapshot_.reset();
  snapshot_.emplace(*own_reading_);
  last_commit(*own_reading_);  // it begins with the first read
}

void Store::call_waiting(std::int64_t settled) {
  std::vector<std::pair<std::int64_t, std::function<void()>>> all = std::move(waiting_);
  waiting_.clear();
  for (auto& [commit_seq, then] : all) {
    if (commit_seq <= settled) {
      then();
    } else {
      waiting_.emplace_back(commit_seq, std::move(then));
    }
  }
}

void Store::when_settled(std::function<void()> then) {
  if (is_settled() || has_no_room_) return then();
  waiting_.emplace_back(committed_.commit_seq, std::move(then));
  begin_settling();
}

std::optional<SteadyClock::time_point> Store::settling_due() const {
  if (is_settled() || (settler_ && settler_->is_busy())) return std::nullopt;
  return settling_.empty() ? unsettled_since_ + settling_pause : retry_at_;
}

void Store::settle_some(SteadyClock::time_point now) {
  const auto due = settling_due();
  if (due && *due <= now) begin_settling();
}

void Store::settle() {
  ENSURE(!in_batch_);
  if (settler_) settler_->wait();
  while (!is_settled()) {
    begin_settling();
    if (settler_) settler_->wait();
    if (has_no_room_) throw DiskFull("the disk is full: what is in the redo log stays there");
  }
}

}  // namespace permit::store
