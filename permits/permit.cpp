#include "permits/permit.h"

#include <algorithm>
#include <utility>

#include "permits/slot_workflow.h"

namespace permit::permits {

using worker::ActivityOptions;
using worker::Async;
using worker::Child;
using worker::Future;
using worker::LogLevel;
using worker::Workflow;
using namespace std::chrono_literals;

namespace {

constexpr Duration close_patience = 5s;
// An activity is to be over before its permit is.
Duration margin_of(Duration left) { return std::min<Duration>(1s, left / 20); }

std::string slot_of(const WorkflowId& id) { return id.value.substr(id.value.rfind(':') + 1); }

}  // namespace

struct Held::Hold {
  Hold(Workflow of, Child<std::string> run, PermitOptions terms)
      : workflow(std::move(of)),
        child(std::move(run)),
        closed(child.result()),
        options(std::move(terms)),
        slot(slot_of(child.id())),
        since(workflow.now()),
        deadline(child.deadline()) {
    Duration first = options.lease();
    if (options.is_plain()) {
      // The server knows the timeout of the run only, not the lease in its input.
      if (deadline != Time{}) deadline -= grace_of(options.lease());
    } else if (options.max_hold().count() > 0) {
      first = std::min(first, options.max_hold());
    }
    if (deadline == Time{}) {
      deadline = since + first;
    } else {
      since = deadline - first;  // this task may have begun long after the grant
    }
  }

  Workflow workflow;  // shielded: what it does is done all the same
  Child<std::string> child;
  Future<std::string> closed;
  PermitOptions options;
  std::string slot;
  Time since;
  Time deadline;
  bool released = false;  // by us, in time or not
  std::optional<Outcome> loss;
};

Permit::Permit(const Workflow& workflow, Child<std::string> child, PermitOptions options)
    : Held(std::make_shared<Hold>(workflow.shielded(), std::move(child), std::move(options))) {}

const std::string& Held::id() const { return hold_->child.id().value; }
const std::string& Held::slot() const { return hold_->slot; }
const RunId& Held::run_id() const { return hold_->child.run_id(); }
std::int64_t Held::fence() const { return hold_->child.fence().value; }
Time Held::deadline() const { return hold_->deadline; }
bool Held::is_held() const { return !hold_->released && !hold_->closed.is_ready(); }
std::optional<Outcome> Held::loss() const { return hold_->loss; }

ActivityOptions Held::cover(ActivityOptions options) const {
  const PermitOptions& terms = hold_->options;
  const bool renewed = terms.is_renewed_by_heartbeats() && !terms.is_plain();
  if (renewed) options.under_permit(run_id());
  options.on_cancel(worker::OnCancel::wait);  // the slot is in use until it has stopped
  if (!options.command().retry_policy) options.retry(1);
  if (options.command().schedule_to_close_timeout.count() == 0) {
    Time end = hold_->deadline;
    if (renewed) {
      if (terms.max_hold().count() == 0) return options;
      end = hold_->since + terms.max_hold();
    }
    const Duration left = end - hold_->workflow.now();
    options.schedule_to_close(std::max<Duration>(left - margin_of(left), 1ms));
  }
  return options;
}

// --- Renewing, releasing ---

Async<std::optional<Time>> Held::renew() const { return renew_hold(hold_); }

Async<std::optional<Time>> Held::renew_hold(std::shared_ptr<Hold> hold) {
  if (hold->released || hold->closed.is_ready()) co_return std::nullopt;
  std::optional<Time> deadline;
  const Future<std::optional<Time>> renewed = hold->child.renew();
  try {
    deadline = co_await renewed;
  } catch (const worker::ExternalFailed&) {
    // It has ended: too late.
  }
  if (deadline) hold->deadline = *deadline;
  co_return deadline;
}

Async<std::optional<Outcome>> Held::release() const { return release_hold(hold_); }

Async<std::optional<Outcome>> Held::release_hold(std::shared_ptr<Hold> hold) {
  const bool ask = !hold->released && !hold->closed.is_ready();
  hold->released = true;
  if (ask) {
    const Future<void> told = hold->child.signal("release");
    try {
      co_await told;
    } catch (const worker::ExternalFailed&) {
      // It has ended; its result says how.
    }
  }
  const auto has_closed = [hold] { return hold->closed.is_ready(); };
  const bool is_known = co_await hold->workflow.wait_until(has_closed, close_patience);
  if (!is_known) co_return std::nullopt;
  const Outcome outcome = co_await end_of(hold->closed);
  if (outcome != Outcome::released) {
    hold->workflow.log(LogLevel::info, hold->child.id().value + " had ended before its release");
  }
  co_return outcome;
}

Async<Outcome> Held::end_of(Future<std::string> closed) {
  try {
    const std::string result = co_await closed;
    if (result == "released") co_return Outcome::released;
    if (result == "lease_expired") co_return Outcome::lease_expired;
  } catch (const worker::ChildFailed& failed) {
    if (failed.is_timeout()) co_return Outcome::lease_expired;  // the server's own backstop
  } catch (const worker::Canceled&) {
    // By somebody else: we never do.
  }
  co_return Outcome::force_released;
}

void Held::on_loss(std::function<void()> lost) const {
  hold_->workflow.spawn(watch(hold_, std::move(lost)));
}

Async<void> Held::watch(std::shared_ptr<Hold> hold, std::function<void()> lost) {
  const Outcome outcome = co_await end_of(hold->closed);
  if (hold->released) co_return;
  hold->loss = outcome;
  lost();
}

void Permit::let_go() noexcept {
  const std::shared_ptr<Hold> hold = std::exchange(hold_, nullptr);
  if (hold == nullptr || hold->released || hold->closed.is_ready()) return;
  if (hold->workflow.is_closing()) return;
  try {
    hold->child.signal("release");
    hold->released = true;
  } catch (const std::exception&) {
    // Let go outside its workflow's code: that can record nothing, and the lease will end it.
  }
}

}  // namespace permit::permits
