#include "tests/simulation/clients.h"

#include "orchestrator/core/validate.h"

namespace permit::simulation {

using namespace std::chrono_literals;

void Clients::begin() {
  for (const PoolPlan& pool : world_.plan.pools) {
    if (pool.configured) set_pool(pool, pool.capacity);
  }
}

void Clients::step() {
  const int die = world_.chance.between(0, 99);
  if (die < 35) {
    start();
  } else if (die < 40) {
    start_again();
  } else if (die < 44) {
    start_permit_by_id();
  } else if (die < 58) {
    signal();
  } else if (die < 68) {
    release_late();
  } else if (die < 74) {
    signal_with_start();
  } else if (die < 82) {
    cancel();
  } else if (die < 92) {
    terminate();
  } else {
    describe();
  }
}

void Clients::operate() {
  const PoolPlan& pool = world_.chance.pick(world_.plan.pools);
  const int die = world_.chance.between(0, 99);
  if (die < 25) {
    set_pool(pool, world_.chance.between(0, pool.capacity + 2));
  } else if (die < 45) {
    const bool whole = world_.chance.percent(50);
    drain(pool, service::Pools::Drain::on, whole ? SlotName() : SlotName("0"));
  } else if (die < 70) {
    const bool whole = world_.chance.percent(60);
    drain(pool, service::Pools::Drain::off, whole ? SlotName() : SlotName("0"));
  } else if (die < 90) {
    force_release();
  } else {
    remove_waiter();
  }
}

// --- Starts ---

StartWorkflowExecutionRequest Clients::start_request() {
  StartWorkflowExecutionRequest request;
  request.namespace_ = "default";
  request.workflow_id =
      WorkflowId("parent" + std::to_string(world_.chance.between(0, world_.plan.parents - 1)));
  request.workflow_type.name = "Parent";
  request.task_queue.name = "work";
  if (world_.chance.percent(20)) {
    request.workflow_run_timeout = world_.chance.duration(1s, world_.plan.lease_max * 3 + 10s);
  }
  using Conflict = WorkflowIdConflictPolicy;
  using Reuse = WorkflowIdReusePolicy;
  const int die = world_.chance.between(0, 99);
  if (die < 8) request.workflow_id_conflict_policy = Conflict::terminate_existing;
  if (die >= 8 && die < 14) request.workflow_id_conflict_policy = Conflict::use_existing;
  if (die >= 14 && die < 18) request.workflow_id_reuse_policy = Reuse::reject_duplicate;
  if (die >= 18 && die < 22) request.workflow_id_reuse_policy = Reuse::allow_duplicate_failed_only;
  return request;
}

void Clients::send_start(const StartWorkflowExecutionRequest& request,
                         const std::shared_ptr<Promise>& promise) {
  using Response = StartWorkflowExecutionResponse;
  world_.send([this, request, promise] {
    if (const auto permit = core::parse_permit_id(request.workflow_id)) {
      world_.lines.pool_changed(permit->pool);  // it may register a slot
    }
    world_.service().start(
        request, world_.expect<Response>(promise, [this](service::Result<Response> result) {
          const auto* response = std::get_if<Response>(&result);
          if (response != nullptr) world_.promises.acknowledged_run(response->run_id);
        }));
  });
}

void Clients::start() {
  StartWorkflowExecutionRequest request = start_request();
  const auto promise = world_.promises.make(Trace::started);
  // Sent twice it is one start, unless another run of the id came between.
  promise->alike = true;
  promise->leaves = request.workflow_id_conflict_policy != WorkflowIdConflictPolicy::use_existing;
  request.request_id = promise->mark;
  if (request.workflow_id_conflict_policy == WorkflowIdConflictPolicy::unspecified &&
      world_.chance.percent(20)) {
    // Beside another start of the same id, in the same batch.
    StartWorkflowExecutionRequest rival = request;
    const auto second = world_.promises.make(Trace::started);
    second->alike = true;
    rival.request_id = second->mark;
    send_start(rival, second);
  }
  starts_.emplace_back(request, promise);
  send_start(request, promise);
}

void Clients::start_again() {
  if (starts_.empty()) return;
  const auto& [request, promise] = world_.chance.pick(starts_);
  promise->leaves = false;
  send_start(request, promise);
}

// As a stock SDK would.
void Clients::start_permit_by_id() {
  if (!world_.chance.percent(40)) return;
  const PoolPlan& pool = world_.chance.pick(world_.plan.pools);
  StartWorkflowExecutionRequest request;
  request.namespace_ = "default";
  request.workflow_id = WorkflowId("permit:" + pool.name.value + ":" +
                                   std::to_string(world_.chance.between(0, pool.capacity - 1)));
  request.workflow_type.name = "PermitSlotWorkflow";
  request.task_queue.name = "permits";
  request.workflow_execution_timeout =
      world_.chance.duration(world_.plan.lease_min, world_.plan.lease_max);
  const auto promise = world_.promises.make(Trace::started);
  promise->alike = true;
  request.request_id = promise->mark;
  send_start(request, promise);
}

// --- Signals, ends ---

WorkflowExecution Clients::some_run() {
  const auto& runs = world_.ledger.runs();
  if (runs.empty() || world_.chance.percent(40)) {
    const int id = world_.chance.between(0, world_.plan.parents - 1);
    return {WorkflowId("parent" + std::to_string(id)), RunId()};
  }
  auto it = runs.lower_bound(world_.chance.between(1, static_cast<int>(runs.rbegin()->first)));
  if (it == runs.end()) it = runs.begin();
  return it->second.execution();
}

const RunTrace* Clients::some_permit(bool open) {
  std::vector<const RunTrace*> permits;
  for (const auto& [number, run] : world_.ledger.runs()) {
    if (run.is_permit() && run.open == open) permits.push_back(&run);
  }
  return permits.empty() ? nullptr : world_.chance.pick(permits);
}

// Open, and its parent has closed.
const RunTrace* Clients::some_orphan() {
  std::vector<const RunTrace*> orphans;
  for (const std::int64_t number : world_.ledger.open()) {
    const RunTrace& run = world_.ledger.runs().at(number);
    const RunTrace* parent = run.parent ? world_.ledger.find(run.parent->run_id) : nullptr;
    if (parent != nullptr && !parent->open) orphans.push_back(&run);
  }
  return orphans.empty() ? nullptr : world_.chance.pick(orphans);
}

void Clients::signal() {
  const auto promise = world_.promises.make(Trace::signaled);
  SignalWorkflowExecutionRequest request;
  request.namespace_ = "default";
  request.workflow_execution = some_run();
  request.signal_name = "s";
  request.identity = promise->mark;
  promise->named = request.workflow_execution.run_id;
  if (world_.chance.percent(50)) {
    request.request_id = promise->mark;
    promise->alike = true;
    promise->once = !promise->named.empty();
  }
  world_.send([this, request, promise] {
    world_.service().signal(request, world_.expect<EmptyResponse>(promise));
  });
}

// A release by run id: of a hold that has ended (then it must change nothing), or of one that has
// not; sometimes without the run id, which is refused.
void Clients::release_late() {
  const RunTrace* permit = some_permit(world_.chance.percent(30));
  if (permit == nullptr) return;
  const auto promise = world_.promises.make(Trace::signaled);
  SignalWorkflowExecutionRequest request;
  request.namespace_ = "default";
  request.workflow_execution = permit->execution();
  request.signal_name = world_.chance.percent(85) ? "release" : "renew";
  request.identity = promise->mark;
  promise->named = permit->run_id;
  const bool unnamed = world_.chance.percent(15);
  if (unnamed) request.workflow_execution.run_id = {};
  world_.send([this, request, promise, unnamed] {
    if (request.signal_name == "renew") {
      const RunTrace* run = world_.ledger.find(promise->named);
      if (run->request) world_.ledger.renewed(run->run_id, world_.now(), run->request->lease);
    }
    world_.service().signal(
        request, world_.expect<EmptyResponse>(
                     promise, [this, unnamed](const service::Result<EmptyResponse>& result) {
                       const bool refused = std::holds_alternative<Error>(result);
                       if (refused) ++world_.totals.late_releases_ignored;
                       require(refused || !unnamed,
                               "a release without a run id was taken for a permit");
                     }));
  });
}

void Clients::signal_with_start() {
  const StartWorkflowExecutionRequest start = start_request();
  const auto promise = world_.promises.make(Trace::signaled);
  SignalWithStartWorkflowExecutionRequest request;
  request.namespace_ = "default";
  request.workflow_id = start.workflow_id;
  request.workflow_type = start.workflow_type;
  request.task_queue = start.task_queue;
  request.workflow_id_conflict_policy = start.workflow_id_conflict_policy;
  request.signal_name = "s";
  request.identity = promise->mark;
  using Response = SignalWithStartWorkflowExecutionResponse;
  world_.send([this, request, promise] {
    world_.service().signal_with_start(
        request, world_.expect<Response>(promise, [this](service::Result<Response> result) {
          const auto* response = std::get_if<Response>(&result);
          if (response != nullptr) world_.promises.acknowledged_run(response->run_id);
        }));
  });
}

void Clients::cancel() {
  const auto promise = world_.promises.make(Trace::cancel_requested);
  promise->leaves = false;  // it may have been asked for already
  RequestCancelWorkflowExecutionRequest request;
  request.namespace_ = "default";
  request.workflow_execution = some_run();
  request.identity = promise->mark;
  promise->named = request.workflow_execution.run_id;
  world_.send([this, request, promise] {
    world_.service().request_cancel(request, world_.expect<EmptyResponse>(promise));
  });
}

void Clients::terminate() {
  const auto promise = world_.promises.make(Trace::terminated);
  TerminateWorkflowExecutionRequest request;
  request.namespace_ = "default";
  const RunTrace* orphan = world_.chance.percent(world_.plan.orphans) ? some_orphan() : nullptr;
  request.workflow_execution = orphan == nullptr ? some_run() : orphan->execution();
  request.identity = promise->mark;
  promise->named = request.workflow_execution.run_id;
  world_.send([this, request, promise] {
    world_.service().terminate(request, world_.expect<EmptyResponse>(promise));
  });
}

void Clients::describe() {
  DescribeWorkflowExecutionRequest request;
  request.namespace_ = "default";
  request.execution = some_run();
  world_.service().describe(request, world_.expect<DescribeWorkflowExecutionResponse>());
  world_.service().list_pools({"default"}, world_.expect<ListPoolsResponse>());
}

// --- Operators ---

void Clients::set_pool(const PoolPlan& pool, int capacity) {
  SetPoolRequest request;
  request.namespace_ = "default";
  request.pool = pool.name;
  request.capacity = capacity;
  if (pool.rate) request.rate = PoolRate{0.5, 2};
  world_.lines.pool_changed(pool.name);
  world_.service().set_pool(request, world_.expect<PoolInfo>());
}

void Clients::drain(const PoolPlan& pool, service::Pools::Drain drain, const SlotName& slot) {
  world_.lines.pool_changed(pool.name);
  world_.service().drain({"default", pool.name, slot}, drain, world_.expect<PoolInfo>());
}

void Clients::force_release() {
  const RunTrace* permit = some_permit(world_.chance.percent(70));
  if (permit == nullptr) return;
  const auto promise = world_.promises.make(Trace::terminated);
  ForceReleaseRequest request;
  request.namespace_ = "default";
  request.id = permit->workflow_id;
  if (world_.chance.percent(50)) {
    request.run_id = permit->run_id;
  } else {
    request.fence = permit->grant->fence;
  }
  request.identity = promise->mark;
  promise->named = permit->run_id;
  world_.send([this, request, promise] {
    world_.service().force_release(request, world_.expect<PermitInfo>(promise));
  });
}

void Clients::remove_waiter() {
  for (const auto& [id, waiter] : world_.lines.waiters()) {
    if (!waiter.timer_id.empty() || !waiter.granted.empty()) continue;
    if (!world_.chance.percent(30)) continue;
    world_.service().remove_waiter({"default", Fence{id}}, world_.expect<EmptyResponse>());
    return;
  }
}

// --- The end ---

void Clients::open_pools() {
  for (const PoolPlan& pool : world_.plan.pools) {
    if (!world_.lines.pools().contains(pool.name)) continue;
    drain(pool, service::Pools::Drain::off, {});
    set_pool(pool, std::max(pool.capacity, 3));
    drain(pool, service::Pools::Drain::off, SlotName("0"));
  }
}

void Clients::finish_parents() {
  for (const std::int64_t number : world_.ledger.open()) {
    const RunTrace& run = world_.ledger.runs().at(number);
    if (run.is_permit()) continue;
    SignalWorkflowExecutionRequest request;
    request.namespace_ = "default";
    request.workflow_execution = run.execution();
    request.signal_name = "finish";
    world_.service().signal(request, world_.expect<EmptyResponse>());
  }
}

}  // namespace permit::simulation
