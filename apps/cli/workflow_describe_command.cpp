// permit workflow describe | show.
#include <algorithm>

#include "apps/cli/duration_text.h"
#include "apps/cli/exit_codes.h"
#include "apps/cli/history_view.h"
#include "apps/cli/permit_commands.h"
#include "apps/cli/workflow_commands.h"
#include "orchestrator/protocol/json.h"

namespace permit::cli {

namespace {

using Description = DescribeWorkflowExecutionResponse;

class RunPage {
 public:
  RunPage(Session& session, Description description)
      : session_(session),
        out_(session.out()),
        description_(std::move(description)),
        run_(description_.workflow_execution_info),
        now_(session.now()) {}

  void print() {
    // Of a run that has closed nothing is pending.
    const bool open = run_.status == WorkflowExecutionStatus::running;
    if (open) find_waiters();
    headline();
    times();
    limits();
    parents();
    memo();
    if (open) {
      activities();
      children();
      waiting();
      task();
    }
    line("See also", "permit workflow show " + printable(run_.execution.workflow_id.value) +
                         " -r " + short_run(run_.execution.run_id));
  }

 private:
  void line(const std::string& name, const std::string& text) const {
    if (text.empty()) return;
    std::string padded = name;
    padded.resize(15, ' ');
    out_.text(out_.paint(padded, Style::dim) + text);
  }

  void find_waiters() {
    for (WaiterInfo& waiter : all_waiters(session_)) {
      if (waiter.holder_run_id == run_.execution.run_id) waiters_.push_back(std::move(waiter));
    }
  }

  void headline() const {
    const bool waits = !waiters_.empty();
    std::string state = waits ? "Waiting" : word_of(run_.status);
    if (description_.workflow_extended_info.cancel_requested) state += ", asked to cancel";
    if (run_.outcome != Outcome::unspecified) {
      state +=
          ", " + word_of(run_.outcome) + (run_.cause.empty() ? "" : " (cause " + run_.cause + ")");
    }
    out_.text(out_.paint(printable(run_.execution.workflow_id.value), Style::bold) + "  " +
              out_.paint(state, waits ? Style::yellow : style_of(run_.status)));
    line("Run", run_.execution.run_id.value +
                    (run_.fence.value == 0 ? "" : "    Fence " + std::to_string(run_.fence.value)));
    line("Type", printable(run_.type.name) + ", task queue " +
                     printable(description_.execution_config.task_queue.name));
  }

  void times() const {
    std::string text = out_.clock(run_.start_time);
    if (is_set(run_.close_time)) {
      text += ", closed " + out_.clock(run_.close_time) + ", after " +
              show_duration(run_.close_time - run_.start_time);
    } else {
      text += " (" + show_duration(std::max(now_ - run_.start_time, Duration(0))) + ")";
    }
    line("Started", text);
    line("History", std::to_string(run_.history_length) + " events, " +
                        std::to_string(run_.history_size_bytes) + " bytes");
  }

  void limits() const {
    const WorkflowExecutionConfig& config = description_.execution_config;
    std::string text;
    const auto add = [&text](const char* what, Duration limit) {
      if (limit.count() > 0) text += (text.empty() ? "" : ", ") + (what + type_duration(limit));
    };
    add("all runs ", config.workflow_execution_timeout);
    add("run ", config.workflow_run_timeout);
    line("Limits", text);
    if (is_set(run_.deadline)) line("Deadline", out_.clock(run_.deadline));
  }

  void parents() const {
    if (!run_.parent_execution) return;
    line("Parent", printable(run_.parent_execution->workflow_id.value) + " / run …" +
                       short_run(run_.parent_execution->run_id));
  }

  void memo() const {
    if (!run_.memo) return;
    std::string text;
    for (const auto& [key, value] : run_.memo->fields) {
      text += (text.empty() ? "" : ", ") + key + "=" + to_json(value, PayloadForm::shorthand);
    }
    line("Memo", printable(text, 200));
  }

  void activities() const {
    for (const PendingActivityInfo& activity : description_.pending_activities) {
      line("Activity", show_activity(activity, now_));
      if (activity.heartbeat_details) {
        line("", "progress " + show_payloads(activity.heartbeat_details, 100));
      }
      if (activity.last_failure) {
        line("", "last failure: " + show_failure(*activity.last_failure));
      }
    }
  }

  void children() const {
    for (const PendingChildExecutionInfo& child : description_.pending_children) {
      const std::string& id = child.workflow_id.value;
      if (id.starts_with("permit:") && !child.run_id.empty()) {
        line("Permit", show_permit(session_, {child.workflow_id, child.run_id}, now_));
      } else if (!child.run_id.empty()) {
        line("Child", printable(id) + " / run …" + short_run(child.run_id) + ", " +
                          printable(child.workflow_type_name));
      }
    }
  }

  void waiting() const {
    for (const WaiterInfo& waiter : waiters_) {
      std::string text = "pool " + waiter.pool.value + ", " +
                         show_duration(std::max(now_ - waiter.since, Duration(0)));
      if (waiter.position > 0) text += ", position " + std::to_string(waiter.position);
      if (waiter.count > 1) text += ", wants " + std::to_string(waiter.count);
      if (waiter.state == "backing_off") {
        text += ", asks again in " + show_duration(std::max(waiter.expires - now_, Duration(0)));
      }
      line("Waits for", text);
      try {
        line("", printable(session_.pools().why(waiter.id).message, 400));
      } catch (const Error& error) {
        if (error.reason() != "WAITER_NOT_FOUND") throw;  // it has its slot by now
      }
    }
  }

  void task() const {
    if (!description_.pending_workflow_task) return;
    const PendingWorkflowTaskInfo& task = *description_.pending_workflow_task;
    const bool has_worker = task.state == PendingWorkflowTaskState::started;
    std::string text = has_worker ? "with a worker for " : "waits for a worker since ";
    const Time since = has_worker ? task.started_time : task.scheduled_time;
    text += has_worker ? show_duration(std::max(now_ - since, Duration(0))) : out_.clock(since);
    if (task.attempt > 1) text += ", attempt " + std::to_string(task.attempt);
    line("Workflow task", text);
  }

  Session& session_;
  const Output& out_;
  const Description description_;
  const WorkflowExecutionInfo& run_;
  const Time now_;
  std::vector<WaiterInfo> waiters_;
};

}  // namespace

std::string show_activity(const PendingActivityInfo& activity, Time now) {
  const auto ago = [now](Time time) { return show_duration(std::max(now - time, Duration(0))); };
  std::string text = printable(activity.activity_type.name, 60) + ", attempt " +
                     std::to_string(std::max(activity.attempt, 1));
  if (activity.maximum_attempts > 0) text += " of " + std::to_string(activity.maximum_attempts);
  if (is_set(activity.last_started_time) && activity.state != PendingActivityState::scheduled) {
    text += " on " + printable(activity.last_worker_identity, 60) + " for " +
            ago(activity.last_started_time);
  } else if (is_set(activity.next_attempt_schedule_time) &&
             activity.next_attempt_schedule_time > now) {
    text += " in " + show_duration(activity.next_attempt_schedule_time - now);
  } else {
    text += ", waits for a worker for " + ago(activity.scheduled_time);
  }
  if (activity.state == PendingActivityState::cancel_requested) text += ", asked to cancel";
  if (is_set(activity.last_heartbeat_time)) {
    text += ", heartbeat " + ago(activity.last_heartbeat_time) + " ago";
  }
  return text;
}

std::string show_permit(Session& session, const WorkflowExecution& execution, Time now) {
  try {
    const PermitInfo permit =
        session.pools().describe_permit(execution.workflow_id, execution.run_id);
    return permit.id.value + ", held " + show_duration(std::max(now - permit.since, Duration(0))) +
           ", lease left " + lease_left(permit, now) + ", fence " +
           std::to_string(permit.fence.value);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::not_found) throw;  // it is gone by now
    return execution.workflow_id.value;
  }
}

int run_workflow_describe(Session& session) {
  Description description = describe_run(session, workflow_named(session));
  session.out().json(to_json(description, PayloadForm::shorthand));
  if (session.out().is_text()) RunPage(session, std::move(description)).print();
  return exit_ok;
}

int run_workflow_show(Session& session) {
  const Arguments& arguments = session.arguments();
  return show_history(session, workflow_named(session),
                      arguments.has("all") ? Detail::all : Detail::events_that_matter,
                      arguments.has("follow") ? Follow::until_closed : Follow::no);
}

}  // namespace permit::cli
