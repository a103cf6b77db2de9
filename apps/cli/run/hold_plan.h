// When a hold is to be renewed, when its command is to be warned and stopped, and why. Pure: every
// instant is an argument, on a clock that nobody sets and that goes on while the machine sleeps.
#pragma once

#include <chrono>
#include <optional>

#include "apps/cli/run/run_options.h"

namespace permit::cli {

struct BootClock {
  using rep = Duration::rep;
  using period = Duration::period;
  using duration = Duration;
  using time_point = std::chrono::time_point<BootClock>;
  static constexpr bool is_steady = true;
  static time_point now();
};
using Instant = BootClock::time_point;

enum class StopReason {
  none,
  max_hold,      // its time limit is near
  unconfirmed,   // the lease ends soon and the server cannot be reached
  lease_ended,   // the deadline has passed, as after a sleep of the machine
  lost,          // the server says that the permit is not ours any more
  wrapper_gone,  // whoever waits for the command was killed
};

class HoldPlan {
 public:
  struct Terms {
    Duration lease{};
    Duration max_hold{};  // zero: no limit
    Duration kill_after{};
    std::optional<Duration> warn_before;
    OnLost on_lost = OnLost::stop;
  };

  // Granted at `start` at the earliest, and confirmed by an answer to a request sent at
  // `confirmed`.
  HoldPlan(const Terms& terms, Instant start, Instant confirmed);

  // All slots were renewed by requests the first of which was sent at `sent`.
  void renewed(Instant sent);
  // The server did not answer.
  void unanswered(Instant now);
  void lost() { is_lost_ = true; }

  // What is due. Each is said once, but for renewals.
  enum class Action { none, renew, warn, stop, tell_overdue };
  Action next_action(Instant now);
  // When to look again, at the latest.
  Instant next_look() const;

  StopReason stop_reason() const { return stop_reason_; }
  // A command that was told to stop at `now` is killed then: before the lease can end.
  Instant kill_at(Instant now) const;

  // Nobody else is given the slot before.
  Instant deadline() const;
  std::optional<Instant> limit() const;
  bool is_unanswered() const { return unanswered_since_.has_value(); }
  Instant unanswered_since() const { return unanswered_since_.value(); }
  Instant stops_at() const;

 private:
  StopReason reason_to_stop(Instant now) const;
  Duration stopping_time(Duration span, int share) const;

  const Terms terms_;
  const Instant start_;
  Instant confirmed_;
  Instant renew_at_;
  bool is_renewing_ = false;
  bool is_lost_ = false;
  bool is_warned_ = false;
  bool is_told_overdue_ = false;
  std::optional<Instant> unanswered_since_;
  StopReason stop_reason_ = StopReason::none;
};

}  // namespace permit::cli
