// permit workflow signal | query | cancel | terminate.
#include "apps/cli/exit_codes.h"
#include "apps/cli/workflow_commands.h"
#include "orchestrator/protocol/json.h"
#include "worker/client.h"

namespace permit::cli {

namespace {

std::string name_typed(const Arguments& arguments) {
  const std::string name = arguments.text_or("name", "");
  if (name.empty()) {
    throw UsageError("permit " + arguments.command->name + " needs --name; see: permit help " +
                     arguments.command->name);
  }
  return name;
}

// --- To end one or many ---

struct Verb {
  const char* word;  // "terminate"
  const char* done;  // "terminated"
  void (*act)(const worker::RunHandle& run, const std::string& reason);
};

int end_one(Session& session, const Verb& verb) {
  worker::Client client = session.client();
  const WorkflowExecution execution = workflow_named(session);
  const std::string reason = session.arguments().text_or("reason", "");
  verb.act(worker::RunHandle(client, execution), reason);
  session.out().json("{}");
  session.out().text(printable(execution.workflow_id.value) + " " + verb.done);
  return exit_ok;
}

bool confirmed(const Session& session, const Verb& verb, std::size_t count) {
  if (count == 0 || session.arguments().has("yes")) return true;
  const std::string runs = std::to_string(count) + (count == 1 ? " run" : " runs");
  if (!session.is_interactive()) {
    throw UsageError("the query finds " + runs + "; say --yes to " + verb.word +
                     (count == 1 ? " it" : " them"));
  }
  const std::string answer = session.ask(std::string(verb.word) + " " + runs + "? [y/N] ");
  return answer == "y" || answer == "yes";
}

int end_many(Session& session, const Verb& verb) {
  const Arguments& arguments = session.arguments();
  if (!workflow_id_typed(arguments).empty() || arguments.has("run-id")) {
    throw UsageError("name one workflow, or give a --query, not both");
  }
  std::string query = arguments.text_or("query", "");
  query += std::string(query.empty() ? "" : " AND ") + "ExecutionStatus = 'Running'";
  constexpr std::size_t runs_max = 100'000;
  const auto runs = runs_found(session, query, runs_max);
  if (!confirmed(session, verb, runs.size())) return exit_failed;
  worker::Client client = session.client();
  const std::string reason = arguments.text_or("reason", "");
  std::size_t done = 0;
  std::optional<Error> refused;
  for (const WorkflowExecutionInfo& run : runs) {
    try {
      verb.act(worker::RunHandle(client, run.execution), reason);
      ++done;
    } catch (const Error& error) {
      // One that has closed by itself meanwhile is no failure.
      if (error.code() == ErrorCode::not_found) continue;
      if (error.reason() == "SERVER_UNREACHABLE") throw;
      refused = error;
    }
  }
  session.out().json(R"({"found":)" + std::to_string(runs.size()) + R"(,"done":)" +
                     std::to_string(done) + "}");
  session.out().text(std::to_string(done) + " of " + std::to_string(runs.size()) + " " + verb.done);
  if (refused) throw *refused;
  return exit_ok;
}

int end_runs(Session& session, const Verb& verb) {
  return session.arguments().has("query") ? end_many(session, verb) : end_one(session, verb);
}

}  // namespace

int run_workflow_cancel(Session& session) {
  return end_runs(session, {"cancel", "asked to cancel",
                            [](const worker::RunHandle& run, const std::string& reason) {
                              run.cancel(reason);
                            }});
}

int run_workflow_terminate(Session& session) {
  return end_runs(session, {"terminate", "terminated",
                            [](const worker::RunHandle& run, const std::string& reason) {
                              run.terminate(reason);
                            }});
}

int run_workflow_signal(Session& session) {
  const std::string name = name_typed(session.arguments());
  const std::optional<Payloads> input = input_of(session.arguments());
  const WorkflowExecution execution = workflow_named(session);
  worker::Client client = session.client();
  worker::send_signal(client, execution, name, input);
  session.out().json("{}");
  session.out().text(printable(execution.workflow_id.value) + " got the signal " +
                     printable(name, 60));
  return exit_ok;
}

int run_workflow_query(Session& session) {
  const Arguments& arguments = session.arguments();
  const Output& out = session.out();
  QueryWorkflowRequest request;
  request.query.query_type = name_typed(arguments);
  request.query.query_args = input_of(arguments);
  const std::string reject = arguments.text_or("reject-condition", "");
  if (reject == "not_open") request.query_reject_condition = QueryRejectCondition::not_open;
  if (reject == "not_completed_cleanly") {
    request.query_reject_condition = QueryRejectCondition::not_completed_cleanly;
  }
  request.namespace_ = session.namespace_name();
  request.execution = workflow_named(session);
  const auto answer =
      worker::call<QueryWorkflowResponse>(session.transport(), "QueryWorkflow", request);
  out.json(to_json(answer, PayloadForm::shorthand));
  if (answer.query_rejected) {
    out.note("not asked: the run is " + word_of(answer.query_rejected->status));
    return exit_failed;
  }
  if (!answer.query_result) return exit_ok;
  for (const Payload& payload : answer.query_result->payloads) {
    out.text(to_json(payload, PayloadForm::shorthand));
  }
  return exit_ok;
}

}  // namespace permit::cli
