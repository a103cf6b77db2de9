// A run and all below it, activities, children and permits, as a tree that grows as they happen.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "apps/cli/session.h"
#include "orchestrator/protocol/event.h"
#include "orchestrator/protocol/pools.h"

namespace permit::cli {

struct TreeNode {
  std::string kind;    // workflow, activity or permit
  std::string name;    // the workflow's or permit's id, the activity's type
  std::string key;     // unique among its siblings
  std::string state;   // changes only when something happens
  std::string detail;  // what passes by itself, such as times; may change at any look
  Style style = Style::plain;
  Time began{};
  Time ended{};  // is not set while it is open
  std::vector<TreeNode> children;
};

// Looks again at each refresh(), only at runs that were open, and reads a history only if it has
// grown.
class RunTree {
 public:
  RunTree(Session& session, WorkflowExecution root, int depth)
      : session_(session), root_(std::move(root)), depth_(depth) {}

  const TreeNode& refresh();
  // The run that the root has continued as, once it has closed so.
  const std::optional<WorkflowExecution>& continued_as() const { return continued_as_; }

 private:
  struct Run {
    std::int64_t events = 0;
    std::vector<TreeNode> nodes;                // as its history has them
    std::vector<WorkflowExecution> child_runs;  // of each node; an activity's is empty
    TreeNode self;
    RunId next;
  };

  TreeNode look(const WorkflowExecution& execution, int depth);
  void read_history(const WorkflowExecution& execution, Run& run);
  void add_waits(const WorkflowExecution& execution, TreeNode& node) const;
  TreeNode look_at_permit(const WorkflowExecution& execution, const TreeNode& known);

  Session& session_;
  const WorkflowExecution root_;
  const int depth_;
  std::map<RunId, Run> runs_;
  std::vector<WaiterInfo> waiters_;  // of all pools
  TreeNode tree_;
  std::optional<WorkflowExecution> continued_as_;
};

}  // namespace permit::cli
