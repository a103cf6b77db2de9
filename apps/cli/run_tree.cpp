#include "apps/cli/run_tree.h"

#include <algorithm>
#include <variant>

#include "apps/cli/duration_text.h"
#include "apps/cli/permit_commands.h"
#include "apps/cli/workflow_commands.h"

namespace permit::cli {

namespace {

// Folds a history into nodes, one for each activity and child, in the order of their begin.
class Fold {
 public:
  Fold(std::vector<TreeNode>& nodes, std::vector<WorkflowExecution>& child_runs, RunId& next)
      : nodes_(nodes), child_runs_(child_runs), next_(next) {}

  void add(const Event& event) {
    event_ = &event;
    std::visit(*this, static_cast<const EventVariant&>(event.attributes));
  }

  void operator()(const event::ActivityTaskScheduled& e) {
    TreeNode node;
    node.kind = "activity";
    node.name = e.activity_type.name;
    node.key = "activity " + e.activity_id;
    node.state = "scheduled";
    node.began = event_->event_time;
    open(event_->event_id, std::move(node), {});
  }
  void operator()(const event::ActivityTaskCompleted& e) {
    close(e.scheduled_event_id, "completed", Style::green);
  }
  void operator()(const event::ActivityTaskFailed& e) {
    close(e.scheduled_event_id, "failed: " + show_failure(e.failure.value_or(Failure())),
          Style::red);
  }
  void operator()(const event::ActivityTaskTimedOut& e) {
    close(e.scheduled_event_id, "timed out", Style::red);
  }
  void operator()(const event::ActivityTaskCanceled& e) {
    close(e.scheduled_event_id, "canceled", Style::magenta);
  }
  void operator()(const event::ChildWorkflowExecutionStarted& e) {
    const WorkflowExecution execution = e.workflow_execution.value_or(WorkflowExecution());
    TreeNode node;
    node.kind = e.fence.value != 0 ? "permit" : "workflow";
    node.name = execution.workflow_id.value;
    node.key = node.kind + " " + execution.run_id.value;
    node.began = event_->event_time;
    node.state = "Running";
    open(event_->event_id, std::move(node), execution);
  }
  void operator()(const event::WorkflowExecutionContinuedAsNew& e) {
    next_ = e.new_execution_run_id;
  }
  template <class Other>
  void operator()(const Other&) {}

 private:
  void open(std::int64_t id, TreeNode node, WorkflowExecution run) {
    places_[id] = nodes_.size();
    nodes_.push_back(std::move(node));
    child_runs_.push_back(std::move(run));
  }
  void close(std::int64_t id, std::string state, Style style) {
    const auto place = places_.find(id);
    if (place == places_.end()) return;
    TreeNode& node = nodes_[place->second];
    node.state = std::move(state);
    node.style = style;
    node.ended = event_->event_time;
  }

  std::vector<TreeNode>& nodes_;
  std::vector<WorkflowExecution>& child_runs_;
  RunId& next_;
  const Event* event_ = nullptr;
  std::map<std::int64_t, std::size_t> places_;
};

// What is known of an activity that is not done, beyond its history.
void show_pending(TreeNode& node, const PendingActivityInfo& activity, Time now) {
  const bool started = activity.state == PendingActivityState::started ||
                       activity.state == PendingActivityState::cancel_requested;
  node.style = Style::blue;
  if (started) {
    node.state = "attempt " + std::to_string(activity.attempt) + " on " +
                 printable(activity.last_worker_identity, 40);
  } else if (activity.attempt > 1) {
    node.state = "attempt " + std::to_string(activity.attempt) + " to come";
  } else {
    node.state = "waits for a worker";
  }
  if (activity.state == PendingActivityState::cancel_requested) node.state += ", asked to cancel";
  if (activity.last_failure) node.state += ", failed: " + show_failure(*activity.last_failure);
  if (is_set(activity.last_heartbeat_time)) {
    node.detail = "heartbeat " +
                  show_duration(std::max(now - activity.last_heartbeat_time, Duration(0))) + " ago";
    const std::string progress = show_payloads(activity.heartbeat_details, 40);
    if (!progress.empty()) node.detail += ", " + progress;
  }
}

}  // namespace

const TreeNode& RunTree::refresh() {
  waiters_ = all_waiters(session_);
  tree_ = look(root_, depth_);
  const RunId& next = runs_[root_.run_id].next;
  if (!next.empty()) continued_as_ = WorkflowExecution{root_.workflow_id, next};
  return tree_;
}

void RunTree::read_history(const WorkflowExecution& execution, Run& run) {
  run.nodes.clear();
  run.child_runs.clear();
  Fold fold(run.nodes, run.child_runs, run.next);
  for (const Event& event :
       worker::fetch_history(session_.transport(), session_.namespace_name(), execution)) {
    fold.add(event);
  }
}

TreeNode RunTree::look(const WorkflowExecution& execution, int depth) {
  Run& run = runs_[execution.run_id];
  if (is_set(run.self.ended)) return run.self;
  const DescribeWorkflowExecutionResponse description = describe_run(session_, execution);
  const WorkflowExecutionInfo& info = description.workflow_execution_info;
  if (info.history_length != run.events) {
    read_history(execution, run);
    run.events = info.history_length;
  }
  const Time now = session_.now();
  TreeNode node;
  node.kind = "workflow";
  node.name = execution.workflow_id.value;
  node.key = "workflow " + execution.run_id.value;
  node.state = word_of(info.status);
  node.style = style_of(info.status);
  node.detail = info.type.name;
  node.began = info.start_time;
  node.ended = info.close_time;
  const bool closed = is_set(info.close_time);
  for (std::size_t i = 0; i < run.nodes.size(); ++i) {
    TreeNode child = run.nodes[i];
    if (child.kind == "permit") {
      child = look_at_permit(run.child_runs[i], child);
      if (is_set(child.ended)) run.nodes[i] = child;
    } else if (child.kind == "workflow") {
      if (depth > 0) child = look(run.child_runs[i], depth - 1);
    } else if (closed && !is_set(child.ended)) {
      child.state = "given up";  // the run closed first
      child.ended = info.close_time;
    } else {
      for (const PendingActivityInfo& activity : description.pending_activities) {
        if (child.key == "activity " + activity.activity_id && !is_set(child.ended)) {
          show_pending(child, activity, now);
        }
      }
    }
    node.children.push_back(std::move(child));
  }
  if (!closed) add_waits(execution, node);
  if (closed) run.self = node;
  return node;
}

// What it waits for is not in its history: it holds nothing yet.
void RunTree::add_waits(const WorkflowExecution& execution, TreeNode& node) const {
  for (const WaiterInfo& waiter : waiters_) {
    if (waiter.holder_run_id != execution.run_id) continue;
    TreeNode wait;
    wait.kind = "permit";
    wait.name = waiter.pool.value;
    wait.key = "waits " + waiter.pool.value;
    wait.state = waiter.state == "backing_off" ? "backing off" : "waits in line";
    wait.style = Style::yellow;
    wait.began = waiter.since;
    if (waiter.position > 0) wait.detail = "position " + std::to_string(waiter.position);
    node.children.push_back(std::move(wait));
  }
}

TreeNode RunTree::look_at_permit(const WorkflowExecution& execution, const TreeNode& known) {
  if (is_set(known.ended)) return known;
  TreeNode node = known;
  try {
    const PermitInfo permit =
        session_.pools().describe_permit(execution.workflow_id, execution.run_id);
    node.state = permit.state == "held" ? "held, fence " + std::to_string(permit.fence.value)
                                        : word_of(permit.outcome);
    node.style = style_of(permit.outcome);
    node.ended = permit.closed_at;
    if (!is_set(permit.closed_at)) node.detail = "lease left " + lease_left(permit, session_.now());
  } catch (const Error& error) {
    if (error.code() != ErrorCode::not_found) throw;
    node.state = "gone";  // no longer kept
    node.ended = node.began;
  }
  return node;
}

}  // namespace permit::cli
