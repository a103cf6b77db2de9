// Whether a history of locks could have come about: is there an order of all that was done, each
// between its request and its answer, in which every slot behaves as a lock with a lease should?
//
// - A grant finds the slot free, and its fence is above all earlier ones of the slot.
// - A release frees the slot of the run that it names, once, and of no other.
// - A lease frees the slot at its deadline or later, never before. A renewal moves the deadline;
//   it revives nothing.
// - What got no answer may happen at any later time, or never.
// - A pool never has more holders than it has slots.
//
// In general that is a search. Here it is none: fences order the grants of a slot, so its story is
// one chain "grant, end, grant, end…" whose moments need only be found. Every rule says that some
// moment is not before another, so there is an earliest solution, which is reached by raising
// moments until all rules hold; the history is sound if that solution keeps within the answers.
// Who saw the slot free or taken may belong to any gap of that kind: the last one that still began
// before the answer asks least of all others.
#pragma once

#include <string>
#include <vector>

#include "tests/lock_history/history.h"

namespace permit::lock_history {

struct CheckOptions {
  Moment clock_error = 0;  // between the server's clock and that of the history
};

struct Report {
  std::vector<std::string> violations;  // the first of them; sentences
  std::uint64_t operations = 0;
  std::uint64_t ok = 0;       // that had their answer; that the slot is taken is one, too
  std::uint64_t unknown = 0;  // without an answer
  std::uint64_t grants = 0;   // that were answered
  std::uint64_t expired = 0;  // holds that no release can have ended, and that somebody followed
};

Report check(const History& history, const CheckOptions& options = {});

}  // namespace permit::lock_history
