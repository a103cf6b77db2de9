// The table of permit workflow …, and what its verbs share.
#include "apps/cli/workflow_commands.h"

#include <array>
#include <fstream>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "apps/cli/command.h"
#include "apps/cli/history_view.h"
#include "orchestrator/protocol/json.h"
#include "worker/client.h"

namespace permit::cli {

namespace {

using Choices = std::vector<std::string>;

Flag text_flag(std::string name, char letter, std::string value, std::string help,
               Completes completes = Completes::nothing) {
  return {std::move(name), letter, ValueType::text, std::move(value), std::move(help), completes};
}

Flag repeated(Flag flag) {
  flag.repeats = true;
  return flag;
}

Flag time_flag(std::string name, std::string help) {
  return {std::move(name), 0, ValueType::duration, "D", std::move(help)};
}

Flag choice_flag(std::string name, std::string help, Choices choices) {
  return {std::move(name),   0, ValueType::choice, "", std::move(help), Completes::choices,
          std::move(choices)};
}

Flag limit_flag() {
  Flag flag = {"limit", 0, ValueType::number, "N", "so many, newest first (100)"};
  flag.min = 1;
  flag.max = 100'000;
  return flag;
}

const Operand workflow_operand = {"WORKFLOW", Completes::workflow, false};

Flag id_flag() {
  return text_flag("workflow-id", 'w', "ID", "the workflow; also without the flag",
                   Completes::workflow);
}

Flag run_flag() {
  return text_flag("run-id", 'r', "RUN",
                   "that run; its last characters are enough (the current or last one)");
}

Flag query_flag(const std::string& help) { return text_flag("query", 'q', "QUERY", help); }

std::vector<Flag> input_flags() {
  return {repeated(text_flag("input", 'i', "JSON", "an argument, as JSON; may be repeated")),
          repeated(text_flag("input-file", 0, "FILE", "an argument, from a file; - is stdin",
                             Completes::file))};
}

std::vector<Flag> with(std::vector<Flag> flags, const std::vector<Flag>& more) {
  flags.insert(flags.end(), more.begin(), more.end());
  return flags;
}

std::vector<Flag> start_flags() {
  return with(
      {text_flag("workflow-id", 'w', "ID", "its id; also without the flag (a new UUID)"),
       text_flag("type", 0, "NAME", "what to run: the name a worker knows"),
       text_flag("task-queue", 't', "NAME",
                 "whose workers run it ($PERMIT_TASK_QUEUE, else "
                 "default)")},
      with(
          input_flags(),
          {choice_flag("id-reuse-policy", "if a closed run has that id (AllowDuplicate)",
                       {"AllowDuplicate", "AllowDuplicateFailedOnly", "RejectDuplicate",
                        "TerminateIfRunning"}),
           choice_flag("id-conflict-policy", "if an open run has that id (Fail)",
                       {"Fail", "UseExisting", "TerminateExisting"}),
           time_flag("execution-timeout", "a limit on all its runs together (none)"),
           time_flag("run-timeout", "a limit on one run (none)"),
           time_flag("task-timeout", "a limit on a worker's answer to one task (10s)"),
           repeated(text_flag("memo", 0, "KEY=JSON", "a note that lists show; may be repeated"))}));
}

constexpr const char* query_text =
    "A query is terms joined by AND: WorkflowId, RunId, WorkflowType, ExecutionStatus, StartTime, "
    "CloseTime, ParentWorkflowId, TaskQueue, Outcome, compared by =, !=, <, <=, >, >=, IN (…) or "
    "STARTS_WITH with a value in quotes. ExecutionStatus is Running, Completed, Failed, Canceled, "
    "Terminated, ContinuedAsNew or TimedOut. Outcome, of permits, is held, released, "
    "lease_expired, holder_closed or force_released.";

std::vector<Command> commands_that_look() {
  return {
      {"workflow list",
       "runs of workflows, newest first",
       "STATUS is Waiting while a run has asked for a permit and has none: it stands in line, or "
       "asks again by itself. OUTCOME says of a permit, which is a run too, how its hold ended.\n" +
           std::string(query_text),
       {{"permit workflow list", ""},
        {"permit workflow list -q \"ExecutionStatus = 'Failed' AND WorkflowType = 'Train'\"", ""},
        {"permit workflow list -q \"WorkflowId STARTS_WITH 'train-'\" --limit 10", ""}},
       {},
       {query_flag("only those that it finds; see: permit help workflow list"), limit_flag()},
       run_workflow_list},
      {"workflow count",
       "how many runs there are, or a query finds",
       query_text,
       {{"permit workflow count -q \"ExecutionStatus = 'Running'\"", ""}},
       {},
       {query_flag("only those that it finds; see: permit help workflow list")},
       run_workflow_count},
      {"workflow describe",
       "one run: its state, what it does and what it waits for",
       "Activities that are not done, with their attempt, last heartbeat and last failure; "
       "children; permits it holds; the line it stands in, and what is in its way.",
       {{"permit workflow describe train-1", ""},
        {"permit workflow describe -w train-1 -r 2c7b", ""}},
       {workflow_operand},
       {id_flag(), run_flag()},
       run_workflow_describe},
      {"workflow show",
       "the history of a run, event by event",
       "With -o json a document that a replayer takes.",
       {{"permit workflow show train-1", ""},
        {"permit workflow show train-1 --follow", "until it closes"}},
       {workflow_operand},
       {id_flag(), run_flag(),
        Flag{"all", 0, ValueType::none, "", "also the events of workflow tasks"},
        Flag{"follow", 'f', ValueType::none, "", "go on until the run closes"}},
       run_workflow_show},
      {"workflow trace",
       "a run and all below it, as it happens",
       "The run with its activities, children and permits as a tree that is drawn anew at each "
       "change, until the run closes. Into a pipe: a line for each change.",
       {{"permit workflow trace train-1", ""}},
       {workflow_operand},
       {id_flag(), run_flag(),
        [] {
          Flag flag = {"depth", 0, ValueType::number, "N", "how many levels of children (5)"};
          flag.min = 0;
          flag.max = 50;
          return flag;
        }()},
       run_workflow_trace}};
}

std::vector<Command> commands_that_run() {
  return {{"workflow start",
           "start a workflow, and do not wait",
           "Prints the run's id. Started twice with one id: exit code 5, unless a policy says "
           "otherwise.",
           {{"permit workflow start train-1 --type Train -t training -i '\"llama\"' -i 3", ""},
            {"permit workflow start --type Nightly -t jobs", "under an id of its own"}},
           {{"WORKFLOW", Completes::nothing, false}},
           start_flags(),
           run_workflow_start},
          {"workflow execute",
           "start a workflow, wait, and print its result",
           "Exit code 1 if it fails. Ctrl-C stops the waiting, not the workflow.",
           {{"permit workflow execute --type Sum -t work -i 3", ""}},
           {{"WORKFLOW", Completes::nothing, false}},
           start_flags(),
           run_workflow_execute},
          {"workflow result",
           "wait until a run closes, and print its result",
           "Exit code 1 if it failed, was canceled or terminated, or timed out; 124 after "
           "--command-timeout.",
           {{"permit workflow result train-1", ""},
            {"permit workflow result train-1 --command-timeout 10m", ""}},
           {workflow_operand},
           {id_flag(), run_flag()},
           run_workflow_result}};
}

std::vector<Command> commands_that_change() {
  const Flag reason = text_flag("reason", 0, "TEXT", "why, for the record");
  const Flag several = query_flag("instead of one: all open runs that it finds; asks first");
  return {
      {"workflow signal",
       "send a signal to a run",
       "",
       {{"permit workflow signal train-1 --name stop", ""},
        {"permit workflow signal train-1 --name rate -i 0.5", ""}},
       {workflow_operand},
       with({id_flag(), run_flag(), text_flag("name", 0, "NAME", "of the signal")}, input_flags()),
       run_workflow_signal},
      {"workflow query",
       "ask a run for something its code answers",
       "A worker answers, from the run's history if the run has closed.",
       {{"permit workflow query train-1 --name progress", ""}},
       {workflow_operand},
       with({id_flag(), run_flag(), text_flag("name", 0, "NAME", "of the query"),
             choice_flag("reject-condition", "do not ask, if the run is in this state",
                         {"not_open", "not_completed_cleanly"})},
            input_flags()),
       run_workflow_query},
      {"workflow cancel",
       "ask a run to stop; its code may tidy up",
       "",
       {{"permit workflow cancel train-1 --reason 'wrong data'", ""},
        {"permit workflow cancel -q \"WorkflowType = 'Train'\" --yes", "all of them"}},
       {workflow_operand},
       {id_flag(), run_flag(), reason, several},
       run_workflow_cancel},
      {"workflow terminate",
       "end a run at once; its code does not hear of it",
       "Its permits end with it, as holder_closed.",
       {{"permit workflow terminate train-1 --reason stuck", ""}},
       {workflow_operand},
       {id_flag(), run_flag(), reason, several},
       run_workflow_terminate}};
}

}  // namespace

std::vector<Command> workflow_commands() {
  std::vector<Command> all = commands_that_look();
  for (auto* group : {commands_that_run, commands_that_change}) {
    std::vector<Command> more = group();
    std::move(more.begin(), more.end(), std::back_inserter(all));
  }
  return all;
}

// --- What they share ---

std::string workflow_id_typed(const Arguments& arguments) {
  const std::string operand = arguments.operand(0);
  const std::string flag = arguments.text_or("workflow-id", "");
  if (!operand.empty() && !flag.empty()) {
    throw UsageError("there are two workflow ids: " + operand + " and --workflow-id " + flag);
  }
  return operand.empty() ? flag : operand;
}

WorkflowExecution workflow_named(Session& session) {
  const Arguments& arguments = session.arguments();
  const std::string id = workflow_id_typed(arguments);
  if (id.empty()) {
    throw UsageError("permit " + arguments.command->name +
                     " needs a workflow id; see: permit help " + arguments.command->name);
  }
  return run_named(session, WorkflowId(id), arguments.text_or("run-id", ""));
}

Payload json_typed(const std::string& what, const std::string& text) {
  const std::size_t begin = std::min(text.find_first_not_of(" \t\r\n"), text.size());
  const std::string value = text.substr(begin, text.find_last_not_of(" \t\r\n") + 1 - begin);
  if (nlohmann::json::accept(value)) return json_payload(value);
  const bool is_word = value.find_first_of("\"'{}[]\\\n") == std::string::npos;
  throw UsageError(what + ": " + printable(value, 40) + " is not JSON" +
                   (is_word ? "; write a text as '\"" + printable(value, 40) + "\"'" : ""));
}

namespace {

std::string content_of(const std::string& file) {
  if (file == "-") return std::string(std::istreambuf_iterator<char>(std::cin), {});
  std::ifstream stream(file);
  if (!stream) throw UsageError("--input-file: cannot read " + file);
  return std::string(std::istreambuf_iterator<char>(stream), {});
}

}  // namespace

std::optional<Payloads> input_of(const Arguments& arguments) {
  if (arguments.has("input") && arguments.has("input-file")) {
    throw UsageError("give --input or --input-file, not both");
  }
  Payloads input;
  for (const std::string& text : arguments.all("input")) {
    input.payloads.push_back(json_typed("--input", text));
  }
  for (const std::string& file : arguments.all("input-file")) {
    input.payloads.push_back(json_typed("--input-file " + file, content_of(file)));
  }
  if (input.payloads.empty()) return std::nullopt;
  return input;
}

std::string show_payloads(const std::optional<Payloads>& payloads, std::size_t width) {
  std::string text;
  if (!payloads) return text;
  for (const Payload& payload : payloads->payloads) {
    text += (text.empty() ? "" : ", ") + to_json(payload, PayloadForm::shorthand);
  }
  return printable(text, width);
}

std::string word_of(WorkflowExecutionStatus status) {
  static constexpr std::array<const char*, 8> words = {
      "", "Running", "Completed", "Failed", "Canceled", "Terminated", "ContinuedAsNew", "TimedOut"};
  return words.at(static_cast<std::size_t>(status));
}

Style style_of(WorkflowExecutionStatus status) {
  switch (status) {
    case WorkflowExecutionStatus::running:
      return Style::blue;
    case WorkflowExecutionStatus::completed:
    case WorkflowExecutionStatus::continued_as_new:
      return Style::green;
    case WorkflowExecutionStatus::failed:
    case WorkflowExecutionStatus::timed_out:
      return Style::red;
    case WorkflowExecutionStatus::canceled:
    case WorkflowExecutionStatus::terminated:
      return Style::magenta;
    case WorkflowExecutionStatus::unspecified:
      break;
  }
  return Style::plain;
}

std::string show_failure(const Failure& failure) {
  std::string text = failure.message;
  if (failure.cause) {
    const std::string cause = show_failure(*failure.cause);
    if (text.find(cause) == std::string::npos) text += (text.empty() ? "" : ": ") + cause;
  }
  return printable(text, 400);
}

std::vector<WaiterInfo> all_waiters(Session& session) {
  std::vector<WaiterInfo> all;
  const permits::PoolClient pools = session.pools();
  for (const PoolInfo& pool : pools.list()) {
    std::vector<WaiterInfo> waiters = pools.waiters(pool.pool);
    std::move(waiters.begin(), waiters.end(), std::back_inserter(all));
  }
  return all;
}

std::vector<WorkflowExecutionInfo> runs_found(Session& session, const std::string& query,
                                              std::size_t limit) {
  ListWorkflowExecutionsRequest request;
  request.namespace_ = session.namespace_name();
  request.page_size = static_cast<std::int32_t>(std::min<std::size_t>(limit, 1000));
  request.query = query;
  std::vector<WorkflowExecutionInfo> runs;
  do {
    auto page = worker::call<ListWorkflowExecutionsResponse>(session.transport(),
                                                             "ListWorkflowExecutions", request);
    for (WorkflowExecutionInfo& run : page.executions) {
      if (runs.size() < limit) runs.push_back(std::move(run));
    }
    request.next_page_token = page.next_page_token;
  } while (!request.next_page_token.value.empty() && runs.size() < limit);
  return runs;
}

DescribeWorkflowExecutionResponse describe_run(Session& session,
                                               const WorkflowExecution& execution) {
  DescribeWorkflowExecutionRequest request;
  request.namespace_ = session.namespace_name();
  request.execution = execution;
  return worker::call<DescribeWorkflowExecutionResponse>(session.transport(),
                                                         "DescribeWorkflowExecution", request);
}

}  // namespace permit::cli
