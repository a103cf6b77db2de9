// Permit's own routes: pools, lines, holders that are not workflows; and the server's.
#include "orchestrator/http/call.h"
#include "orchestrator/http/openapi.h"
#include "orchestrator/protocol/json_writer.h"
#include "orchestrator/protocol/stream.h"
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
  add("GET", N + "/pools",
      Doc(Access::read, "All pools, with their slots and who holds them")
          .answers<ListPoolsResponse>(),
      [this](Call& call) {
        service_.list_pools({call.variable("namespace")}, call.done<ListPoolsResponse>());
      });
  add("GET", P,
      Doc(Access::read, "A pool, with its slots and who holds them")
          .answers<PoolInfo>()
          .refuses({404}),
      [this](Call& call) { service_.describe_pool(pool_named(call), call.done<PoolInfo>()); });
  add("PUT", P,
      Doc(Access::admin, "Make a pool, or change it").takes<SetPoolRequest>().answers<PoolInfo>(),
      [this](Call& call) {
        service_.set_pool(of_pool<SetPoolRequest>(call), call.done<PoolInfo>());
      });
  add("DELETE", P,
      Doc(Access::admin, "Remove a pool that nobody uses")
          .answers<EmptyResponse>()
          .refuses({404, 409}),
      [this](Call& call) { service_.delete_pool(pool_named(call), call.done<EmptyResponse>()); });
  add("POST", P + "/drain",
      Doc(Access::admin, "Grant no more of a slot, or of the pool; its holders finish")
          .takes<DrainRequest>()
          .answers<PoolInfo>()
          .refuses({404}),
      [this](Call& call) {
        service_.drain(of_pool<DrainRequest>(call), service::Pools::Drain::on,
                       call.done<PoolInfo>());
      });
  add("POST", P + "/undrain",
      Doc(Access::admin, "Grant again what was drained")
          .takes<DrainRequest>()
          .answers<PoolInfo>()
          .refuses({404}),
      [this](Call& call) {
        service_.drain(of_pool<DrainRequest>(call), service::Pools::Drain::off,
                       call.done<PoolInfo>());
      });
  add_line_routes();
  add_holder_routes();
}

// Who waits, and what happens.
void Routes::add_line_routes() {
  add("GET", N + "/pools/{pool}/waiters",
      Doc(Access::read, "Who waits for a slot, in order; then who was refused and will ask again")
          .answers<ListWaitersResponse>()
          .refuses({404}),
      [this](Call& call) {
        service_.list_waiters(pool_named(call), call.done<ListWaitersResponse>());
      });
  add("DELETE", N + "/waiters/{id}",
      Doc(Access::admin, "Take somebody out of the line")
          .query("identity", ParameterKind::text, "who does it")
          .query("reason")
          .answers<EmptyResponse>()
          .refuses({404, 409}),
      [this](Call& call) {
        service_.remove_waiter({call.variable("namespace"), waiter_id(call),
                                call.on_record(call.parameter("identity").value_or("")),
                                call.parameter("reason").value_or("")},
                               call.done<EmptyResponse>());
      });
  add("GET", N + "/waiters/{id}/why",
      Doc(Access::read, "What stands between a waiter and its slots")
          .answers<WhyResponse>()
          .refuses({404}),
      [this](Call& call) {
        service_.why({call.variable("namespace"), waiter_id(call)}, call.done<WhyResponse>());
      });
  add("GET", N + "/events",
      Doc(Access::read,
          "What happens, as it happens: event snapshot, then changes; ping when nothing does; "
          "reset, "
          "and a new snapshot, if the position is not known. Last-Event-ID is a position too")
          .query("pool", ParameterKind::text, "of this pool only")
          .query("since", ParameterKind::text, "the id of the last message you have")
          .streams<StreamSnapshot, StreamChanges, StreamPing>(),
      [this](Call& call) {
        check_namespace(call.variable("namespace"));
        const std::string* last = call.exchange->request().header("last-event-id");
        const std::string since = last != nullptr ? *last : call.parameter("since").value_or("");
        streams_.open(*call.exchange, PoolName(call.parameter("pool").value_or("")), since,
                      call.caller);
      });
}

void Routes::add_holder_routes() {
  add("POST", N + "/pools/{pool}/acquire",
      Doc(Access::worker,
          "Take a permit, or a place in line; again with the same requestId until it is granted")
          .takes<AcquireRequest>()
          .answers<AcquireResponse>(200, "Granted")
          .answers<AcquireResponse>(202, "A place in line: ask again")
          .refuses({404, 409, 422, 423, 504}),
      [this](Call& call) {
        constexpr int accepted = 202;  // for a place in line
        acquire(call, of_pool<AcquireRequest>(call), accepted);
      });
  add("GET", N + "/permits/{id}",
      Doc(Access::read, "A hold: the one of now, or the last one, or that of a run")
          .query("runId")
          .answers<PermitInfo>()
          .refuses({404}),
      [this](Call& call) {
        service_.describe_permit({call.variable("namespace"), WorkflowId(call.variable("id")),
                                  RunId(call.parameter("runId").value_or(""))},
                                 call.done<PermitInfo>());
      });
  add("POST", N + "/permits/{id}/renew",
      Doc(Access::worker, "Hold on: a lease from now")
          .takes<HolderRequest>()
          .answers<RenewResponse>()
          .refuses({404, 410}),
      [this](Call& call) {
        service_.renew(of_permit<HolderRequest>(call), call.done<RenewResponse>());
      });
  add("POST", N + "/permits/{id}/release",
      Doc(Access::worker, "Give a permit back")
          .takes<HolderRequest>()
          .answers<PermitInfo>()
          .refuses({404, 410}),
      [this](Call& call) {
        service_.release(of_permit<HolderRequest>(call), call.done<PermitInfo>());
      });
  add("POST", N + "/permits/{id}/force-release",
      Doc(Access::admin,
          "Take a slot away from whoever holds it: name the hold by its fence or runId")
          .takes<ForceReleaseRequest>()
          .answers<PermitInfo>()
          .refuses({404, 409}),
      [this](Call& call) {
        service_.force_release(of_permit<ForceReleaseRequest>(call), call.done<PermitInfo>());
      });
}

// The same as RPCs, for permits/pool_client and permits/holder_client.
void Routes::add_pool_rpcs() {
  using service::Service;
  const std::string S = "permit.api.v1.PermitService/";
  rpc(Access::read, S + "ListPools", "All pools, with their slots and who holds them",
      &Service::list_pools);
  rpc(Access::read, S + "DescribePool", "A pool, with its slots and who holds them",
      &Service::describe_pool);
  rpc(Access::admin, S + "SetPool", "Make a pool, or change it", &Service::set_pool);
  rpc(Access::admin, S + "DeletePool", "Remove a pool that nobody uses", &Service::delete_pool);
  rpc(Access::read, S + "ListWaiters", "Who waits for a slot, in order", &Service::list_waiters);
  rpc(Access::read, S + "ExplainWaiter", "What stands between a waiter and its slots",
      &Service::why);
  rpc(Access::admin, S + "RemoveWaiter", "Take somebody out of the line", &Service::remove_waiter);
  rpc(Access::read, S + "DescribePermit", "A hold", &Service::describe_permit);
  rpc(Access::admin, S + "ForceReleasePermit", "Take a slot away from whoever holds it",
      &Service::force_release);
  rpc(Access::worker, S + "RenewPermit", "Hold on: a lease from now", &Service::renew);
  rpc(Access::worker, S + "ReleasePermit", "Give a permit back", &Service::release);
  add("POST", "/" + S + "AcquirePermit",
      Doc(Access::worker, "Take a permit, or a place in line")
          .takes<AcquireRequest>()
          .answers<AcquireResponse>()
          .refuses({404, 409, 422, 423, 504}),
      [this](Call& call) { acquire(call, call.body<AcquireRequest>(), 200); });
  rpc(Access::read, S + "ListTaskQueues", "Task queues, with who polls them and what waits",
      &Service::list_task_queues);
  add("POST", "/" + S + "GetServerStatus",
      Doc(Access::read, "How the server is")
          .takes<GetServerStatusRequest>()
          .answers<ServerStatus>(),
      [this](Call& call) { server_status(call); });
  add("POST", "/" + S + "DrainPool",
      Doc(Access::admin, "Grant no more of a slot, or of the pool")
          .takes<DrainRequest>()
          .answers<PoolInfo>(),
      [this](Call& call) {
        service_.drain(call.body<DrainRequest>(), service::Pools::Drain::on, call.done<PoolInfo>());
      });
  add("POST", "/" + S + "UndrainPool",
      Doc(Access::admin, "Grant again what was drained").takes<DrainRequest>().answers<PoolInfo>(),
      [this](Call& call) {
        service_.drain(call.body<DrainRequest>(), service::Pools::Drain::off,
                       call.done<PoolInfo>());
      });
  add("POST", "/" + S + "ListPermits",
      Doc(Access::read, "The ledger of holds, newest first")
          .takes<ListPermitsRequest>()
          .answers<ListPermitsResponse>(),
      [this](Call& call) {
        reads_.list_permits(call.body<ListPermitsRequest>(), call.form,
                            call.done_written<ListPermitsResponse>());
      });
}

// Granted is 200, a place in line has a status of its own.
void Routes::acquire(Call& call, AcquireRequest request, int waiting_status) {
  const std::int64_t id = service_.acquire(
      std::move(request),
      [exchange = call.exchange, waiting_status](const service::Result<AcquireResponse>& result) {
        if (const auto* error = std::get_if<Error>(&result)) {
          reply_error(*exchange, *error);
          return;
        }
        const AcquireResponse& acquired = std::get<AcquireResponse>(result);
        Response response;
        if (acquired.ticket) response.status = waiting_status;
        write_json(acquired, response.body);
        exchange->reply(std::move(response));
      },
      [exchange = call.exchange.get()] { exchange->park(); });  // which the answer holds
  call.exchange->on_gone([this, id] { service_.forget_poll(id); });
}

namespace {

DescribeNamespaceResponse the_namespace(const Routes::ServerInfo& info) {
  DescribeNamespaceResponse response;
  response.namespace_info.name = "default";
  response.namespace_info.state = NamespaceState::registered;
  response.namespace_info.capabilities.worker_heartbeats = true;
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
  add("GET", "/api/v1/namespaces",
      Doc(Access::read, "All namespaces: default")
          .query("pageSize", ParameterKind::integer, "of no effect")
          .query("nextPageToken", ParameterKind::bytes, "of no effect")
          .answers<ListNamespacesResponse>(),
      namespaces);
  add("POST", rpc + "ListNamespaces",
      Doc(Access::read, "All namespaces: default")
          .takes<ListNamespacesRequest>()
          .answers<ListNamespacesResponse>(),
      namespaces);
  add("GET", N,
      Doc(Access::read, "A namespace").answers<DescribeNamespaceResponse>().refuses({404}),
      [this](Call& call) {
        call.done<DescribeNamespaceResponse>()(namespace_named(call.variable("namespace"), info_));
      });
  add("POST", rpc + "DescribeNamespace",
      Doc(Access::read, "A namespace")
          .takes<DescribeNamespaceRequest>()
          .answers<DescribeNamespaceResponse>(),
      [this](Call& call) {
        const auto request = call.body<DescribeNamespaceRequest>();
        call.done<DescribeNamespaceResponse>()(namespace_named(request.namespace_, info_));
      });
  const auto system = [](Call& call) { call.done<GetSystemInfoResponse>()(system_info()); };
  add("GET", "/api/v1/system-info",
      Doc(Access::read, "What the server can do, and what time it is there").answers<SystemInfo>(),
      [this](Call& call) {
        const GetSystemInfoResponse info = system_info();
        call.done<SystemInfo>()(
            SystemInfo{info.server_version, info.capabilities, service_.time()});
      });
  add("POST", rpc + "GetSystemInfo",
      Doc(Access::read, "What the server can do")
          .takes<GetSystemInfoRequest>()
          .answers<GetSystemInfoResponse>(),
      system);
  const auto cluster = [](Call& call) {
    call.done<GetClusterInfoResponse>()(GetClusterInfoResponse{"permit", version});
  };
  add("GET", "/api/v1/cluster-info",
      Doc(Access::read, "The name and version of the server").answers<GetClusterInfoResponse>(),
      cluster);
  add("POST", rpc + "GetClusterInfo",
      Doc(Access::read, "The name and version of the server")
          .takes<GetClusterInfoRequest>()
          .answers<GetClusterInfoResponse>(),
      cluster);
  // A worker says goodbye: its sticky queue will not be polled again.
  add("POST", rpc + "ShutdownWorker",
      Doc(Access::worker, "A worker says goodbye: its sticky queue will not be polled again")
          .takes<ShutdownWorkerRequest>()
          .answers<EmptyResponse>(),
      [this](Call& call) {
        const auto request = call.body<ShutdownWorkerRequest>();
        service_.shutdown_worker(request, call.done<EmptyResponse>());
      });
  for (const char* name :
       {"UpdateWorkflowExecution", "PollWorkflowExecutionUpdate", "ResetWorkflowExecution",
        "ExecuteMultiOperation", "CreateSchedule", "StartBatchOperation", "RegisterNamespace",
        "GetWorkflowExecutionHistoryReverse"}) {
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
  add("GET", "/openapi.json", Doc(Access::open, "This document").sends("application/json"),
      [this](Call& call) {
        if (openapi_.empty()) openapi_ = openapi_json(routes_);
        Response response;
        response.body = openapi_;
        call.exchange->reply(std::move(response));
      });
  if (!options_.advance) return;
  add("POST", "/api/v1/test/advance",
      Doc(Access::admin, "With --virtual-time: let time pass")
          .takes<AdvanceRequest>()
          .answers<AdvanceResponse>()
          .refuses({400, 409}),
      [this](Call& call) {
        options_.advance(call.body<AdvanceRequest>(), call.done<AdvanceResponse>());
      });
}

}  // namespace permit::http
