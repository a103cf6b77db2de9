// Permit's own routes: pools, lines, holders that are not workflows; and the server's.
#include "orchestrator/http/call.h"
#include "orchestrator/http/metrics.h"
#include "orchestrator/protocol/json_writer.h"
#include "orchestrator/protocol/version.h"

namespace permit::http {

namespace {

const std::string N = "/api/v1/namespaces/{namespace}";

template <class Request>
Request with_namespace(Routes::Call& call) {
  Request request = call.body<Request>();
  request.namespace_ = call.variable("namespace");
  return request;
}

template <class Request>
Request of_pool(Routes::Call& call) {
  Request request = with_namespace<Request>(call);
  request.pool = PoolName(call.variable("pool"));
  return request;
}

template <class Request>
Request of_permit(Routes::Call& call) {
  Request request = with_namespace<Request>(call);
  request.id = WorkflowId(call.variable("id"));
  return request;
}

void check_namespace(const std::string& name) {
  if (name == "default") return;
  throw not_found("NAMESPACE_NOT_FOUND", "there is no such namespace; only \"default\" exists");
}

PoolRequest pool_named(const Routes::Call& call) {
  return {call.variable("namespace"), PoolName(call.variable("pool"))};
}

Fence waiter_id(const Routes::Call& call) {
  const std::string& text = call.variable("id");
  std::int64_t id = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (error != std::errc() || stop != text.data() + text.size() || id <= 0) {
    throw invalid_argument("WAITER_ID_INVALID", "a waiter's id is a whole number above 0");
  }
  return Fence{id};
}

}  // namespace

void Routes::add_pool_routes() {
  const std::string P = N + "/pools/{pool}";
  add("GET", N + "/pools", [this](Call& call) {
    call.allow_parameters({});
    service_.list_pools({call.variable("namespace")}, call.done<ListPoolsResponse>());
  });
  add("GET", P, [this](Call& call) {
    call.allow_parameters({});
    service_.describe_pool(pool_named(call), call.done<PoolInfo>());
  });
  add("PUT", P, [this](Call& call) {
    service_.set_pool(of_pool<SetPoolRequest>(call), call.done<PoolInfo>());
  });
  add("DELETE", P,
      [this](Call& call) { service_.delete_pool(pool_named(call), call.done<EmptyResponse>()); });
  add("POST", P + "/drain", [this](Call& call) {
    service_.drain(of_pool<DrainRequest>(call), service::Pools::Drain::on, call.done<PoolInfo>());
  });
  add("POST", P + "/undrain", [this](Call& call) {
    service_.drain(of_pool<DrainRequest>(call), service::Pools::Drain::off, call.done<PoolInfo>());
  });
  add("GET", P + "/waiters", [this](Call& call) {
    call.allow_parameters({});
    service_.list_waiters(pool_named(call), call.done<ListWaitersResponse>());
  });
  add("DELETE", N + "/waiters/{id}", [this](Call& call) {
    call.allow_parameters({"identity", "reason"});
    service_.remove_waiter(
        {call.variable("namespace"), waiter_id(call), call.parameter("identity").value_or(""),
         call.parameter("reason").value_or("")},
        call.done<EmptyResponse>());
  });
  add("GET", N + "/waiters/{id}/why", [this](Call& call) {
    service_.why({call.variable("namespace"), waiter_id(call)}, call.done<WhyResponse>());
  });
  add("GET", N + "/events", [this](Call& call) {
    call.allow_parameters({"pool", "since"});
    check_namespace(call.variable("namespace"));
    const std::string* last = call.exchange->request().header("last-event-id");
    const std::string since = last != nullptr ? *last : call.parameter("since").value_or("");
    streams_.open(*call.exchange, PoolName(call.parameter("pool").value_or("")), since);
  });
  add("POST", P + "/acquire", [this](Call& call) {
    constexpr int accepted = 202;  // for a place in line
    acquire(call, of_pool<AcquireRequest>(call), accepted);
  });
  add("GET", N + "/permits/{id}", [this](Call& call) {
    call.allow_parameters({"runId"});
    service_.describe_permit({call.variable("namespace"), WorkflowId(call.variable("id")),
                              RunId(call.parameter("runId").value_or(""))},
                             call.done<PermitInfo>());
  });
  add("POST", N + "/permits/{id}/renew", [this](Call& call) {
    service_.renew(of_permit<HolderRequest>(call), call.done<RenewResponse>());
  });
  add("POST", N + "/permits/{id}/release", [this](Call& call) {
    service_.release(of_permit<HolderRequest>(call), call.done<PermitInfo>());
  });
  add("POST", N + "/permits/{id}/force-release", [this](Call& call) {
    service_.force_release(of_permit<ForceReleaseRequest>(call), call.done<PermitInfo>());
  });
}

// The same as RPCs, for permits/pool_client and permits/holder_client.
void Routes::add_pool_rpcs() {
  using service::Service;
  const std::string S = "permit.api.v1.PermitService/";
  rpc(S + "ListPools", &Service::list_pools);
  rpc(S + "DescribePool", &Service::describe_pool);
  rpc(S + "SetPool", &Service::set_pool);
  rpc(S + "DeletePool", &Service::delete_pool);
  rpc(S + "ListWaiters", &Service::list_waiters);
  rpc(S + "ExplainWaiter", &Service::why);
  rpc(S + "RemoveWaiter", &Service::remove_waiter);
  rpc(S + "DescribePermit", &Service::describe_permit);
  rpc(S + "ForceReleasePermit", &Service::force_release);
  rpc(S + "RenewPermit", &Service::renew);
  rpc(S + "ReleasePermit", &Service::release);
  add("POST", "/" + S + "AcquirePermit",
      [this](Call& call) { acquire(call, call.body<AcquireRequest>(), 200); });
  rpc(S + "ListTaskQueues", &Service::list_task_queues);
  add("POST", "/" + S + "GetServerStatus", [this](Call& call) { server_status(call); });
  add("POST", "/" + S + "DrainPool", [this](Call& call) {
    service_.drain(call.body<DrainRequest>(), service::Pools::Drain::on, call.done<PoolInfo>());
  });
  add("POST", "/" + S + "UndrainPool", [this](Call& call) {
    service_.drain(call.body<DrainRequest>(), service::Pools::Drain::off, call.done<PoolInfo>());
  });
  add("POST", "/" + S + "ListPermits", [this](Call& call) {
    reads_.list_permits(call.body<ListPermitsRequest>(), call.done<ListPermitsResponse>());
  });
}

// Granted is 200, a place in line has a status of its own.
void Routes::acquire(Call& call, AcquireRequest request, int waiting_status) {
  const std::int64_t id = service_.acquire(
      std::move(request),
      [exchange = call.exchange, waiting_status](service::Result<AcquireResponse> result) {
        if (const auto* error = std::get_if<Error>(&result)) {
          reply_error(*exchange, *error);
          return;
        }
        const AcquireResponse& acquired = std::get<AcquireResponse>(result);
        Response response;
        if (acquired.ticket) response.status = waiting_status;
        write_json(acquired, response.body);
        exchange->reply(std::move(response));
      });
  call.exchange->on_gone([this, id] { service_.forget_poll(id); });
}

namespace {

DescribeNamespaceResponse the_namespace(const Routes::ServerInfo& info) {
  DescribeNamespaceResponse response;
  response.namespace_info.name = "default";
  response.namespace_info.state = NamespaceState::registered;
  response.namespace_info.limits = {info.payload_bytes_max, info.memo_bytes_max};
  response.config.workflow_execution_retention_ttl = info.retention;
  return response;
}

DescribeNamespaceResponse namespace_named(const std::string& name, const Routes::ServerInfo& info) {
  check_namespace(name);
  return the_namespace(info);
}

GetSystemInfoResponse system_info() {
  GetSystemInfoResponse response;
  response.server_version = version;
  response.capabilities.signal_and_query_header = true;
  response.capabilities.internal_error_differentiation = true;
  response.capabilities.activity_failure_include_heartbeat = true;
  response.capabilities.upsert_memo = true;
  response.capabilities.sdk_metadata = true;
  return response;
}

}  // namespace

void Routes::add_server_info_routes() {
  const std::string rpc = "/temporal.api.workflowservice.v1.WorkflowService/";
  const auto namespaces = [this](Call& call) {
    call.done<ListNamespacesResponse>()(ListNamespacesResponse{{the_namespace(info_)}, {}});
  };
  add("GET", "/api/v1/namespaces", namespaces);
  add("POST", rpc + "ListNamespaces", namespaces);
  add("GET", N, [this](Call& call) {
    call.done<DescribeNamespaceResponse>()(namespace_named(call.variable("namespace"), info_));
  });
  add("POST", rpc + "DescribeNamespace", [this](Call& call) {
    const auto request = call.body<DescribeNamespaceRequest>();
    call.done<DescribeNamespaceResponse>()(namespace_named(request.namespace_, info_));
  });
  const auto system = [](Call& call) { call.done<GetSystemInfoResponse>()(system_info()); };
  add("GET", "/api/v1/system-info", system);
  add("POST", rpc + "GetSystemInfo", system);
  const auto cluster = [](Call& call) {
    call.done<GetClusterInfoResponse>()(GetClusterInfoResponse{"permit", version});
  };
  add("GET", "/api/v1/cluster-info", cluster);
  add("POST", rpc + "GetClusterInfo", cluster);
  // A worker says goodbye: its sticky queue will not be polled again.
  add("POST", rpc + "ShutdownWorker", [this](Call& call) {
    const auto request = call.body<ShutdownWorkerRequest>();
    service_.shutdown_worker(request, call.done<EmptyResponse>());
  });
  for (const char* name :
       {"UpdateWorkflowExecution", "PollWorkflowExecutionUpdate", "ResetWorkflowExecution",
        "ExecuteMultiOperation", "CreateSchedule", "StartBatchOperation", "RegisterNamespace",
        "GetWorkflowExecutionHistoryReverse", "RecordWorkerHeartbeat"}) {
    not_offered("POST", rpc + name, name);
  }
}

void Routes::server_status(Call& call) {
  auto done = call.done<ServerStatus>();
  service_.status(call.body<GetServerStatusRequest>(),
                  [this, done](service::Result<ServerStatus> result) {
                    if (auto* status = std::get_if<ServerStatus>(&result)) {
                      status->version = version;
                      status->store = options_.store;
                      const std::string unready = options_.unready();
                      status->ready = unready.empty();
                      for (const std::string& said : {unready, options_.warning()}) {
                        if (!said.empty()) status->warnings.push_back(said);
                      }
                    }
                    done(std::move(result));
                  });
}

void Routes::add_server_routes() {
  add_server_info_routes();
  add("GET", "/livez", [](Call& call) {
    Response response;
    response.body = R"({"status":"ok"})";
    call.exchange->reply(std::move(response));
  });
  add("GET", "/readyz", [this](Call& call) {
    const std::string why = options_.unready();
    if (!why.empty()) throw Error(ErrorCode::unavailable, "NOT_READY", why);
    const std::string warning = options_.warning();
    Response response;
    response.body = R"({"status":"ok")";
    if (!warning.empty()) {
      response.body += R"(,"warnings":[)";
      append_json_string(warning, response.body);
      response.body += ']';
    }
    response.body += '}';
    call.exchange->reply(std::move(response));
  });
  add("GET", "/metrics", [this](Call& call) {
    Response response;
    response.content_type = "text/plain; version=0.0.4";
    response.body = metrics_text(service_);
    call.exchange->reply(std::move(response));
  });
  if (!options_.advance) return;
  add("POST", "/api/v1/test/advance", [this](Call& call) {
    options_.advance(call.body<AdvanceRequest>(), call.done<AdvanceResponse>());
  });
}

}  // namespace permit::http
