// permit workflow …: what the verbs share.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apps/cli/session.h"
#include "orchestrator/protocol/pools.h"

namespace permit::cli {

int run_workflow_list(Session& session);
int run_workflow_count(Session& session);
int run_workflow_start(Session& session);
int run_workflow_execute(Session& session);
int run_workflow_result(Session& session);
int run_workflow_describe(Session& session);
int run_workflow_show(Session& session);
int run_workflow_trace(Session& session);
int run_workflow_signal(Session& session);
int run_workflow_query(Session& session);
int run_workflow_cancel(Session& session);
int run_workflow_terminate(Session& session);

// The workflow id that was typed, with -w or as the operand. "" if there is none. Throws
// UsageError if there are two.
std::string workflow_id_typed(const Arguments& arguments);
// It, and the run that -r names. Throws UsageError without an id.
WorkflowExecution workflow_named(Session& session);

// What --input or --input-file give. Throws UsageError for what is not JSON.
std::optional<Payloads> input_of(const Arguments& arguments);
// `text` as a payload. Throws UsageError, with `what` in front.
Payload json_typed(const std::string& what, const std::string& text);
// Values as people read them: "3, \"a\"".
std::string show_payloads(const std::optional<Payloads>& payloads, std::size_t width = 60);

// "Running", "TimedOut", …: the words of list queries.
std::string word_of(WorkflowExecutionStatus status);
Style style_of(WorkflowExecutionStatus status);
// The message, and those of its causes.
std::string show_failure(const Failure& failure);

// Who stands in the line of any pool, or backs off.
std::vector<WaiterInfo> all_waiters(Session& session);
// The runs that `query` finds, newest first, up to `limit`.
std::vector<WorkflowExecutionInfo> runs_found(Session& session, const std::string& query,
                                              std::size_t limit);
DescribeWorkflowExecutionResponse describe_run(Session& session,
                                               const WorkflowExecution& execution);
// "train_epoch, attempt 2 on 4121@gpu-host for 3s, heartbeat 1s ago"
std::string show_activity(const PendingActivityInfo& activity, Time now);
// "permit:gpu:1, held 3s, lease left 9m 57s, fence 17"
std::string show_permit(Session& session, const WorkflowExecution& execution, Time now);

}  // namespace permit::cli
