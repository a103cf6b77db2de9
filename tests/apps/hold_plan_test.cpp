#include "apps/cli/run/hold_plan.h"

#include <doctest/doctest.h>

namespace permit::cli {

namespace {

using namespace std::chrono_literals;
using Action = HoldPlan::Action;

constexpr Instant start{1h};

HoldPlan::Terms terms() {
  HoldPlan::Terms terms;
  terms.lease = 120s;
  terms.kill_after = 10s;
  return terms;
}

}  // namespace

TEST_CASE("A hold is renewed every third of its lease") {
  HoldPlan plan(terms(), start, start);
  CHECK(plan.next_look() == start + 40s);
  CHECK(plan.next_action(start + 39s) == Action::none);
  CHECK(plan.next_action(start + 40s) == Action::renew);
  CHECK(plan.next_action(start + 41s) == Action::none);  // under way
  plan.renewed(start + 40s);
  CHECK(plan.deadline() == start + 160s);
  CHECK(plan.next_look() == start + 80s);
}

TEST_CASE("A renewal counts from when it was sent, and an older one takes nothing back") {
  HoldPlan plan(terms(), start, start);
  plan.renewed(start + 40s);
  plan.renewed(start + 30s);
  CHECK(plan.deadline() == start + 160s);
}

TEST_CASE("An outage of 65 s that begins at the worst moment costs nothing") {
  HoldPlan plan(terms(), start, start);
  for (Instant now = start + 40s; now < start + 105s; now += 1s) {
    const Action action = plan.next_action(now);
    REQUIRE(action != Action::stop);
    if (action == Action::renew) plan.unanswered(now + 500ms);
  }
  CHECK(plan.is_unanswered());
  plan.renewed(start + 105s);
  CHECK_FALSE(plan.is_unanswered());
  CHECK(plan.next_action(start + 111s) == Action::none);
}

TEST_CASE("An unconfirmed hold is stopped so early that the kill comes before the deadline") {
  HoldPlan plan(terms(), start, start);
  plan.unanswered(start + 40s);
  Instant now = start + 40s;
  while (plan.next_action(now) != Action::stop) now += 10ms;
  CHECK(plan.stop_reason() == StopReason::unconfirmed);
  CHECK(now > start + 109s);
  CHECK(now < start + 110s);
  CHECK(plan.kill_at(now) > now + 9900ms);
  CHECK(plan.kill_at(now) < plan.deadline());
  CHECK(plan.next_action(now) != Action::stop);  // once
}

TEST_CASE("After a sleep beyond the deadline the kill is due at once") {
  HoldPlan plan(terms(), start, start);
  const Instant woken = start + 3h;
  CHECK(plan.next_action(woken) == Action::stop);
  CHECK(plan.stop_reason() == StopReason::lease_ended);
  CHECK(plan.kill_at(woken) == woken);
}

TEST_CASE("A lost hold is stopped at once and given its time to end") {
  HoldPlan plan(terms(), start, start);
  plan.lost();
  CHECK(plan.next_action(start + 1s) == Action::stop);
  CHECK(plan.stop_reason() == StopReason::lost);
  CHECK(plan.kill_at(start + 1s) == start + 11s);
  CHECK(plan.next_action(start + 100s) == Action::none);  // nothing to renew
}

TEST_CASE("A time limit warns, then stops, and is not lifted by renewals") {
  HoldPlan::Terms limited = terms();
  limited.lease = 30s;
  limited.max_hold = 60s;
  limited.warn_before = 20s;
  HoldPlan plan(limited, start, start);
  bool is_warned = false;
  Instant now = start;
  for (;; now += 100ms) {
    const Action action = plan.next_action(now);
    if (action == Action::renew) plan.renewed(now);
    if (action == Action::warn) {
      is_warned = true;
      CHECK(now == start + 40s);
    }
    if (action == Action::stop) break;
  }
  CHECK(is_warned);
  CHECK(plan.stop_reason() == StopReason::max_hold);
  CHECK(now > start + 49s);
  CHECK(now < start + 50s);
  CHECK(plan.kill_at(now) < start + 60s);
  CHECK(plan.deadline() <= start + 60s);
}

TEST_CASE("A short time limit leaves half of itself to the command") {
  HoldPlan::Terms limited = terms();
  limited.max_hold = 2s;
  limited.lease = 1s;
  HoldPlan plan(limited, start, start);
  plan.renewed(start + 800ms);
  CHECK(plan.next_action(start + 800ms) == Action::none);
  CHECK(plan.next_action(start + 950ms) == Action::stop);
}

TEST_CASE("Who is only to be warned is not stopped, but at the time limit") {
  HoldPlan::Terms bold = terms();
  bold.on_lost = OnLost::warn;
  SUBCASE("unanswered") {
    HoldPlan plan(bold, start, start);
    plan.unanswered(start + 40s);
    CHECK(plan.next_action(start + 120s) == Action::tell_overdue);
    CHECK(plan.next_action(start + 121s) == Action::renew);
    plan.renewed(start + 121s);
    CHECK(plan.next_action(start + 122s) == Action::none);
  }
  SUBCASE("lost") {
    HoldPlan plan(bold, start, start);
    plan.lost();
    CHECK(plan.next_action(start + 1h) == Action::none);
    CHECK(plan.next_look() == Instant::max());
  }
  SUBCASE("the limit") {
    bold.max_hold = 300s;
    HoldPlan plan(bold, start, start);
    plan.lost();
    CHECK(plan.next_action(start + 295s) == Action::stop);
    CHECK(plan.stop_reason() == StopReason::max_hold);
  }
}

TEST_CASE("A failed renewal is tried again soon") {
  HoldPlan plan(terms(), start, start);
  CHECK(plan.next_action(start + 40s) == Action::renew);
  plan.unanswered(start + 43s);
  CHECK(plan.next_look() == start + 45s);
  CHECK(plan.next_action(start + 45s) == Action::renew);
}

}  // namespace permit::cli
