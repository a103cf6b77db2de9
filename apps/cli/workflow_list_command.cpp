// permit workflow list | count.
#include <set>

#include "apps/cli/duration_text.h"
#include "apps/cli/exit_codes.h"
#include "apps/cli/permit_commands.h"
#include "apps/cli/workflow_commands.h"
#include "orchestrator/protocol/json_codec.h"
#include "worker/client.h"

namespace permit {
PERMIT_JSON(WorkflowExecutionInfo)
}  // namespace permit

namespace permit::cli {

namespace {

using Align = Table::Align;

bool any_open(const std::vector<WorkflowExecutionInfo>& runs) {
  return std::any_of(runs.begin(), runs.end(), [](const WorkflowExecutionInfo& run) {
    return run.status == WorkflowExecutionStatus::running;
  });
}

// The runs that want a permit and have none.
std::set<RunId> waiting_runs(Session& session) {
  std::set<RunId> runs;
  for (const WaiterInfo& waiter : all_waiters(session)) runs.insert(waiter.holder_run_id);
  return runs;
}

Table::Cell outcome_of(const WorkflowExecutionInfo& run) {
  if (run.fence.value == 0) return {"-", Style::dim};
  return {word_of(run.outcome), style_of(run.outcome)};
}

Table table_of(Session& session, const std::vector<WorkflowExecutionInfo>& runs) {
  const Time now = session.now();
  const std::set<RunId> waiting = any_open(runs) ? waiting_runs(session) : std::set<RunId>();
  Table table({{"STATUS"},
               {"OUTCOME"},
               {"WORKFLOW ID"},
               {"RUN"},
               {"TYPE"},
               {"TASK QUEUE"},
               {"START"},
               {"DURATION", Align::right}});
  for (const WorkflowExecutionInfo& run : runs) {
    const Time end = is_set(run.close_time) ? run.close_time : now;
    Table::Cell status = {word_of(run.status), style_of(run.status)};
    if (waiting.contains(run.execution.run_id)) status = {"Waiting", Style::yellow};
    table.add({status,
               outcome_of(run),
               {printable(run.execution.workflow_id.value, 60)},
               {short_run(run.execution.run_id)},
               {printable(run.type.name, 40)},
               {printable(run.task_queue, 40)},
               {session.out().moment(run.start_time, now)},
               {show_duration(std::max(end - run.start_time, Duration(0)))}});
  }
  return table;
}

}  // namespace

int run_workflow_list(Session& session) {
  const Arguments& arguments = session.arguments();
  const Output& out = session.out();
  const auto limit = static_cast<std::size_t>(arguments.number("limit").value_or(100));
  ListWorkflowExecutionsResponse found;
  // One more than is shown, to know whether there are more.
  found.executions = runs_found(session, arguments.text_or("query", ""), limit + 1);
  const bool has_more = found.executions.size() > limit;
  if (has_more) found.executions.pop_back();
  std::vector<std::string> lines;
  lines.reserve(found.executions.size());
  for (const WorkflowExecutionInfo& run : found.executions) {
    lines.push_back(to_json(run, PayloadForm::shorthand));
  }
  out.json(to_json(found, PayloadForm::shorthand), lines);
  if (!out.is_text()) return exit_ok;
  if (found.executions.empty()) {
    out.text("No such run.");
    return exit_ok;
  }
  out.table(table_of(session, found.executions));
  if (has_more) out.note("there are more; see them with --limit, or a narrower --query");
  return exit_ok;
}

int run_workflow_count(Session& session) {
  CountWorkflowExecutionsRequest request;
  request.namespace_ = session.namespace_name();
  request.query = session.arguments().text_or("query", "");
  const auto found = worker::call<CountWorkflowExecutionsResponse>(
      session.transport(), "CountWorkflowExecutions", request);
  session.out().json(to_json(found));
  session.out().text(std::to_string(found.count));
  return exit_ok;
}

}  // namespace permit::cli
