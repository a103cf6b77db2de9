// The API's route table: finds the call, reads its request, runs it, writes its answer. The only
// place where errors become HTTP statuses. Belongs to the engine thread.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "orchestrator/http/assets.h"
#include "orchestrator/http/auth.h"
#include "orchestrator/http/doc.h"
#include "orchestrator/http/gate.h"
#include "orchestrator/http/message.h"
#include "orchestrator/http/request_metrics.h"
#include "orchestrator/http/streams.h"
#include "orchestrator/service/metric_ring.h"
#include "orchestrator/service/reads.h"
#include "orchestrator/service/service.h"

namespace permit::http {

struct RouteOptions {
  // What the server says its data is in: a file, or "memory".
  std::string store = "memory";
  // The directory that the page is served from; empty: as it is in the binary.
  std::string page_directory;
  bool metrics_per_slot = false;  // a series for each slot, too
  // Present with --virtual-time only: moves the clock; see AdvanceRequest.
  std::function<void(AdvanceRequest, service::Done<AdvanceResponse>)> advance;
  // The settings in force, for /api/v1/server, and the limits of what comes before the routes.
  std::vector<SettingInfo> settings;
  Limits limits;
  AuthOptions auth;
  // Whether the server is ready to serve; and if not, why.
  std::function<std::string()> unready = [] { return std::string(); };
  // What an operator should know of a server that is ready all the same.
  std::function<std::string()> warning = [] { return std::string(); };
};

class Routes {
 public:
  Routes(service::Service& service, service::Reads& reads, RouteOptions options);
  ~Routes();

  // What the server says of itself.
  struct ServerInfo {
    std::int64_t payload_bytes_max = 0;
    std::int64_t memo_bytes_max = 0;
    Duration retention{};
  };

  void handle(const std::shared_ptr<Exchange>& unmeasured);
  // The same for calls of this very process, which need no key.
  void handle_own(const std::shared_ptr<Exchange>& unmeasured);

  // The open event streams, which the server's loop advances.
  Streams& streams() { return streams_; }

  // Looks at the metrics, if a second has gone by. To be called at next_observation(), soon.
  void observe(Time now);

  // Ends long polls and event streams whose key has been revoked, or has expired. Looks once a
  // second; to be called more often.
  void end_unauthorized();
  Time next_observation() const { return ring_.next_due(); }

  struct Call;
  using Handler = std::function<void(Call&)>;

  struct Route {
    std::string method;
    std::vector<std::string> pattern;  // segments; "{name}" takes one, "{name...}" the rest
    Doc doc;
    Handler handler;
    std::size_t measured = 0;    // its place among the request metrics
    bool has_namespace = false;  // as a variable
    bool takes_rest = false;
    std::vector<std::size_t> fixed{};  // places in the pattern of what is no variable
  };

 private:
  // A route, and what /openapi.json says of it:
  //
  //   add("PUT", P,
  //       Doc(Access::admin, "Make a pool").takes<SetPoolRequest>().answers<PoolInfo>(),
  //       [this](Call& call) { … call.body<SetPoolRequest>() … call.done<PoolInfo>() … });
  //
  // A GET or DELETE under /api takes the parameters of its Doc and no others.
  void add(const std::string& method, const std::string& pattern, Doc doc, Handler handler);
  void add_workflow_routes();
  void add_message_routes();  // signals, and asking a run to end
  void add_list_routes();
  void add_task_routes();
  void add_token_routes();  // activities by their tokens
  void add_rpcs();
  void add_worker_routes();
  void add_pool_routes();
  void add_line_routes();
  void add_holder_routes();
  void add_pool_rpcs();
  void add_server_routes();
  void add_server_info_routes();
  void add_health_routes();
  void add_metrics_routes();
  void add_page_routes();
  void add_key_routes();
  void add_login_routes();
  void history(Call& call, GetWorkflowExecutionHistoryRequest request);
  void acquire(Call& call, AcquireRequest request, int waiting_status);
  void server_status(Call& call);
  void readiness(Call& call);
  void describe_server(Call& call);
  template <class Request>
  Request of_activity(Call& call);
  template <class Request, class Response>
  void rpc(Access access, const std::string& name, const std::string& summary,
           void (service::Service::*method)(Request, service::Done<Response>));
  template <class Request, class Response>
  void waiting_rpc(Access access, const char* name, const std::string& summary,
                   std::int64_t (service::Service::*method)(Request, service::Done<Response>));
  void not_offered(const std::string& method, const std::string& pattern, const std::string& what);
  void take(const std::shared_ptr<Exchange>& unmeasured, bool is_own);
  void identify(Call& call);
  void dispatch(Call& call);

  service::Service& service_;
  service::Reads& reads_;
  RouteOptions options_;
  const std::string instance_;
  Auth auth_;
  Streams streams_;
  // Outlives us: exchanges that are answered later hold it.
  std::shared_ptr<RequestMetrics> requests_ = std::make_shared<RequestMetrics>();
  service::MetricRing ring_;
  Assets assets_;
  ServerInfo info_;
  std::vector<Route> routes_;
  // A route, and the last of its fixed segments, by which most do not match.
  struct Candidate {
    std::size_t route;  // its place in routes_
    std::size_t place;  // of the segment; npos: there is none
    std::string segment;
  };
  // By the number of segments that they may match; the last: as many or more.
  std::array<std::vector<Candidate>, 12> by_length_;
  // Requests by somebody with a key that were not answered at once.
  struct KeyedWait {
    std::weak_ptr<MeasuredExchange> exchange;
    Caller caller;
  };
  std::vector<KeyedWait> keyed_waits_;
  std::chrono::steady_clock::time_point keys_checked_{};
  std::string openapi_;  // made when it is first asked for
};

// The status an error is answered with: by its reason where ours is finer than google.rpc's code.
int status_of(const Error& error);

}  // namespace permit::http
