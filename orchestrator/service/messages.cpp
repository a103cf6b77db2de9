// How a Change delivers messages: what one run's transition does to others, in the same commit.
#include "orchestrator/core/client_transitions.h"
#include "orchestrator/core/clock_transitions.h"
#include "orchestrator/core/validate.h"
#include "orchestrator/protocol/ensure.h"
#include "orchestrator/protocol/error.h"
#include "orchestrator/service/change.h"
#include "orchestrator/service/pools.h"
#include "orchestrator/service/token_holds.h"
#include "orchestrator/service/uniqueness.h"

namespace permit::service {

// The answer to what an open run asked for. A run that has closed meanwhile does not hear of it.
void Change::tell(const core::Sender& sender, EventAttributes attributes) {
  core::RunState& state = run(sender.run);
  if (!state.is_open()) return;
  step(state, [&](core::Transition& t) { t.receive(std::move(attributes)); });
}

namespace {

event::WorkflowExecutionStarted started_by(const core::StartChild& message,
                                           const std::string& namespace_) {
  const command::StartChildWorkflowExecution& c = message.attributes;
  event::WorkflowExecutionStarted started;
  started.workflow_type = c.workflow_type;
  started.parent_workflow_namespace = namespace_;
  started.parent_workflow_execution = message.parent.execution;
  started.parent_initiated_event_id = message.parent.initiated_event_id;
  started.task_queue = c.task_queue;
  started.task_queue.kind = TaskQueueKind::normal;
  started.input = c.input;
  started.workflow_execution_timeout = c.workflow_execution_timeout;
  started.workflow_run_timeout = c.workflow_run_timeout;
  started.workflow_task_timeout = c.workflow_task_timeout;
  started.memo = c.memo;
  started.search_attributes = c.search_attributes;
  started.header = c.header;
  started.root_workflow_execution = message.root;
  started.priority = c.priority;
  started.parent_close_policy = c.parent_close_policy;
  return started;
}

event::StartChildWorkflowExecutionFailed start_failed(const core::StartChild& message,
                                                      std::optional<PermitFailure> why) {
  event::StartChildWorkflowExecutionFailed failed;
  failed.namespace_ = message.attributes.namespace_;
  failed.workflow_id = message.attributes.workflow_id;
  failed.workflow_type = message.attributes.workflow_type;
  failed.cause = StartChildWorkflowExecutionFailedCause::workflow_already_exists;
  failed.initiated_event_id = message.parent.initiated_event_id;
  failed.workflow_task_completed_event_id = message.workflow_task_completed_event_id;
  failed.permit_failure = std::move(why);
  return failed;
}

// Not even a reuse policy that terminates lets a child have the id of the run that starts it.
bool takes_parents_id(Change& change, const core::StartChild& message) {
  const core::RunState& parent = change.run(message.parent.run);
  return parent.is_open() && parent.workflow_id == message.attributes.workflow_id;
}

}  // namespace

void Change::deliver(core::StartChild& message) {
  const bool parent_open = run(message.parent.run).is_open();
  if (!parent_open && message.attributes.parent_close_policy != ParentClosePolicy::abandon) return;
  const std::string namespace_ = run(message.parent.run).namespace_;
  const command::StartChildWorkflowExecution& c = message.attributes;
  if (c.permit) {
    parts_.pools.request(*this, message);
    return;
  }
  NewRun child{namespace_, c.workflow_id, {}, started_by(message, namespace_)};
  if (core::has_permit_prefix(c.workflow_id)) {
    if (auto refusal = parts_.pools.admit_plain(*this, child)) {
      parts_.pools.note_conflict(core::parse_permit_id(c.workflow_id)->pool);
      tell(message.parent, start_failed(message, std::move(refusal)));
      return;
    }
  } else if (takes_parents_id(*this, message) ||
             !may_start(*this, latest_run(namespace_, c.workflow_id), c.workflow_id_reuse_policy,
                        WorkflowIdConflictPolicy::unspecified)) {
    tell(message.parent, start_failed(message, std::nullopt));
    return;
  }
  const core::RunState& started = start_run(std::move(child));
  if (started.is_permit()) parts_.pools.granted_plain(*this, started);
  event::ChildWorkflowExecutionStarted e;
  e.namespace_ = namespace_;
  e.initiated_event_id = message.parent.initiated_event_id;
  e.workflow_execution = started.execution();
  e.workflow_type = c.workflow_type;
  e.header = c.header;
  if (started.is_permit()) {
    e.fence = started.started.permit->fence;
    e.deadline = started.started.permit->deadline;
  }
  tell(message.parent, std::move(e));
}

// The run that a workflow means: by run id if it gives one, else the open one, else the latest.
core::RunState* Change::external_target(const core::Sender& sender,
                                        const WorkflowExecution& target) {
  const std::string& namespace_ = run(sender.run).namespace_;
  core::RunState* state =
      target.run_id.empty() ? latest_run(namespace_, target.workflow_id) : run_by_id(target.run_id);
  if (state == nullptr || state->workflow_id != target.workflow_id) return nullptr;
  if (state->namespace_ != namespace_ || state->number == sender.run) return nullptr;
  return state;
}

void Change::note_late_release(const core::RunState& permit) {
  if (!permit.is_permit() || !permit.hold_end) return;
  if (permit.hold_end->outcome == Outcome::released) return;
  late_releases_.push_back(permit.number);
  also_write([fence = permit.started.permit->fence, at = now()](store::Store& store) {
    store.note_late_release(fence, at);
  });
}

void Change::deliver(core::SignalRun& message) {
  const command::SignalExternalWorkflowExecution& c = message.attributes;
  const std::string namespace_ = run(message.sender.run).namespace_;
  const auto fail = [&](SignalExternalWorkflowExecutionFailedCause cause) {
    tell(message.sender, event::SignalExternalWorkflowExecutionFailed{
                             cause, 0, namespace_, c.execution, message.sender.initiated_event_id});
  };
  core::RunState* target = external_target(message.sender, *c.execution);
  if (target != nullptr && spares_tokens_ && takes_token(*target, c.signal_name)) target = nullptr;
  const bool allowed = target != nullptr && target->is_open() &&
                       (!c.child_workflow_only ||
                        target->started.parent_workflow_execution == message.sender.execution);
  if (!allowed) {
    if (target != nullptr && c.signal_name == "release") note_late_release(*target);
    fail(SignalExternalWorkflowExecutionFailedCause::external_workflow_execution_not_found);
    return;
  }
  event::WorkflowExecutionSignaled signaled;
  signaled.signal_name = c.signal_name;
  signaled.input = c.input;
  signaled.header = c.header;
  signaled.external_workflow_execution = message.sender.execution;
  event::ExternalWorkflowExecutionSignaled delivered{
      message.sender.initiated_event_id, namespace_, c.execution, {}};
  try {
    delivered.permit_deadline = signal(*target, std::move(signaled)).value_or(Time{});
  } catch (const Error& error) {
    if (error.code() != ErrorCode::resource_exhausted) throw;
    fail(SignalExternalWorkflowExecutionFailedCause::signal_count_limit_exceeded);
    return;
  }
  tell(message.sender, std::move(delivered));
}

std::optional<Time> Change::signal(core::RunState& target,
                                   event::WorkflowExecutionSignaled signaled) {
  const bool renews = signaled.signal_name == "renew" && target.is_managed_permit();
  core::Taken taken = core::Taken::already;
  step(target,
       [&](core::Transition& t) { taken = core::signal(t, std::move(signaled), limits()); });
  if (!renews || taken == core::Taken::already) return std::nullopt;
  return core::renew(target, now(), std::nullopt);
}

void Change::deliver(core::CancelRun& message) {
  const command::RequestCancelExternalWorkflowExecution& c = message.attributes;
  const std::string namespace_ = run(message.sender.run).namespace_;
  const WorkflowExecution requested{c.workflow_id, c.run_id};
  const event::ExternalWorkflowExecutionCancelRequested done{message.sender.initiated_event_id,
                                                             namespace_, requested};
  if (const auto waiting = core::parse_waiting_id(c.workflow_id)) {
    parts_.pools.withdraw(*this, message.sender.run, *waiting);
    tell(message.sender, done);
    return;
  }
  core::RunState* target = external_target(message.sender, requested);
  if (target != nullptr && spares_tokens_ && is_held_with_token(*target)) target = nullptr;
  const bool allowed =
      target != nullptr && (!c.child_workflow_only ||
                            target->started.parent_workflow_execution == message.sender.execution);
  if (!allowed) {
    using Cause = CancelExternalWorkflowExecutionFailedCause;
    tell(message.sender, event::RequestCancelExternalWorkflowExecutionFailed{
                             Cause::external_workflow_execution_not_found, 0, namespace_, requested,
                             message.sender.initiated_event_id});
    return;
  }
  if (target->is_open()) {
    event::WorkflowExecutionCancelRequested cancel;
    cancel.cause = c.reason;
    cancel.external_initiated_event_id = message.sender.initiated_event_id;
    cancel.external_workflow_execution = message.sender.execution;
    step(*target, [&](core::Transition& t) { core::request_cancel(t, std::move(cancel)); });
  }
  tell(message.sender, done);
}

namespace {

// The parent's event for a child's close.
EventAttributes child_close_event(const core::ChildClosed& message, const core::ChildState& child,
                                  std::int64_t started_event_id) {
  const auto fill = [&](auto e) {
    e.namespace_ = child.namespace_;
    e.workflow_execution = message.child;
    e.workflow_type = child.workflow_type;
    e.initiated_event_id = message.initiated_event_id;
    e.started_event_id = started_event_id;
    return EventAttributes(std::move(e));
  };
  if (const auto* done = std::get_if<event::WorkflowExecutionCompleted>(&message.close)) {
    event::ChildWorkflowExecutionCompleted e;
    e.result = done->result;
    return fill(std::move(e));
  }
  if (const auto* failed = std::get_if<event::WorkflowExecutionFailed>(&message.close)) {
    event::ChildWorkflowExecutionFailed e;
    e.failure = failed->failure;
    e.retry_state = failed->retry_state;
    return fill(std::move(e));
  }
  if (const auto* canceled = std::get_if<event::WorkflowExecutionCanceled>(&message.close)) {
    event::ChildWorkflowExecutionCanceled e;
    e.details = canceled->details;
    return fill(std::move(e));
  }
  if (const auto* timed_out = std::get_if<event::WorkflowExecutionTimedOut>(&message.close)) {
    event::ChildWorkflowExecutionTimedOut e;
    e.retry_state = timed_out->retry_state;
    return fill(std::move(e));
  }
  ENSURE(std::holds_alternative<event::WorkflowExecutionTerminated>(message.close));
  return fill(event::ChildWorkflowExecutionTerminated{});
}

}  // namespace

void Change::deliver(core::ChildClosed& message) {
  core::RunState* parent = run_by_id(message.parent.run_id);
  if (parent == nullptr || !parent->is_open()) return;
  const auto child = parent->children.find(message.initiated_event_id);
  if (child == parent->children.end()) return;
  std::int64_t started_event_id = 0;  // 0: ChildWorkflowExecutionStarted is itself still buffered
  for (const core::ChildState::Run& known : child->second.runs) {
    if (known.execution == message.child) started_event_id = known.started_event_id;
  }
  EventAttributes close = child_close_event(message, child->second, started_event_id);
  step(*parent, [&](core::Transition& t) { t.receive(std::move(close)); });
}

void Change::deliver(core::ParentClosed& message) {
  const core::RunState* parent = run_by_id(message.parent.run_id);
  ENSURE(parent != nullptr);
  core::RunState* child = open_run(parent->namespace_, message.child.workflow_id);
  // The id may be in use by somebody else's run by now: that one is left alone.
  if (child == nullptr || child->first_run_id() != message.child.run_id) return;
  if (message.policy == ParentClosePolicy::request_cancel) {
    event::WorkflowExecutionCancelRequested cancel;
    cancel.cause = "by parent close policy";
    cancel.external_workflow_execution = message.parent;
    step(*child, [&](core::Transition& t) { core::request_cancel(t, std::move(cancel)); });
    return;
  }
  event::WorkflowExecutionTerminated terminated;
  terminated.reason = "by parent close policy";
  terminated.identity = "permit-server";
  terminated.parent_close = message.how;
  step(*child, [&](core::Transition& t) { core::terminate(t, std::move(terminated)); });
}

void Change::deliver(core::LeaveLine& message) { parts_.pools.leave(*this, message); }

void Change::deliver(core::ContinueRun& message) {
  const core::RunState& old = run(message.old_run);
  start_run({old.namespace_, old.workflow_id, message.run_id, std::move(message.started)});
}

void Change::deliver(core::PermitEnded& message) { parts_.pools.ended(*this, run(message.run)); }

void Change::deliver(core::SleeperChanged& message) {
  parts_.pools.sleeper_changed(*this, message.pool, run(message.run));
}

void Change::deliver(core::TaskClosed& message) { parts_.pools.task_closed(*this, message.run); }

void Change::deliver(core::RenewPermit& message) {
  core::RunState* permit = run_by_id(message.permit_run_id);
  if (permit == nullptr || !permit->is_open() || !permit->is_managed_permit()) return;
  if (permit->started.parent_workflow_execution != run(message.holder).execution()) return;
  if (core::renew(*permit, now(), std::nullopt)) touch(*permit);
}

}  // namespace permit::service
