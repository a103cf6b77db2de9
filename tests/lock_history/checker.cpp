#include "tests/lock_history/checker.h"

#include <algorithm>
#include <optional>

namespace permit::lock_history {

namespace {

constexpr std::size_t violations_max = 20;
constexpr Moment beginning = std::numeric_limits<Moment>::min();

Moment after(Moment moment, Moment lease) {
  return moment > never - lease ? never : moment + lease;
}

// A time in which one thing happened.
struct Window {
  Moment from = beginning;
  Moment until = never;
};

struct Renewal {
  Window window;
  Moment lease = 0;
};

struct Hold {
  std::int64_t fence = 0;
  std::uint64_t run = 0;
  std::uint64_t number = 0;  // of its acquire
  std::uint32_t slot = 0;
  Moment lease = 0;
  Window granted;
  std::optional<Window> released;
  Moment may_be_released_from = never;  // by a release without an answer
  Moment seen_from = beginning;         // it was still held, whoever saw it
  Moment seen_until = never;            // it was already held
  Moment lost_until = never;            // the first answer that it was over
  bool renewed_perhaps = false;
  std::vector<Renewal> renewals = {};

  // Found by the solution.
  Moment grant = beginning;
  Moment deadline = never;
  Moment end = never;
};

// Somebody found the slot free, or found it taken.
struct Sighting {
  Window window;
  bool free = true;
  std::uint64_t number = 0;
};

struct Line {                      // all of one slot
  std::vector<std::size_t> holds;  // by fence
  std::vector<Sighting> sightings;
};

class Check {
 public:
  Check(const History& history, const CheckOptions& options)
      : history_(history), options_(options), lines_(history.slots.size()) {}

  Report run() {
    take_grants();
    take_evidence();
    take_the_rest();
    order_lines();
    for (Line& line : lines_) check_line(line);
    check_capacities();
    return std::move(report_);
  }

 private:
  void complain(const std::string& text) {
    if (report_.violations.size() < violations_max) report_.violations.push_back(text);
  }
  std::string name(const Hold& hold) const {
    return history_.slots[hold.slot].name + " with fence " + std::to_string(hold.fence) +
           " (operation " + std::to_string(hold.number) + ")";
  }

  void add_hold(Hold hold);
  void take_grants();
  void take_evidence();
  bool may_be(const Operation& request, const Hold& seen) const;
  std::optional<std::size_t> explain(const Hold& seen) const;
  Moment shortest_lease(const Hold& seen) const;
  void take_the_rest();
  void take_change(Hold& hold, const Operation& operation);
  void take_read(const Operation& operation);
  void order_lines();

  void check_line(Line& line);
  void solve(Line& line, std::vector<Moment>& raised);
  bool place_sightings(const Line& line, std::vector<Moment>& raised);
  Moment moment(const Line& line, std::size_t change) const;
  void check_hold(const Hold& hold);
  void check_not_revived(const Hold& hold);
  void check_sighting(const Line& line, const Sighting& sighting);
  void check_capacities();
  bool may_be_hidden(std::uint32_t slot, Moment until) const;

  const History& history_;
  const CheckOptions options_;
  std::vector<Hold> holds_;
  std::unordered_map<std::uint64_t, std::size_t> by_run_;
  std::vector<Operation> unanswered_;  // acquires, by time
  std::vector<Line> lines_;
  std::map<std::string, Moment> any_unanswered_;  // by slot or pool: the first acquire of it
  Report report_;
};

void Check::add_hold(Hold hold) {
  if (!by_run_.emplace(hold.run, holds_.size()).second) {
    complain("the run of " + name(hold) + " was granted twice");
    return;
  }
  lines_[hold.slot].holds.push_back(holds_.size());
  holds_.push_back(std::move(hold));
}

void Check::take_grants() {
  for (const Operation& operation : history_.operations) {
    if (operation.counts) ++report_.operations;
    if (operation.outcome != Outcome::unknown && operation.outcome != Outcome::fail) ++report_.ok;
    if (operation.counts && operation.outcome == Outcome::unknown) ++report_.unknown;
    if (operation.kind != Kind::acquire) continue;
    if (operation.outcome == Outcome::unknown) {
      unanswered_.push_back(operation);
      const Slot& slot = history_.slots[operation.slot];
      Moment& first =
          any_unanswered_.try_emplace(slot.any ? slot.pool : slot.name, never).first->second;
      first = std::min(first, operation.invoked);
    }
    if (operation.outcome != Outcome::ok) continue;
    ++report_.grants;
    Hold hold;
    hold.fence = operation.fence;
    hold.run = operation.run;
    hold.number = operation.number;
    hold.slot = operation.slot;
    hold.lease = operation.lease;
    hold.granted = {operation.invoked, operation.returned};
    add_hold(std::move(hold));
  }
  std::sort(unanswered_.begin(), unanswered_.end(),
            [](const Operation& a, const Operation& b) { return a.invoked < b.invoked; });
}

// A holder that was seen, but whose acquire was not answered: one of those must have been it. Each
// is one grant at most. Who was seen first chooses first, the earliest request that will do.
void Check::take_evidence() {
  std::unordered_map<std::uint64_t, Hold> seen;
  for (const Operation& operation : history_.operations) {
    if (operation.kind != Kind::read || operation.outcome != Outcome::ok) continue;
    if (by_run_.contains(operation.run)) continue;
    Hold& hold = seen[operation.run];
    hold.run = operation.run;
    hold.fence = operation.fence;
    hold.slot = operation.slot;
    hold.seen_until = std::min(hold.seen_until, operation.returned);
  }
  std::vector<Hold> holds;
  holds.reserve(seen.size());
  for (auto& [run, hold] : seen) holds.push_back(std::move(hold));
  std::sort(holds.begin(), holds.end(), [](const Hold& a, const Hold& b) {
    return std::pair(a.seen_until, a.fence) < std::pair(b.seen_until, b.fence);
  });
  for (Hold& hold : holds) {
    const std::optional<std::size_t> request = explain(hold);
    if (!request) {
      complain("nobody has asked for the hold of " + history_.slots[hold.slot].name +
               " with fence " + std::to_string(hold.fence));
      continue;
    }
    const auto found = unanswered_.begin() + static_cast<std::ptrdiff_t>(*request);
    hold.number = found->number;
    hold.lease = shortest_lease(hold);
    hold.granted = {found->invoked, never};
    unanswered_.erase(found);
    add_hold(std::move(hold));
  }
}

bool Check::may_be(const Operation& request, const Hold& seen) const {
  if (request.invoked > seen.seen_until) return false;
  const Slot& asked = history_.slots[request.slot];
  return request.slot == seen.slot || (asked.any && asked.pool == history_.slots[seen.slot].pool);
}

// One that asked for this very slot rather than one that can explain others.
std::optional<std::size_t> Check::explain(const Hold& seen) const {
  std::optional<std::size_t> found;
  for (std::size_t i = 0; i < unanswered_.size(); ++i) {
    if (unanswered_[i].invoked > seen.seen_until) break;
    if (unanswered_[i].slot == seen.slot) return i;
    if (!found && may_be(unanswered_[i], seen)) found = i;
  }
  return found;
}

// Of all that it may have been: which one it was is not known.
Moment Check::shortest_lease(const Hold& seen) const {
  Moment lease = never;
  for (const Operation& request : unanswered_) {
    if (request.invoked > seen.seen_until) break;
    if (may_be(request, seen)) lease = std::min(lease, request.lease);
  }
  return lease;
}

void Check::take_the_rest() {
  for (const Operation& operation : history_.operations) {
    const Window window = {operation.invoked, operation.returned};
    if (operation.kind == Kind::read) {
      take_read(operation);
    } else if (operation.kind != Kind::acquire) {
      const auto found = by_run_.find(operation.run);
      if (found != by_run_.end()) {
        take_change(holds_[found->second], operation);
      } else if (operation.outcome == Outcome::ok) {
        complain("operation " + std::to_string(operation.number) +
                 " changed a hold that nobody was granted");
      }
    } else if (operation.outcome == Outcome::full && !history_.slots[operation.slot].any) {
      lines_[operation.slot].sightings.push_back({window, false, operation.number});
    }
  }
}

void Check::take_change(Hold& hold, const Operation& operation) {
  const Window window = {operation.invoked, operation.returned};
  const bool releases = operation.kind == Kind::release;
  if (operation.outcome == Outcome::lost) {
    hold.lost_until = std::min(hold.lost_until, operation.returned);
  } else if (operation.outcome == Outcome::unknown) {
    if (releases) hold.may_be_released_from = std::min(hold.may_be_released_from, window.from);
    if (!releases) hold.renewed_perhaps = true;
  } else if (operation.outcome == Outcome::ok && !releases) {
    hold.renewals.push_back({window, operation.lease});
  } else if (operation.outcome == Outcome::ok) {
    if (hold.released) complain(name(hold) + " was released twice");
    hold.released = window;
  }
}

void Check::take_read(const Operation& operation) {
  const Window window = {operation.invoked, operation.returned};
  if (operation.outcome == Outcome::free) {
    lines_[operation.slot].sightings.push_back({window, true, operation.number});
  }
  if (operation.outcome != Outcome::ok) return;
  const auto found = by_run_.find(operation.run);
  if (found == by_run_.end()) return;  // complained about
  Hold& hold = holds_[found->second];
  if (hold.fence != operation.fence || hold.slot != operation.slot) {
    complain("operation " + std::to_string(operation.number) + " saw the run of " + name(hold) +
             " with another fence or slot");
  }
  hold.seen_from = std::max(hold.seen_from, window.from);
  hold.seen_until = std::min(hold.seen_until, window.until);
}

void Check::order_lines() {
  for (Line& line : lines_) {
    std::sort(line.holds.begin(), line.holds.end(),
              [this](std::size_t a, std::size_t b) { return holds_[a].fence < holds_[b].fence; });
    for (std::size_t i = 1; i < line.holds.size(); ++i) {
      const Hold& hold = holds_[line.holds[i]];
      if (holds_[line.holds[i - 1]].fence == hold.fence) {
        complain(name(hold) + ": that fence was given twice");
      }
    }
  }
}

// --- The solution of one slot ---

// The chain's changes: 2n is the grant of the n-th hold, 2n + 1 its end.
Moment Check::moment(const Line& line, std::size_t change) const {
  const Hold& hold = holds_[line.holds[change / 2]];
  return change % 2 == 0 ? hold.grant : hold.end;
}

// The earliest moments, none below `raised`.
void Check::solve(Line& line, std::vector<Moment>& raised) {
  Moment before = beginning;
  for (std::size_t i = 0; i < line.holds.size(); ++i) {
    Hold& hold = holds_[line.holds[i]];
    hold.grant = std::max({before, hold.granted.from, raised[2 * i]});
    hold.deadline = after(hold.grant, hold.lease);
    Moment end = std::max({hold.grant, hold.seen_from, raised[2 * i + 1]});
    for (const Renewal& renewal : hold.renewals) {
      const Moment at = std::max(hold.grant, renewal.window.from);
      hold.deadline = std::max(hold.deadline, after(at, renewal.lease));
      end = std::max(end, at);
    }
    if (hold.deadline != never) hold.deadline -= options_.clock_error;
    if (hold.released) {
      end = std::max(end, hold.released->from);
    } else {
      end = std::max(end, std::min(hold.may_be_released_from, hold.deadline));
    }
    hold.end = before = end;
  }
}

// Puts each sighting into the last gap of its kind that began in time. True if that raised a
// moment, which may move others out of their gap.
bool Check::place_sightings(const Line& line, std::vector<Moment>& raised) {
  bool any_raised = false;
  const std::size_t changes = 2 * line.holds.size();
  for (const Sighting& sighting : line.sightings) {
    std::size_t done = 0;  // changes that had happened
    std::size_t high = changes;
    while (done < high) {  // the last change that began in time
      const std::size_t middle = (done + high) / 2;
      if (moment(line, middle) <= sighting.window.until) {
        done = middle + 1;
      } else {
        high = middle;
      }
    }
    const bool is_free = done % 2 == 0;
    if (is_free != sighting.free) {
      if (done == 0) continue;  // taken, before any grant: check_sighting() complains
      --done;
    }
    if (done == changes || moment(line, done) >= sighting.window.from) continue;
    raised[done] = std::max(raised[done], sighting.window.from);
    any_raised = true;
  }
  return any_raised;
}

void Check::check_line(Line& line) {
  std::erase_if(line.sightings, [&](const Sighting& sighting) {
    if (sighting.free) return false;
    const auto slot = static_cast<std::uint32_t>(&line - lines_.data());
    return may_be_hidden(slot, sighting.window.until);
  });
  std::vector<Moment> raised(2 * line.holds.size(), beginning);
  do {
    solve(line, raised);
  } while (place_sightings(line, raised));

  for (std::size_t i = 0; i < line.holds.size(); ++i) {
    const Hold& hold = holds_[line.holds[i]];
    check_hold(hold);
    check_not_revived(hold);
    const bool followed = i + 1 < line.holds.size();
    if (followed && !hold.released && hold.may_be_released_from == never) ++report_.expired;
  }
  for (const Sighting& sighting : line.sightings) check_sighting(line, sighting);
}

void Check::check_hold(const Hold& hold) {
  if (hold.grant > std::min(hold.granted.until, hold.seen_until)) {
    complain(name(hold) + " was granted before the hold before it can have ended, " +
             std::to_string(hold.grant - std::min(hold.granted.until, hold.seen_until)) +
             " us too early");
  }
  if (hold.released && hold.end > hold.released->until) {
    complain(name(hold) + " was released after its end, or is said to have lived on");
  }
  for (const Renewal& renewal : hold.renewals) {
    if (std::max(hold.grant, renewal.window.from) > renewal.window.until) {
      complain(name(hold) + " was renewed before it was granted");
    }
  }
  if (hold.lost_until < std::min(hold.end, hold.deadline)) {
    complain(name(hold) + " was said to be lost " +
             std::to_string(std::min(hold.end, hold.deadline) - hold.lost_until) +
             " us before it can have been");
  }
}

// A renewal that was taken when every deadline before it had passed.
void Check::check_not_revived(const Hold& hold) {
  if (hold.renewed_perhaps) return;
  for (const Renewal& renewal : hold.renewals) {
    Moment deadline = after(hold.granted.until, hold.lease);
    for (const Renewal& other : hold.renewals) {
      if (&other == &renewal || other.window.from > renewal.window.until) continue;
      deadline = std::max(deadline, after(other.window.until, other.lease));
    }
    if (renewal.window.from > after(deadline, options_.clock_error)) {
      complain(name(hold) + " was renewed after its deadline");
    }
  }
}

void Check::check_sighting(const Line& line, const Sighting& sighting) {
  const std::size_t changes = 2 * line.holds.size();
  if (!sighting.free && (changes == 0 || moment(line, 0) > sighting.window.until)) {
    complain("operation " + std::to_string(sighting.number) +
             " was refused, though nobody can have held the slot");
  }
}

// Somebody without an answer may have the slot.
bool Check::may_be_hidden(std::uint32_t slot, Moment until) const {
  for (const std::string& name : {history_.slots[slot].name, history_.slots[slot].pool}) {
    const auto found = any_unanswered_.find(name);
    if (found != any_unanswered_.end() && found->second <= until) return true;
  }
  return false;
}

// --- Capacity ---

// Counts what was necessarily held: from the answer of the acquire to the earliest possible end.
void Check::check_capacities() {
  std::map<std::string, std::vector<std::pair<Moment, int>>> edges;
  for (const Hold& hold : holds_) {
    const std::string& pool = history_.slots[hold.slot].pool;
    if (!history_.capacities.contains(pool)) continue;
    const Moment from = std::min(hold.granted.until, hold.seen_until);
    Moment until = std::min(hold.may_be_released_from, hold.deadline);
    if (hold.released) until = std::min(until, hold.released->from);
    if (from >= until) continue;
    edges[pool].push_back({from, +1});
    if (until != never) edges[pool].push_back({until, -1});
  }
  for (auto& [pool, list] : edges) {
    std::sort(list.begin(), list.end());  // at the same moment ends come first
    std::int64_t held = 0;
    const std::int64_t capacity = history_.capacities.at(pool);
    for (const auto& [at, change] : list) {
      held += change;
      if (held <= capacity) continue;
      complain("pool " + pool + " had " + std::to_string(held) + " holders at " +
               std::to_string(at) + ", and has " + std::to_string(capacity) + " slots");
      break;
    }
  }
}

}  // namespace

Report check(const History& history, const CheckOptions& options) {
  return Check(history, options).run();
}

}  // namespace permit::lock_history
