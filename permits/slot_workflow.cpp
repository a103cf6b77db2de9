#include "permits/slot_workflow.h"

#include <algorithm>
#include <memory>

namespace permit::permits {

using worker::Async;
using worker::Workflow;

namespace {

Async<std::string> hold(Workflow workflow, PermitSlotInput input) {
  struct State {
    bool held = true;
  };
  const auto state = std::make_shared<State>();
  workflow.on_signal("release", [state] { state->held = false; });
  workflow.on_signal("renew", [] {});  // the server has moved the timer
  workflow.on_query("held", state, [workflow](const State& now) {
    return now.held && !workflow.info().is_closed;  // the server may have ended it
  });

  // From the run's start, not from whenever a worker came to it.
  Time deadline = workflow.start_time() +
                  std::chrono::round<Duration>(std::chrono::duration<double>(input.lease_seconds));
  const auto& granted = workflow.info().permit;
  if (granted) deadline = std::min(deadline, granted->deadline);
  // It may have been renewed before a worker came to it: then the server fires this timer later.
  deadline = std::max<Time>(deadline, workflow.now() + std::chrono::milliseconds(1));
  const auto released = [state] { return !state->held; };
  const bool in_time = co_await workflow.wait_until(released, deadline, "lease");
  state->held = false;
  if (in_time) co_return "released";
  workflow.log(worker::LogLevel::warning, "the lease of slot " + input.slot + " of " +
                                              input.resource + " ended without a release");
  co_return "lease_expired";
}

}  // namespace

void register_permit_slot(worker::Registry& registry) { registry.workflow(permit_slot, hold); }

Duration grace_of(Duration lease) {
  return std::max<Duration>(std::chrono::seconds(5), lease / 10);
}

}  // namespace permit::permits
