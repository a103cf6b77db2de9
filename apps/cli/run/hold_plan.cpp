#include "apps/cli/run/hold_plan.h"

#include <time.h>

#include <algorithm>

namespace permit::cli {

using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

// Between the kill and the end of what may be used: for the kernel to carry it out.
Duration margin(Duration span) { return std::min<Duration>(span / 20, milliseconds(250)); }

constexpr Instant far_away = Instant::max();

}  // namespace

Instant BootClock::now() {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return Instant(std::chrono::duration_cast<Duration>(seconds(now.tv_sec) +
                                                      std::chrono::nanoseconds(now.tv_nsec)));
}

HoldPlan::HoldPlan(const Terms& terms, Instant start, Instant confirmed)
    : terms_(terms), start_(start), confirmed_(confirmed), renew_at_(confirmed + terms.lease / 3) {}

void HoldPlan::renewed(Instant sent) {
  is_renewing_ = false;
  unanswered_since_.reset();
  is_told_overdue_ = false;
  confirmed_ = std::max(confirmed_, sent);
  renew_at_ = confirmed_ + terms_.lease / 3;
}

void HoldPlan::unanswered(Instant now) {
  is_renewing_ = false;
  if (!unanswered_since_) unanswered_since_ = now;
  renew_at_ = now + std::clamp<Duration>(terms_.lease / 30, milliseconds(50), seconds(2));
}

std::optional<Instant> HoldPlan::limit() const {
  if (terms_.max_hold.count() == 0) return std::nullopt;
  return start_ + terms_.max_hold;
}

Instant HoldPlan::deadline() const {
  return std::min(confirmed_ + terms_.lease, limit().value_or(far_away));
}

// Before the end of a span that is `share` times the longest that stopping may take: a command gets
// less time to end than it was promised if otherwise it would have none to run.
Duration HoldPlan::stopping_time(Duration span, int share) const {
  return std::min(terms_.kill_after, span / share) + margin(span);
}

Instant HoldPlan::stops_at() const {
  const Instant unconfirmed = confirmed_ + terms_.lease - stopping_time(terms_.lease, 3);
  if (!limit()) return unconfirmed;
  return std::min(unconfirmed, *limit() - stopping_time(terms_.max_hold, 2));
}

StopReason HoldPlan::reason_to_stop(Instant now) const {
  if (limit() && now >= *limit() - stopping_time(terms_.max_hold, 2)) {
    return StopReason::max_hold;
  }
  if (terms_.on_lost == OnLost::warn) return StopReason::none;
  if (is_lost_) return StopReason::lost;
  if (now >= confirmed_ + terms_.lease) return StopReason::lease_ended;
  if (now >= stops_at()) return StopReason::unconfirmed;
  return StopReason::none;
}

HoldPlan::Action HoldPlan::next_action(Instant now) {
  if (stop_reason_ == StopReason::none) {
    stop_reason_ = reason_to_stop(now);
    if (stop_reason_ != StopReason::none) return Action::stop;
  }
  if (terms_.warn_before && !is_warned_ && limit() && now >= *limit() - *terms_.warn_before) {
    is_warned_ = true;
    return Action::warn;
  }
  if (terms_.on_lost == OnLost::warn && !is_lost_ && !is_told_overdue_ && now >= deadline()) {
    is_told_overdue_ = true;
    return Action::tell_overdue;
  }
  if (!is_lost_ && !is_renewing_ && now >= renew_at_) {
    is_renewing_ = true;
    return Action::renew;
  }
  return Action::none;
}

Instant HoldPlan::next_look() const {
  Instant look = far_away;
  if (stop_reason_ == StopReason::none) {
    if (terms_.on_lost == OnLost::stop) {
      look = std::min(look, stops_at());
    } else if (limit()) {
      look = std::min(look, *limit() - stopping_time(terms_.max_hold, 2));
    }
  }
  if (terms_.warn_before && !is_warned_ && limit()) {
    look = std::min(look, *limit() - *terms_.warn_before);
  }
  if (terms_.on_lost == OnLost::warn && !is_lost_ && !is_told_overdue_) {
    look = std::min(look, deadline());
  }
  if (!is_lost_ && !is_renewing_) look = std::min(look, renew_at_);
  return look;
}

Instant HoldPlan::kill_at(Instant now) const {
  const Instant wanted = now + terms_.kill_after;
  if (is_lost_) return wanted;  // the slot is gone already; the command is to end well
  const bool keeps_lease = terms_.on_lost == OnLost::stop;
  Instant latest = limit() ? *limit() - margin(terms_.max_hold) : far_away;
  if (keeps_lease) latest = std::min(latest, confirmed_ + terms_.lease - margin(terms_.lease));
  return std::max(now, std::min(wanted, latest));
}

}  // namespace permit::cli
