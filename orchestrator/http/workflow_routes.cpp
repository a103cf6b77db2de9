// Temporal's REST routes about workflows and activities, and its gRPC-only calls as HTTP POSTs.
#include "orchestrator/http/call.h"
#include "orchestrator/protocol/base64.h"
#include "orchestrator/protocol/time_text.h"

namespace permit::http {

namespace {

// Of a history, in bytes: what takes longer to write than to hand to another thread.
constexpr std::int64_t written_at_once_max = 16'384;

const std::string N = "/api/v1/namespaces/{namespace}";
const std::string W = N + "/workflows/{workflow_id}";

// Path variables win over what the body says.
template <class Request>
Request request_of(Routes::Call& call) {
  Request request = call.body<Request>();
  request.namespace_ = call.variable("namespace");
  return request;
}

template <class Request>
Request of_workflow(Routes::Call& call) {
  Request request = request_of<Request>(call);
  request.workflow_execution.workflow_id = WorkflowId(call.variable("workflow_id"));
  return request;
}

WorkflowExecution execution_of(const Routes::Call& call) {
  return {WorkflowId(call.variable("workflow_id")),
          RunId(call.parameter("execution.runId").value_or(""))};
}

Bytes page_token(const Routes::Call& call) {
  const auto text = call.parameter("nextPageToken");
  if (!text) return {};
  const auto bytes = from_base64(*text);
  if (!bytes) {
    throw invalid_argument("PAGE_TOKEN_INVALID",
                           "nextPageToken is not one that this server gave; begin without it");
  }
  return Bytes{*bytes};
}

Outcome outcome_named(const std::string& name) {
  if (name.empty()) return Outcome::unspecified;
  if (name == "released") return Outcome::released;
  if (name == "lease_expired") return Outcome::lease_expired;
  if (name == "holder_closed") return Outcome::holder_closed;
  if (name == "force_released") return Outcome::force_released;
  throw invalid_argument("PARAMETER_INVALID",
                         "outcome must be released, lease_expired, holder_closed or "
                         "force_released");
}

Time time_parameter(const std::string& text) {
  const auto time = parse_time(text);
  if (!time) throw invalid_argument("PARAMETER_INVALID", "since must be an RFC 3339 time");
  return *time;
}

HistoryEventFilterType history_filter(const Routes::Call& call) {
  const std::string text = call.parameter("historyEventFilterType").value_or("");
  if (text.empty() || text == "0" || text == "1" || text == "HISTORY_EVENT_FILTER_TYPE_ALL_EVENT") {
    return HistoryEventFilterType::all_event;
  }
  if (text == "2" || text == "HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT") {
    return HistoryEventFilterType::close_event;
  }
  throw invalid_argument("PARAMETER_INVALID",
                         "historyEventFilterType must be ALL_EVENT (1) or CLOSE_EVENT (2)");
}

}  // namespace

void Routes::add_workflow_routes() {
  add("POST", W,
      Doc(Access::worker, "Start a workflow")
          .takes<StartWorkflowExecutionRequest>()
          .answers<StartWorkflowExecutionResponse>()
          .refuses({409}),
      [this](Call& call) {
        auto request = request_of<StartWorkflowExecutionRequest>(call);
        request.workflow_id = WorkflowId(call.variable("workflow_id"));
        service_.start(std::move(request), call.done<StartWorkflowExecutionResponse>());
      });
  add("GET", W,
      Doc(Access::read, "A run: the one of now, the last one, or that of the runId")
          .query("execution.runId")
          .answers<DescribeWorkflowExecutionResponse>()
          .refuses({404}),
      [this](Call& call) {
        service_.describe({call.variable("namespace"), execution_of(call)},
                          call.done<DescribeWorkflowExecutionResponse>());
      });
  add("GET", W + "/history",
      Doc(Access::read, "The events of a run")
          .query("execution.runId")
          .query("maximumPageSize", ParameterKind::integer)
          .query("nextPageToken", ParameterKind::bytes)
          .query("waitNewEvent", ParameterKind::flag, "wait for more events, up to a minute")
          .query("historyEventFilterType", {"HISTORY_EVENT_FILTER_TYPE_ALL_EVENT",
                                            "HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT", "1", "2"})
          .query("skipArchival", ParameterKind::flag, "of no effect")
          .answers<GetWorkflowExecutionHistoryResponse>()
          .refuses({404}),
      [this](Call& call) {
        GetWorkflowExecutionHistoryRequest request;
        request.namespace_ = call.variable("namespace");
        request.execution = execution_of(call);
        request.maximum_page_size = call.integer("maximumPageSize");
        request.next_page_token = page_token(call);
        request.wait_new_event = call.flag("waitNewEvent");
        request.history_event_filter_type = history_filter(call);
        history(call, std::move(request));
      });
  add_message_routes();
}

void Routes::add_message_routes() {
  add("POST", W + "/signal/{signal_name}",
      Doc(Access::worker, "Send a signal")
          .takes<SignalWorkflowExecutionRequest>()
          .answers<EmptyResponse>()
          .refuses({404}),
      [this](Call& call) {
        auto request = of_workflow<SignalWorkflowExecutionRequest>(call);
        request.signal_name = call.variable("signal_name");
        service_.signal(std::move(request), call.done<EmptyResponse>());
      });
  add("POST", W + "/signal-with-start/{signal_name}",
      Doc(Access::worker, "Send a signal, and start the workflow if it does not run")
          .takes<SignalWithStartWorkflowExecutionRequest>()
          .answers<SignalWithStartWorkflowExecutionResponse>(),
      [this](Call& call) {
        auto request = request_of<SignalWithStartWorkflowExecutionRequest>(call);
        request.workflow_id = WorkflowId(call.variable("workflow_id"));
        request.signal_name = call.variable("signal_name");
        service_.signal_with_start(std::move(request),
                                   call.done<SignalWithStartWorkflowExecutionResponse>());
      });
  add("POST", W + "/cancel",
      Doc(Access::worker, "Ask a run to end")
          .takes<RequestCancelWorkflowExecutionRequest>()
          .answers<EmptyResponse>()
          .refuses({404}),
      [this](Call& call) {
        service_.request_cancel(of_workflow<RequestCancelWorkflowExecutionRequest>(call),
                                call.done<EmptyResponse>());
      });
  add("POST", W + "/terminate",
      Doc(Access::admin, "End a run at once")
          .takes<TerminateWorkflowExecutionRequest>()
          .answers<EmptyResponse>()
          .refuses({404}),
      [this](Call& call) {
        service_.terminate(of_workflow<TerminateWorkflowExecutionRequest>(call),
                           call.done<EmptyResponse>());
      });
  add("POST", W + "/query/{query_type}",
      Doc(Access::read, "Ask the worker of a run something")
          .takes<QueryWorkflowRequest>()
          .answers<QueryWorkflowResponse>()
          .refuses({404, 504}),
      [this](Call& call) {
        auto request = request_of<QueryWorkflowRequest>(call);
        request.execution.workflow_id = WorkflowId(call.variable("workflow_id"));
        request.query.query_type = call.variable("query_type");
        const std::int64_t id =
            service_.query(std::move(request), call.done<QueryWorkflowResponse>());
        call.exchange->park();
        call.exchange->on_gone([this, id] { service_.forget_poll(id); });
      });
  not_offered("POST", W + "/reset", "resetting a workflow");
  not_offered("GET", W + "/history-reverse", "history in reverse");
  not_offered("POST", W + "/update/{name}", "updating a workflow");
  not_offered("POST", W + "/pause", "pausing a workflow");
  not_offered("POST", W + "/unpause", "pausing a workflow");
  not_offered("POST", W + "/update-options", "changing a workflow's options");
  not_offered("GET", N + "/archived-workflows", "archival");
  for (const char* method : {"GET", "POST", "DELETE"}) {
    not_offered(method, N + "/schedules", "scheduling");
    not_offered(method, N + "/schedules/{schedule_id}", "scheduling");
  }
}

void Routes::add_list_routes() {
  add("GET", N + "/workflows",
      Doc(Access::read, "Runs, newest first")
          .query("query", ParameterKind::text, "a list filter, as in WorkflowType = 'Train'")
          .query("pageSize", ParameterKind::integer)
          .query("nextPageToken", ParameterKind::bytes)
          .answers<ListWorkflowExecutionsResponse>(),
      [this](Call& call) {
        reads_.list_runs({call.variable("namespace"), call.integer("pageSize"), page_token(call),
                          call.parameter("query").value_or("")},
                         call.form, call.done_written<ListWorkflowExecutionsResponse>());
      });
  add("GET", N + "/workflow-count",
      Doc(Access::read, "How many runs there are")
          .query("query", ParameterKind::text, "a list filter")
          .answers<CountWorkflowExecutionsResponse>(),
      [this](Call& call) {
        reads_.count_runs({call.variable("namespace"), call.parameter("query").value_or("")},
                          call.done_written<CountWorkflowExecutionsResponse>());
      });
  add("GET", N + "/permits",
      Doc(Access::read, "The ledger of holds, newest first")
          .query("pool")
          .query("slot")
          .query("state", {"held", "closed"})
          .query("outcome", {"released", "lease_expired", "holder_closed", "force_released"})
          .query("since", ParameterKind::time)
          .query("pageSize", ParameterKind::integer)
          .query("nextPageToken", ParameterKind::bytes)
          .answers<ListPermitsResponse>(),
      [this](Call& call) {
        ListPermitsRequest request;
        request.namespace_ = call.variable("namespace");
        request.pool = PoolName(call.parameter("pool").value_or(""));
        request.slot = SlotName(call.parameter("slot").value_or(""));
        request.state = call.parameter("state").value_or("");
        request.outcome = outcome_named(call.parameter("outcome").value_or(""));
        if (const auto since = call.parameter("since")) request.since = time_parameter(*since);
        request.page_size = call.integer("pageSize");
        request.next_page_token = page_token(call);
        reads_.list_permits(std::move(request), call.form,
                            call.done_written<ListPermitsResponse>());
      });
  add("POST", "/temporal.api.workflowservice.v1.WorkflowService/ListWorkflowExecutions",
      Doc(Access::read, "Runs, newest first")
          .takes<ListWorkflowExecutionsRequest>()
          .answers<ListWorkflowExecutionsResponse>(),
      [this](Call& call) {
        call.form = PayloadForm::long_form;
        reads_.list_runs(call.body<ListWorkflowExecutionsRequest>(), call.form,
                         call.done_written<ListWorkflowExecutionsResponse>());
      });
  add("POST", "/temporal.api.workflowservice.v1.WorkflowService/CountWorkflowExecutions",
      Doc(Access::read, "How many runs there are")
          .takes<CountWorkflowExecutionsRequest>()
          .answers<CountWorkflowExecutionsResponse>(),
      [this](Call& call) {
        call.form = PayloadForm::long_form;
        reads_.count_runs(call.body<CountWorkflowExecutionsRequest>(),
                          call.done_written<CountWorkflowExecutionsResponse>());
      });
}

void Routes::history(Call& call, GetWorkflowExecutionHistoryRequest request) {
  const bool waits = request.wait_new_event;
  const std::int64_t id = service_.history(
      std::move(request), [this, done = call.done_written<GetWorkflowExecutionHistoryResponse>(),
                           form = call.form](service::Result<service::HistoryPart>&& result) {
        auto* part = std::get_if<service::HistoryPart>(&result);
        if (part == nullptr) return done(std::get<Error>(std::move(result)));
        if (part->bytes_max > written_at_once_max && !reads_.is_full()) {
          return reads_.history(std::move(*part), form, done);
        }
        done(service_.written_history(*part, form));
      });
  if (waits) call.exchange->park();
  call.exchange->on_gone([this, id] { service_.forget_poll(id); });
}

void Routes::add_task_routes() {
  const std::string A = W + "/activities/{activity_id}";
  add("POST", A + "/heartbeat",
      Doc(Access::worker, "An activity, by its id, is alive")
          .takes<RecordActivityTaskHeartbeatByIdRequest>()
          .answers<RecordActivityTaskHeartbeatResponse>()
          .refuses({404}),
      [this](Call& call) {
        service_.heartbeat_by_id(of_activity<RecordActivityTaskHeartbeatByIdRequest>(call),
                                 call.done<RecordActivityTaskHeartbeatResponse>());
      });
  add("POST", A + "/complete",
      Doc(Access::worker, "An activity, by its id, is done")
          .takes<RespondActivityTaskCompletedByIdRequest>()
          .answers<EmptyResponse>()
          .refuses({404}),
      [this](Call& call) {
        service_.complete_activity_by_id(of_activity<RespondActivityTaskCompletedByIdRequest>(call),
                                         call.done<EmptyResponse>());
      });
  add("POST", A + "/fail",
      Doc(Access::worker, "An activity, by its id, has failed")
          .takes<RespondActivityTaskFailedByIdRequest>()
          .answers<EmptyResponse>()
          .refuses({404}),
      [this](Call& call) {
        service_.fail_activity_by_id(of_activity<RespondActivityTaskFailedByIdRequest>(call),
                                     call.done<EmptyResponse>());
      });
  add("POST", A + "/resolve-as-canceled",
      Doc(Access::worker, "An activity, by its id, has ended as it was asked to")
          .takes<RespondActivityTaskCanceledByIdRequest>()
          .answers<EmptyResponse>()
          .refuses({404}),
      [this](Call& call) {
        service_.cancel_activity_by_id(of_activity<RespondActivityTaskCanceledByIdRequest>(call),
                                       call.done<EmptyResponse>());
      });
  add_token_routes();
}

void Routes::add_token_routes() {
  add("POST", N + "/activity-heartbeat",
      Doc(Access::worker, "An activity, by its token, is alive")
          .takes<RecordActivityTaskHeartbeatRequest>()
          .answers<RecordActivityTaskHeartbeatResponse>()
          .refuses({404}),
      [this](Call& call) {
        service_.heartbeat(request_of<RecordActivityTaskHeartbeatRequest>(call),
                           call.done<RecordActivityTaskHeartbeatResponse>());
      });
  add("POST", N + "/activity-complete",
      Doc(Access::worker, "An activity, by its token, is done")
          .takes<RespondActivityTaskCompletedRequest>()
          .answers<EmptyResponse>()
          .refuses({404}),
      [this](Call& call) {
        service_.complete_activity(request_of<RespondActivityTaskCompletedRequest>(call),
                                   call.done<EmptyResponse>());
      });
  add("POST", N + "/activity-fail",
      Doc(Access::worker, "An activity, by its token, has failed")
          .takes<RespondActivityTaskFailedRequest>()
          .answers<EmptyResponse>()
          .refuses({404}),
      [this](Call& call) {
        service_.fail_activity(request_of<RespondActivityTaskFailedRequest>(call),
                               call.done<EmptyResponse>());
      });
  add("POST", N + "/activity-resolve-as-canceled",
      Doc(Access::worker, "An activity, by its token, has ended as it was asked to")
          .takes<RespondActivityTaskCanceledRequest>()
          .answers<EmptyResponse>()
          .refuses({404}),
      [this](Call& call) {
        service_.cancel_activity(request_of<RespondActivityTaskCanceledRequest>(call),
                                 call.done<EmptyResponse>());
      });
  add("GET", N + "/task-queues/{task_queue}",
      Doc(Access::read, "Who polls a task queue")
          .query("taskQueueType",
                 {"TASK_QUEUE_TYPE_WORKFLOW", "TASK_QUEUE_TYPE_ACTIVITY", "1", "2"})
          .query("reportStats", ParameterKind::flag)
          .answers<DescribeTaskQueueResponse>(),
      [this](Call& call) {
        DescribeTaskQueueRequest request;
        request.namespace_ = call.variable("namespace");
        request.task_queue.name = call.variable("task_queue");
        const std::string type = call.parameter("taskQueueType").value_or("1");
        if (type == "2" || type == "TASK_QUEUE_TYPE_ACTIVITY") {
          request.task_queue_type = TaskQueueType::activity;
        }
        request.report_stats = call.flag("reportStats");
        service_.describe_task_queue(std::move(request), call.done<DescribeTaskQueueResponse>());
      });
}

template <class Request>
Request Routes::of_activity(Call& call) {
  Request request = request_of<Request>(call);
  request.workflow_id = WorkflowId(call.variable("workflow_id"));
  request.activity_id = call.variable("activity_id");
  return request;
}

// --- RPCs: Temporal's service, each call a POST of its request message, in the long form ---

// A call that may wait long.
template <class Request, class Response>
void Routes::waiting_rpc(Access access, const char* name, const std::string& summary,
                         std::int64_t (service::Service::*method)(Request,
                                                                  service::Done<Response>)) {
  add("POST", std::string("/temporal.api.workflowservice.v1.WorkflowService/") + name,
      Doc(access, summary).takes<Request>().template answers<Response>(),
      [this, method](Call& call) {
        call.form = PayloadForm::long_form;
        const std::int64_t id = (service_.*method)(call.body<Request>(), call.done<Response>());
        call.exchange->park();
        call.exchange->on_gone([this, id] { service_.forget_poll(id); });
      });
}

void Routes::add_rpcs() {
  using service::Service;
  waiting_rpc(Access::worker, "PollWorkflowTaskQueue", "The next workflow task; waits for one",
              &Service::poll_workflow_task);
  rpc(Access::worker, "RespondWorkflowTaskCompleted", "A workflow task is done: its commands",
      &Service::complete_workflow_task);
  rpc(Access::worker, "RespondWorkflowTaskFailed", "A workflow task has failed",
      &Service::fail_workflow_task);
  waiting_rpc(Access::worker, "PollActivityTaskQueue", "The next activity task; waits for one",
              &Service::poll_activity_task);
  rpc(Access::worker, "RecordActivityTaskHeartbeat", "An activity is alive", &Service::heartbeat);
  rpc(Access::worker, "RecordActivityTaskHeartbeatById", "An activity, by its id, is alive",
      &Service::heartbeat_by_id);
  rpc(Access::worker, "RespondActivityTaskCompleted", "An activity is done",
      &Service::complete_activity);
  rpc(Access::worker, "RespondActivityTaskCompletedById", "An activity, by its id, is done",
      &Service::complete_activity_by_id);
  rpc(Access::worker, "RespondActivityTaskFailed", "An activity has failed",
      &Service::fail_activity);
  rpc(Access::worker, "RespondActivityTaskFailedById", "An activity, by its id, has failed",
      &Service::fail_activity_by_id);
  rpc(Access::worker, "RespondActivityTaskCanceled", "An activity has ended as it was asked to",
      &Service::cancel_activity);
  rpc(Access::worker, "RespondActivityTaskCanceledById",
      "An activity, by its id, has ended as it was asked to", &Service::cancel_activity_by_id);
  rpc(Access::worker, "ResetStickyTaskQueue", "Give the tasks of a run to any worker",
      &Service::reset_sticky);
  rpc(Access::read, "DescribeTaskQueue", "Who polls a task queue", &Service::describe_task_queue);
  rpc(Access::worker, "StartWorkflowExecution", "Start a workflow", &Service::start);
  rpc(Access::worker, "SignalWorkflowExecution", "Send a signal", &Service::signal);
  rpc(Access::worker, "SignalWithStartWorkflowExecution",
      "Send a signal, and start the workflow if it does not run", &Service::signal_with_start);
  rpc(Access::worker, "RequestCancelWorkflowExecution", "Ask a run to end",
      &Service::request_cancel);
  rpc(Access::admin, "TerminateWorkflowExecution", "End a run at once", &Service::terminate);
  rpc(Access::read, "DescribeWorkflowExecution", "A run", &Service::describe);
  add("POST", "/temporal.api.workflowservice.v1.WorkflowService/GetWorkflowExecutionHistory",
      Doc(Access::read, "The events of a run")
          .takes<GetWorkflowExecutionHistoryRequest>()
          .answers<GetWorkflowExecutionHistoryResponse>(),
      [this](Call& call) {
        call.form = PayloadForm::long_form;
        history(call, call.body<GetWorkflowExecutionHistoryRequest>());
      });
  waiting_rpc(Access::read, "QueryWorkflow", "Ask the worker of a run something", &Service::query);
  rpc(Access::worker, "RespondQueryTaskCompleted", "The answer to a query",
      &Service::complete_query);
}

}  // namespace permit::http
