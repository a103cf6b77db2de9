// The calls that are made of the server, each by the name that it has on the wire, and straight.
#pragma once

#include <string_view>

#include "orchestrator/service/service.h"

namespace permit::simulation {

template <class Request, class Response>
struct Rpc {
  std::string_view name;
  // The id is for forget_poll(); 0 if it does not wait.
  std::int64_t (*straight)(service::Service&, Request, service::Done<Response>);
};

namespace detail {

template <class Method>
struct MethodOf;
template <class Id, class Request, class Response>
struct MethodOf<Id (service::Service::*)(Request, service::Done<Response>)> {
  using Call = Rpc<Request, Response>;
  template <auto method>
  static std::int64_t straight(service::Service& service, Request request,
                               service::Done<Response> done) {
    if constexpr (std::is_void_v<Id>) {
      (service.*method)(std::move(request), std::move(done));
      return 0;
    } else {
      return (service.*method)(std::move(request), std::move(done));
    }
  }
};

template <auto method>
constexpr auto rpc(std::string_view name) {
  using Of = MethodOf<decltype(method)>;
  return typename Of::Call{name, &Of::template straight<method>};
}

}  // namespace detail

namespace rpc {

using detail::rpc;
using service::Service;

inline constexpr auto start = rpc<&Service::start>("StartWorkflowExecution");
inline constexpr auto signal = rpc<&Service::signal>("SignalWorkflowExecution");
inline constexpr auto signal_with_start =
    rpc<&Service::signal_with_start>("SignalWithStartWorkflowExecution");
inline constexpr auto request_cancel =
    rpc<&Service::request_cancel>("RequestCancelWorkflowExecution");
inline constexpr auto terminate = rpc<&Service::terminate>("TerminateWorkflowExecution");
inline constexpr auto describe = rpc<&Service::describe>("DescribeWorkflowExecution");
inline constexpr auto history = rpc<&Service::history>("GetWorkflowExecutionHistory");

inline constexpr auto poll_workflow_task =
    rpc<&Service::poll_workflow_task>("PollWorkflowTaskQueue");
inline constexpr auto complete_workflow_task =
    rpc<&Service::complete_workflow_task>("RespondWorkflowTaskCompleted");
inline constexpr auto fail_workflow_task =
    rpc<&Service::fail_workflow_task>("RespondWorkflowTaskFailed");
inline constexpr auto poll_activity_task =
    rpc<&Service::poll_activity_task>("PollActivityTaskQueue");
inline constexpr auto heartbeat = rpc<&Service::heartbeat>("RecordActivityTaskHeartbeat");
inline constexpr auto complete_activity =
    rpc<&Service::complete_activity>("RespondActivityTaskCompleted");
inline constexpr auto fail_activity = rpc<&Service::fail_activity>("RespondActivityTaskFailed");
inline constexpr auto cancel_activity =
    rpc<&Service::cancel_activity>("RespondActivityTaskCanceled");
inline constexpr auto shutdown_worker = rpc<&Service::shutdown_worker>("ShutdownWorker");

#define PERMIT_SERVICE "permit.api.v1.PermitService/"
inline constexpr auto list_pools = rpc<&Service::list_pools>(PERMIT_SERVICE "ListPools");
inline constexpr auto list_waiters = rpc<&Service::list_waiters>(PERMIT_SERVICE "ListWaiters");
inline constexpr auto set_pool = rpc<&Service::set_pool>(PERMIT_SERVICE "SetPool");
inline constexpr auto remove_waiter = rpc<&Service::remove_waiter>(PERMIT_SERVICE "RemoveWaiter");
inline constexpr auto force_release =
    rpc<&Service::force_release>(PERMIT_SERVICE "ForceReleasePermit");
inline constexpr auto renew = rpc<&Service::renew>(PERMIT_SERVICE "RenewPermit");
inline constexpr auto release = rpc<&Service::release>(PERMIT_SERVICE "ReleasePermit");
inline constexpr Rpc<AcquireRequest, AcquireResponse> acquire = {
    PERMIT_SERVICE "AcquirePermit",
    [](Service& service, AcquireRequest request, service::Done<AcquireResponse> done) {
      return service.acquire(std::move(request), std::move(done));
    }};
inline constexpr Rpc<DrainRequest, PoolInfo> drain = {
    PERMIT_SERVICE "DrainPool",
    [](Service& service, DrainRequest request, service::Done<PoolInfo> done) -> std::int64_t {
      service.drain(std::move(request), service::Pools::Drain::on, std::move(done));
      return 0;
    }};
inline constexpr Rpc<DrainRequest, PoolInfo> undrain = {
    PERMIT_SERVICE "UndrainPool",
    [](Service& service, DrainRequest request, service::Done<PoolInfo> done) -> std::int64_t {
      service.drain(std::move(request), service::Pools::Drain::off, std::move(done));
      return 0;
    }};
#undef PERMIT_SERVICE

}  // namespace rpc

}  // namespace permit::simulation
