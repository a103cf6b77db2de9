// Workers and what they tell of themselves: Temporal's REST routes and its calls as HTTP POSTs.
#include "orchestrator/http/call.h"
#include "orchestrator/protocol/base64.h"

namespace permit::http {

namespace {

const std::string N = "/api/v1/namespaces/{namespace}";

Bytes page_token(const Routes::Call& call) {
  const auto bytes = from_base64(call.parameter("nextPageToken").value_or(""));
  if (bytes) return Bytes{*bytes};
  throw invalid_argument("PAGE_TOKEN_INVALID",
                         "nextPageToken is not one that this server gave; begin without it");
}

}  // namespace

void Routes::add_worker_routes() {
  using service::Service;
  rpc(Access::worker, "RecordWorkerHeartbeat", "Workers tell of themselves; every 10 s",
      &Service::record_worker_heartbeat);
  rpc(Access::read, "ListWorkers", "Workers that have told of themselves", &Service::list_workers);
  rpc(Access::read, "DescribeWorker", "A worker that has told of itself",
      &Service::describe_worker);
  add("POST", N + "/workers/heartbeat",
      Doc(Access::worker, "Workers tell of themselves; every 10 s")
          .takes<RecordWorkerHeartbeatRequest>()
          .answers<EmptyResponse>(),
      [this](Call& call) {
        auto request = call.body<RecordWorkerHeartbeatRequest>();
        request.namespace_ = call.variable("namespace");
        service_.record_worker_heartbeat(std::move(request), call.done<EmptyResponse>());
      });
  add("GET", N + "/workers",
      Doc(Access::read, "Workers that have told of themselves: what they are, and how busy")
          .query("pageSize", ParameterKind::integer, "1000 at most, which is the default")
          .query("nextPageToken", ParameterKind::bytes)
          .answers<ListWorkersResponse>(),
      [this](Call& call) {
        ListWorkersRequest request;
        request.namespace_ = call.variable("namespace");
        request.page_size = call.integer("pageSize");
        request.next_page_token = page_token(call);
        service_.list_workers(std::move(request), call.done<ListWorkersResponse>());
      });
  add("GET", N + "/workers/describe/{worker_instance_key}",
      Doc(Access::read, "A worker that has told of itself")
          .answers<DescribeWorkerResponse>()
          .refuses({404}),
      [this](Call& call) {
        service_.describe_worker({call.variable("namespace"), call.variable("worker_instance_key")},
                                 call.done<DescribeWorkerResponse>());
      });
}

}  // namespace permit::http
