#include "permits/semaphore.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "permits/slot_workflow.h"

namespace permit::permits {

using worker::Async;
using worker::Child;
using worker::ChildNotStarted;
using worker::ChildOptions;
using worker::Future;
using worker::Workflow;

namespace {

constexpr int rounds_before_line = 5;
constexpr const char* default_queue = "permits";

// --- Checks ---

std::string quoted(const std::string& text) { return "\"" + text.substr(0, 80) + "\""; }

void check_name(const char* what, const std::string& name) {
  const bool right =
      !name.empty() && name.size() <= 64 && std::all_of(name.begin(), name.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '.' || c == '_' || c == '-';
      });
  if (right) return;
  throw InvalidPermit(std::string(what) + " name " + quoted(name) +
                      " is not 1 to 64 characters of A-Z a-z 0-9 . _ -");
}

// As the server checks it: what it refuses would fail the task, again and again.
void check_text(const char* what, const std::string& text, std::size_t low = 0) {
  constexpr std::size_t high = 255;
  const bool clean = std::none_of(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
  });
  if (clean && text.size() >= low && text.size() <= high) return;
  throw InvalidPermit(std::string(what) + " " + quoted(text) + " is not " + std::to_string(low) +
                      " to " + std::to_string(high) + " bytes without control characters");
}

void check_range(const char* what, PermitOptions::Seconds value, PermitOptions::Seconds low) {
  constexpr PermitOptions::Seconds year = std::chrono::hours(24 * 365);
  if (std::isfinite(value.count()) && value >= low && value <= year) return;
  throw InvalidPermit(std::string(what) + " of " + std::to_string(value.count()) +
                      " s is not between " + std::to_string(low.count()) + " s and 365 days");
}

bool is_taken(const ChildNotStarted& refused) {
  if (!refused.permit_failure()) return refused.is_already_started();
  return refused.permit_failure()->kind == PermitFailureKind::taken ||
         refused.permit_failure()->kind == PermitFailureKind::drained;
}

[[noreturn]] void throw_timed_out(const std::string& pool, const PermitOptions& options) {
  const double seconds = std::chrono::duration<double>(*options.timeout()).count();
  throw PermitTimedOut("no slot of pool " + pool + " came free within " + std::to_string(seconds) +
                       " s");
}

}  // namespace

void PermitOptions::check() const {
  constexpr Seconds least{0.001};
  check_range("a lease", lease_, least);
  check_range("max_hold", max_hold_, Seconds(0));
  check_range("a timeout", timeout_.value_or(Seconds(0)), Seconds(0));
  check_range("a backoff", backoff_, least);
  check_range("the longest backoff", backoff_max_, backoff_);
  if (priority_ < 0 || priority_ > 5) {
    throw InvalidPermit("priority " + std::to_string(priority_) + " is not between 1 and 5");
  }
  if (plain_ && order_ == PermitOrder::fair) {
    throw InvalidPermit("a fair order is kept by the server; it cannot be plain as well");
  }
  if (reason_.size() > 1'000 || labels_.size() > 32) {
    throw InvalidPermit("at most 1000 bytes of reason and 32 labels are taken");
  }
  for (const auto& [key, value] : labels_) {
    check_text("label", key, 1);
    check_text("label value", value);
  }
  check_text("task queue", task_queue_);
}

Semaphore::Semaphore(Workflow workflow, std::string pool)
    : workflow_(std::move(workflow)), pool_(std::move(pool)) {
  check_name("pool", pool_);
}

Semaphore::Semaphore(Workflow workflow, std::string pool, int capacity)
    : Semaphore(std::move(workflow), std::move(pool)) {
  if (capacity < 1 || capacity > 10'000) {
    throw InvalidPermit("a capacity of " + std::to_string(capacity) +
                        " is not between 1 and 10000");
  }
  for (int i = 0; i < capacity; ++i) slots_.push_back(std::to_string(i));
}

Semaphore::Semaphore(Workflow workflow, std::string pool, std::vector<std::string> slots)
    : Semaphore(std::move(workflow), std::move(pool)) {
  if (slots.empty()) throw InvalidPermit("pool " + pool_ + " is given no slots");
  std::set<std::string> seen;
  for (const std::string& slot : slots) {
    check_name("slot", slot);
    if (!seen.insert(slot).second) throw InvalidPermit("slot " + quoted(slot) + " is given twice");
  }
  slots_ = std::move(slots);
}

void Semaphore::check(int count, const PermitOptions& options) const {
  options.check();
  if (count < 1 || count > 10'000) {
    throw InvalidPermit("a count of " + std::to_string(count) + " is not between 1 and 10000");
  }
  if (!options.is_plain()) return;
  if (count > 1) throw InvalidPermit("several slots at once take the server; they cannot be plain");
  if (slots_.empty()) throw InvalidPermit("plain needs to be told what slots there are");
}

// --- Drawing ---

worker::Random& Semaphore::random() const { return workflow_.random("permit:" + pool_); }

std::vector<std::string> Semaphore::shuffled_slots() const {
  std::vector<std::string> slots = slots_;
  random().shuffle(slots);
  return slots;
}

Duration Semaphore::pause_after(int round, const PermitOptions& options) const {
  double pause = static_cast<double>(options.backoff().count());
  const auto longest = static_cast<double>(options.backoff_max().count());
  for (int i = 1; i < round && pause < longest; ++i) pause *= 2;
  pause = std::min(pause, longest) * (0.8 + 0.4 * random().fraction());
  return Duration(static_cast<std::int64_t>(pause));
}

// --- Asking ---

// One request to the server. Throws ChildNotStarted.
Async<std::vector<Permit>> Semaphore::ask(Semaphore self, int count, PermitOptions options,
                                          Wait wait, Duration wait_timeout) {
  PermitRequest request;
  request.pool = PoolName(self.pool_);
  const std::vector<std::string> drawn = self.shuffled_slots();
  request.slots.reserve(drawn.size());
  for (const std::string& slot : drawn) request.slots.emplace_back(slot);
  request.count = count;
  request.lease = options.lease();
  request.max_hold = options.max_hold();
  request.wait = wait == Wait::yes;
  // Who does not wait has no place in a line; a fair request always waits.
  request.order = request.wait ? options.order() : PermitOrder::any;
  request.wait_timeout = wait_timeout;
  request.reason = options.reason();
  request.labels = options.labels();
  ChildOptions child;
  child.task_queue(options.task_queue()).priority(options.priority());

  const Future<std::vector<Child<std::string>>> started =
      self.workflow_.start_permit(std::move(request), child);
  std::vector<Child<std::string>> granted = co_await started;
  std::vector<Permit> permits;
  permits.reserve(granted.size());
  for (Child<std::string>& one : granted) {
    permits.emplace_back(self.workflow_, std::move(one), options);
  }
  co_return permits;
}

// One round with the server's help. No permit: none was free, and the time to stand in line has not
// come, or is over.
Async<std::vector<Permit>> Semaphore::attempt(Semaphore self, int count, PermitOptions options,
                                              int round, Duration left) {
  const bool bounded = options.timeout().has_value();
  const bool may_wait = !bounded || left.count() > 0;
  const bool in_line = options.order() == PermitOrder::fair || round > rounds_before_line;
  const Wait wait = in_line && may_wait ? Wait::yes : Wait::no;
  const Duration patience = bounded && may_wait ? left : Duration(0);
  std::vector<Permit> permits;
  try {
    permits = co_await ask(self, count, options, wait, patience);
  } catch (const ChildNotStarted& refused) {
    if (!is_taken(refused)) throw_refusal(refused);
  }
  co_return permits;
}

// --- Without the server's help ---

// Tries the slots in turn. No permit: none was free.
Async<std::vector<Permit>> Semaphore::probe(Semaphore self, PermitOptions options) {
  const std::string queue = options.task_queue().empty() ? default_queue : options.task_queue();
  const double lease = std::chrono::duration<double>(options.lease()).count();
  const Workflow shielded = self.workflow_.shielded();
  std::vector<Permit> permits;
  for (const std::string& slot : self.shuffled_slots()) {
    if (self.workflow_.is_canceled()) throw worker::Canceled();
    if (self.workflow_.info().suggest_continue_as_new) {
      throw HistoryNearLimit("waiting for pool " + self.pool_ +
                             " has made the history long; continue the run as new and ask again");
    }
    ChildOptions child;
    child.id("permit:" + self.pool_ + ":" + slot).task_queue(queue);
    child.execution_timeout(options.lease() + grace_of(options.lease()));
    PermitSlotInput input;
    input.resource = self.pool_;
    input.slot = slot;
    input.lease_seconds = lease;
    const Future<Child<std::string>> started = shielded.start_child(permit_slot, child, input);
    try {
      Child<std::string> run = co_await started;
      permits.emplace_back(self.workflow_, std::move(run), options);
    } catch (const ChildNotStarted& refused) {
      if (!is_taken(refused)) throw_refusal(refused);
    }
    if (!permits.empty()) co_return permits;
  }
  co_return permits;
}

// --- The ways to ask ---

Async<std::vector<Permit>> Semaphore::acquire_some(Semaphore self, int count,
                                                   PermitOptions options) {
  self.check(count, options);
  const Workflow& workflow = self.workflow_;
  const Time end = workflow.now() + options.timeout().value_or(Duration(0));  // if there is one
  for (int round = 1;; ++round) {
    std::vector<Permit> permits;
    if (options.is_plain()) {
      permits = co_await probe(self, options);
    } else {
      permits = co_await attempt(self, count, options, round, end - workflow.now());
    }
    for (const Permit& permit : permits) {
      workflow.log(worker::LogLevel::info,
                   "acquired " + permit.id() + ", fence " + std::to_string(permit.fence()));
    }
    if (!permits.empty()) co_return permits;
    Duration pause = self.pause_after(round, options);
    if (options.timeout()) {
      pause = std::min<Duration>(pause, end - workflow.now());
      if (pause.count() <= 0) throw_timed_out(self.pool_, options);
    }
    const PoolName waker(options.is_plain() ? std::string() : self.pool_);
    co_await workflow.sleep_for_pool(pause, waker);
  }
}

Async<Permit> Semaphore::acquire_one(Semaphore self, PermitOptions options) {
  std::vector<Permit> permits = co_await acquire_some(self, 1, std::move(options));
  co_return std::move(permits.front());
}

Async<std::optional<Permit>> Semaphore::try_one(Semaphore self, PermitOptions options) {
  self.check(1, options);
  std::vector<Permit> permits;
  if (options.is_plain()) {
    permits = co_await probe(self, options);
  } else {
    try {
      permits = co_await ask(self, 1, options, Wait::no, Duration(0));
    } catch (const ChildNotStarted& refused) {
      // Held by this very run is no deadlock for one who does not wait.
      const auto& failure = refused.permit_failure();
      const bool by_itself = failure && failure->kind == PermitFailureKind::self_deadlock;
      if (!by_itself && !is_taken(refused)) throw_refusal(refused);
    }
  }
  if (permits.empty()) co_return std::nullopt;
  co_return std::move(permits.front());
}

Async<Permit> Semaphore::acquire(PermitOptions options) const {
  return acquire_one(*this, std::move(options));
}

Async<std::optional<Permit>> Semaphore::try_acquire(PermitOptions options) const {
  return try_one(*this, std::move(options));
}

Async<std::vector<Permit>> Semaphore::acquire_n(int count, PermitOptions options) const {
  return acquire_some(*this, count, std::move(options));
}

}  // namespace permit::permits
