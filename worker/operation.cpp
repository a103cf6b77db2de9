#include "worker/operation.h"

#include <algorithm>
#include <utility>

#include "orchestrator/protocol/ensure.h"

namespace permit::worker {

namespace {

template <class E>
RawResult failed(E exception) {
  return std::make_exception_ptr(std::move(exception));
}

// What a timed-out, failed or terminated child or activity is to the code that awaits it.
Failure with_cause(std::string message, std::optional<Failure> cause) {
  Failure failure;
  failure.message = std::move(message);
  failure.source = "PermitCpp";
  if (cause) failure.cause = Box<Failure>(std::move(*cause));
  return failure;
}

template <class E>
Failure child_failure(const E& e, std::string message, std::optional<Failure> cause) {
  Failure failure = with_cause(std::move(message), std::move(cause));
  ChildWorkflowExecutionFailureInfo& info = failure.child_workflow_execution_failure_info.emplace();
  info.namespace_ = e.namespace_;
  info.workflow_execution = e.workflow_execution;
  info.workflow_type = e.workflow_type;
  info.initiated_event_id = e.initiated_event_id;
  info.started_event_id = e.started_event_id;
  return failure;
}

template <class E>
Failure activity_failure(const E& e, std::string message, std::optional<Failure> cause) {
  Failure failure = with_cause(std::move(message), std::move(cause));
  ActivityFailureInfo& info = failure.activity_failure_info.emplace();
  info.scheduled_event_id = e.scheduled_event_id;
  info.started_event_id = e.started_event_id;
  info.retry_state = e.retry_state;
  return failure;
}

// What such a failure says, said once.
std::string told(const char* what, const std::optional<Failure>& cause) {
  if (!cause || cause->message.empty()) return what;
  return std::string(what) + ": " + cause->message;
}

}  // namespace

// --- Operation ---

void Operation::begin(CommandAttributes command) {
  issued_ = host_.issue(std::move(command), shared_from_this());
  scope_action_ = scope_->on_cancel([weak = weak_from_this()] {
    if (const auto operation = weak.lock()) operation->cancel();
  });
}

void Operation::take_back() {
  ENSURE(is_unsent());
  host_.take_back(issued_);
}

void Operation::end() {
  leave_scope();
  host_.forget(*this);
}

void SingleOperation::finish(const RawResult& result) {
  const auto self = shared_from_this();
  end();
  if (const Done done = std::exchange(done_, {})) done(result);
}

// --- Activities ---

void ActivityOperation::apply(const Event& event) {
  if (const auto* e = event.get_if<event::ActivityTaskCompleted>()) {
    finish(e->result);
  } else if (const auto* f = event.get_if<event::ActivityTaskFailed>()) {
    finish(failed(
        ActivityFailed(activity_failure(*f, told("the activity failed", f->failure), f->failure))));
  } else if (const auto* t = event.get_if<event::ActivityTaskTimedOut>()) {
    finish(failed(ActivityFailed(
        activity_failure(*t, told("the activity timed out", t->failure), t->failure))));
  } else if (event.get_if<event::ActivityTaskCanceled>() != nullptr) {
    finish(failed(Canceled("the activity was canceled")));
  }
}

void ActivityOperation::cancel() {
  if (cancel_requested_ || will_end_) return;
  cancel_requested_ = true;
  if (is_unsent()) {
    take_back();
    finish(failed(Canceled()));
    return;
  }
  host_.issue(command::RequestCancelActivityTask{event_id_}, nullptr);
  if (on_cancel_ == OnCancel::request) finish(failed(Canceled()));
}

// --- Timers ---

void TimerOperation::apply(const Event& event) {
  if (event.get_if<event::TimerFired>() != nullptr) finish(std::optional<Payloads>());
}

void TimerOperation::cancel() {
  if (will_end_) return;
  if (is_unsent()) {
    take_back();
  } else {
    host_.issue(command::CancelTimer{timer_id_}, nullptr);
  }
  finish(failed(Canceled()));
}

// --- Signals and cancel requests to others ---

void ExternalOperation::apply(const Event& event) {
  if (event.get_if<event::ExternalWorkflowExecutionCancelRequested>() != nullptr) {
    finish(std::optional<Payloads>());
    return;
  }
  if (const auto* delivered = event.get_if<event::ExternalWorkflowExecutionSignaled>()) {
    // Of use to a `renew` only: the permit's new deadline.
    finish(to_payloads(delivered->permit_deadline.time_since_epoch().count()));
    return;
  }
  if (const auto* f = event.get_if<event::SignalExternalWorkflowExecutionFailed>()) {
    finish(failed(ExternalFailed(
        "the signal reached nobody: there is no open run " +
        f->workflow_execution.value_or(WorkflowExecution{}).workflow_id.value + " of that kind")));
  } else if (const auto* c = event.get_if<event::RequestCancelExternalWorkflowExecutionFailed>()) {
    finish(failed(ExternalFailed(
        "the cancel request reached nobody: there is no open run " +
        c->workflow_execution.value_or(WorkflowExecution{}).workflow_id.value + " of that kind")));
  }
}

// What has been sent cannot be called back.
void ExternalOperation::cancel() {
  if (!is_unsent()) return;
  take_back();
  finish(failed(Canceled()));
}

// --- Children ---

ChildOperation::Run* ChildOperation::find(const RunId& run) {
  const auto found = std::find_if(runs_.begin(), runs_.end(), [&](const Run& one) {
    return one.child.execution.run_id == run;
  });
  return found == runs_.end() ? nullptr : &*found;
}

void ChildOperation::fail(std::exception_ptr exception) {
  const auto self = shared_from_this();
  end();
  started_ = {};
  if (const NotStarted tell = std::exchange(not_started_, {})) tell(std::move(exception));
}

void ChildOperation::recorded(const Event& event) {
  Operation::recorded(event);
  const auto* initiated = event.get_if<event::StartChildWorkflowExecutionInitiated>();
  if (initiated != nullptr) id_ = initiated->workflow_id;
}

void ChildOperation::apply(const Event& event) {
  if (const auto* s = event.get_if<event::ChildWorkflowExecutionStarted>()) {
    runs_.push_back({{*s->workflow_execution, s->fence, s->deadline}, {}, {}});
    if (runs_.size() < runs_wanted_) return;
    not_started_ = {};
    std::vector<ChildRun> runs;
    runs.reserve(runs_.size());
    for (const Run& run : runs_) runs.push_back(run.child);
    if (const Started tell = std::exchange(started_, {})) tell(runs);
  } else if (const auto* n = event.get_if<event::StartChildWorkflowExecutionFailed>()) {
    const bool withdrawn = cancel_requested_ && n->permit_failure &&
                           n->permit_failure->kind == PermitFailureKind::canceled;
    fail(withdrawn ? std::make_exception_ptr(Canceled())
                   : std::make_exception_ptr(
                         ChildNotStarted(n->workflow_id, n->cause, n->permit_failure)));
  } else if (const auto* c = event.get_if<event::ChildWorkflowExecutionCompleted>()) {
    close(*c->workflow_execution, c->result);
  } else if (const auto* f = event.get_if<event::ChildWorkflowExecutionFailed>()) {
    close(*f->workflow_execution,
          failed(ChildFailed(child_failure(*f, told("the child failed", f->failure), f->failure))));
  } else if (const auto* x = event.get_if<event::ChildWorkflowExecutionCanceled>()) {
    close(*x->workflow_execution, failed(Canceled("the child was canceled")));
  } else if (const auto* t = event.get_if<event::ChildWorkflowExecutionTimedOut>()) {
    Failure cause = with_cause("the run timed out", std::nullopt);
    cause.timeout_failure_info.emplace();
    close(*t->workflow_execution,
          failed(ChildFailed(child_failure(*t, "the child timed out", std::move(cause)))));
  } else if (const auto* d = event.get_if<event::ChildWorkflowExecutionTerminated>()) {
    Failure cause = with_cause("the run was terminated", std::nullopt);
    cause.terminated_failure_info.emplace();
    close(*d->workflow_execution,
          failed(ChildFailed(child_failure(*d, "the child was terminated", std::move(cause)))));
  }
}

void ChildOperation::close(const WorkflowExecution& execution, const RawResult& result) {
  const auto self = shared_from_this();
  Run* run = find(execution.run_id);
  // A child that continued as new closes under its last run's id.
  if (run == nullptr && runs_.size() == 1) run = &runs_.front();
  if (run == nullptr || run->result) return;
  run->result = result;
  const std::vector<Done> waiting = std::exchange(run->waiting, {});
  const bool all_closed = std::all_of(runs_.begin(), runs_.end(),
                                      [](const Run& one) { return one.result.has_value(); });
  if (all_closed && runs_.size() >= runs_wanted_) end();
  for (const Done& done : waiting) done(result);
}

void ChildOperation::when_closed(const RunId& run, Done done) {
  Run* found = find(run);
  ENSURE(found != nullptr);
  if (found->result) {
    done(*found->result);
  } else {
    found->waiting.push_back(std::move(done));
  }
}

void ChildOperation::cancel_run(const RunId& run) {
  const Run* found = find(run);
  if (found == nullptr || found->result) return;
  command::RequestCancelExternalWorkflowExecution cancel;
  cancel.workflow_id = found->child.execution.workflow_id;
  cancel.run_id = run;
  cancel.child_workflow_only = true;
  host_.issue(std::move(cancel), nullptr);
}

void ChildOperation::cancel() {
  if (std::exchange(cancel_requested_, true)) return;
  if (is_unsent()) {
    take_back();
    fail(std::make_exception_ptr(Canceled()));
    return;
  }
  if (!runs_.empty()) {
    for (const Run& run : runs_) cancel_run(run.child.execution.run_id);
    return;
  }
  // Not started: a permit that waits in line leaves it. Otherwise its start is on its way here.
  command::RequestCancelExternalWorkflowExecution cancel;
  cancel.workflow_id = id_;
  cancel.child_workflow_only = true;
  host_.issue(std::move(cancel), nullptr);
}

void ChildOperation::drop() {
  started_ = {};
  not_started_ = {};
  for (Run& run : runs_) run.waiting.clear();
}

}  // namespace permit::worker
