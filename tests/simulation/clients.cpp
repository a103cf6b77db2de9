#include "tests/simulation/clients.h"

#include "orchestrator/core/validate.h"
#include "orchestrator/protocol/json.h"
#include "tests/simulation/sections.h"

namespace permit::simulation {

using namespace std::chrono_literals;

// What the SDK's client goes through: it waits for its answer, and what got none is sent again, to
// the letter.
class Clients::Transport : public worker::Transport {
 public:
  explicit Transport(World& world) : world_(world) {}

  std::string call(std::string_view rpc, const std::string& request) override {
    ++calls_;
    for (int attempt = 0; attempt < 5; ++attempt) {
      if (attempt > 0) sometimes("a client's call is sent again");
      std::optional<std::string> answer;
      if (rpc == "StartWorkflowExecution") answer = send(rpc::start, request);
      if (rpc == "SignalWorkflowExecution") answer = send(rpc::signal, request);
      if (answer && !world_.reply_is_lost()) return *answer;
    }
    throw Error(ErrorCode::unavailable, "ANSWER_LOST", "the simulated server did not answer");
  }

 private:
  template <class Request, class Response>
  std::optional<std::string> send(const Rpc<Request, Response>& rpc, const std::string& request) {
    const auto answer = std::make_shared<std::optional<service::Result<Response>>>();
    Request message = read_json<Request>(request);
    // The client draws it from the kernel; a seed must repeat.
    if (!message.request_id.empty()) message.request_id = "call" + std::to_string(calls_);
    world_.ask(rpc, std::move(message),
               std::function([answer](service::Result<Response> result) { *answer = result; }));
    world_.settle();
    if (!*answer) return std::nullopt;
    if (const Error* error = std::get_if<Error>(&**answer)) {
      if (error->reason() == "DISK_FULL") return std::nullopt;
      throw *error;
    }
    return to_json(std::get<Response>(**answer));
  }

  World& world_;
  int calls_ = 0;
};

Clients::Clients(World& world) : world_(world), transport_(std::make_shared<Transport>(world)) {}

void Clients::begin() {
  for (const PoolPlan& pool : world_.plan.pools) {
    if (pool.configured) set_pool(pool, pool.capacity);
  }
}

void Clients::step() {
  const int die = world_.chance.between(0, 99);
  if (world_.plan.sections > 0 && world_.chance.percent(20)) {
    start_section();
  } else if (world_.chance.percent(world_.plan.callers)) {
    call();
  } else if (die < 33) {
    start();
  } else if (die < 35) {
    start_another();
  } else if (die < 40) {
    start_again();
  } else if (die < 44) {
    start_permit_by_id();
  } else if (die < 48) {
    signal_again();
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
  // Ids are compared byte by byte.
  const bool shouts = world_.chance.percent(10);
  request.workflow_id =
      WorkflowId((shouts ? "Parent" : "parent") +
                 std::to_string(world_.chance.between(0, world_.plan.parents - 1)));
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
    const auto permit = core::parse_permit_id(request.workflow_id);
    if (permit) world_.lines.pool_asked(permit->pool);  // it may register a slot
    world_.ask(
        rpc::start, request, promise,
        std::function([this, permit, id = request.workflow_id](service::Result<Response> result) {
          if (permit) world_.lines.pool_answered(permit->pool);
          if (const Error* error = std::get_if<Error>(&result)) {
            const bool other =
                error->reason() == "WORKFLOW_ALREADY_STARTED" &&
                error->message().find("WorkflowId: " + id.value + ",") == std::string::npos;
            require(!other, "a start of " + id.value + " was refused for a run of another id");
            return;
          }
          world_.promises.acknowledged_run(std::get<Response>(result).run_id);
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
  world_.say("start " + request.workflow_id.value);
  send_start(request, promise);
}

namespace {

bool is_what_started(const StartWorkflowExecutionRequest& request, const RunTrace& run) {
  const auto* started = run.events.front().get_if<event::WorkflowExecutionStarted>();
  return started->workflow_type.name == request.workflow_type.name &&
         started->input.value_or(Payloads{}) == request.input.value_or(Payloads{});
}

}  // namespace

// The request id of an earlier start, and something else to start: that is no repetition.
void Clients::start_another() {
  if (starts_.empty()) return;
  const auto& [first, promise] = world_.chance.pick(starts_);
  StartWorkflowExecutionRequest request = first;
  if (world_.chance.percent(50)) {
    request.input = json_payloads("\"something else " + std::to_string(++calls_) + "\"");
  } else {
    request.workflow_type.name = "Other" + std::to_string(++calls_);
  }
  using Policy = WorkflowIdConflictPolicy;
  if (request.workflow_id_conflict_policy != Policy::unspecified) return;
  world_.say("start another " + request.workflow_id.value + " by the same request id");
  world_.send([this, request, one = promise] {
    ++one->unknown;  // it has the same mark
    const RunTrace* before = world_.ledger.find_open(request.workflow_id);
    const RunId running = before == nullptr ? RunId() : before->run_id;
    const bool same = before != nullptr && before->request_id == request.request_id &&
                      !is_what_started(request, *before);
    world_.ask(rpc::start, request,
               std::function(
                   [this, running, same](service::Result<StartWorkflowExecutionResponse> result) {
                     const auto* response = std::get_if<StartWorkflowExecutionResponse>(&result);
                     if (response == nullptr) {
                       sometimes(same, "a request id is refused with another payload");
                       return;
                     }
                     require(!same || response->run_id != running,
                             "a start with another payload was answered as the one before it");
                     world_.promises.acknowledged_run(response->run_id);
                   }));
  });
}

// A run of the SDK's code.
void Clients::start_section() {
  StartWorkflowExecutionRequest request;
  request.namespace_ = "default";
  const int number = world_.chance.between(0, world_.plan.sections - 1);
  request.workflow_id = WorkflowId("section" + std::to_string(number));
  request.workflow_type.name = "Section";
  request.task_queue.name = "sections";
  request.input = draw_section(world_);
  const auto promise = world_.promises.make(Trace::started);
  promise->alike = true;
  request.request_id = promise->mark;
  world_.say("start " + request.workflow_id.value);
  if (world_.chance.percent(30)) {
    SignalWithStartWorkflowExecutionRequest both;
    both.namespace_ = request.namespace_;
    both.workflow_id = request.workflow_id;
    both.workflow_type = request.workflow_type;
    both.task_queue = request.task_queue;
    both.input = request.input;
    both.signal_name = "note";
    world_.send([this, both] { world_.ask(rpc::signal_with_start, both); });
    return;
  }
  send_start(request, promise);
}

// Through the SDK's client, under an id that nobody else uses.
void Clients::call() {
  static constexpr worker::WorkflowName<std::string()> parent{"Parent"};
  worker::Client client(*transport_, "caller");
  const std::string id = "called" + std::to_string(++calls_);
  world_.say("call: start " + id);
  try {
    const auto run = client.start(parent, worker::StartOptions(id).task_queue("work"));
    world_.promises.acknowledged_run(run.execution().run_id);
    if (world_.chance.percent(50)) run.signal("s");
  } catch (const Error& error) {
    require(error.reason() != "WORKFLOW_ALREADY_STARTED",
            "a start that was sent again was refused for itself: " + id);
  }
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
  request.input =
      json_payloads(R"({"resource":")" + pool.name.value + R"(","slot":"0","lease_seconds":0.5})");
  const auto promise = world_.promises.make(Trace::started);
  promise->alike = true;
  world_.say("start " + request.workflow_id.value);
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
    if (promise->once) signals_.emplace_back(request, promise);
  }
  world_.say("signal " + request.workflow_execution.workflow_id.value);
  world_.send([this, request, promise] { world_.ask(rpc::signal, request, promise); });
}

// As one does who got no answer, perhaps long after the run has seen it.
void Clients::signal_again() {
  if (signals_.empty()) return;
  const std::size_t recent = std::min<std::size_t>(signals_.size(), 5);
  const auto& [request, promise] = signals_[signals_.size() - 1 - world_.chance.below(recent)];
  world_.say("signal " + request.workflow_execution.workflow_id.value + " again");
  sometimes("a signal is sent again with the same request id");
  world_.send([this, what = request, kept = promise] { world_.ask(rpc::signal, what, kept); });
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
  world_.say(request.signal_name + (permit->open ? " " : " late ") + permit->workflow_id.value);
  world_.send([this, request, promise, unnamed] {
    if (request.signal_name == "renew") {
      const RunTrace* run = world_.ledger.find(promise->named);
      if (run->request) {
        world_.ledger.renewed(run->run_id, world_.latest(), run->request->lease);
      }
    }
    world_.ask(rpc::signal, request, promise,
               std::function([this, unnamed](service::Result<EmptyResponse> result) {
                 const bool refused = std::holds_alternative<Error>(result);
                 if (refused) ++world_.totals.late_releases_ignored;
                 sometimes(refused && unnamed, "a release that names no run is refused");
                 sometimes(refused && !unnamed, "a release by a client comes too late");
                 require(refused || !unnamed, "a release without a run id was taken for a permit");
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
  world_.say("signal with start " + request.workflow_id.value);
  world_.send([this, request, promise] {
    world_.ask(rpc::signal_with_start, request, promise,
               std::function([this](service::Result<Response> result) {
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
  world_.say("cancel " + request.workflow_execution.workflow_id.value);
  world_.send([this, request, promise] { world_.ask(rpc::request_cancel, request, promise); });
}

void Clients::terminate() {
  const auto promise = world_.promises.make(Trace::terminated);
  TerminateWorkflowExecutionRequest request;
  request.namespace_ = "default";
  const RunTrace* orphan = world_.chance.percent(world_.plan.orphans) ? some_orphan() : nullptr;
  request.workflow_execution = orphan == nullptr ? some_run() : orphan->execution();
  request.identity = promise->mark;
  promise->named = request.workflow_execution.run_id;
  world_.say("terminate " + request.workflow_execution.workflow_id.value);
  world_.send([this, request, promise] { world_.ask(rpc::terminate, request, promise); });
}

void Clients::describe() {
  DescribeWorkflowExecutionRequest request;
  request.namespace_ = "default";
  request.execution = some_run();
  world_.say("look around");
  world_.ask(rpc::describe, request);
  look();
}

// Looking changes nothing, also when it is done in the same batch as something else.
void Clients::look() {
  world_.ask(rpc::list_pools, ListPoolsRequest{"default"});
  world_.promises.sent_other();
  const int life = world_.server().starts();
  world_.service().health([this, life](const service::Result<Health>& health) {
    if (life != world_.server().starts()) return;  // of one who lost the file, and whose end it met
    world_.promises.answered_other();
    if (const Error* error = std::get_if<Error>(&health)) world_.promises.check_error(*error);
  });
}

// --- Operators ---

void Clients::set_pool(const PoolPlan& pool, int capacity) {
  SetPoolRequest request;
  request.namespace_ = "default";
  request.pool = pool.name;
  request.capacity = capacity;
  if (pool.rate) request.rate = PoolRate{0.5, 2};
  world_.lines.pool_asked(pool.name);
  world_.say("set " + pool.name.value + " to " + std::to_string(capacity));
  world_.ask(rpc::set_pool, request,
             std::function([this, name = pool.name, capacity](service::Result<PoolInfo> result) {
               world_.lines.pool_answered(name);
               const auto* info = std::get_if<PoolInfo>(&result);
               if (info == nullptr) return;
               const bool leaving = std::any_of(info->slots.begin(), info->slots.end(),
                                                [](const SlotInfo& slot) { return slot.leaving; });
               sometimes(leaving, "capacity is lowered below what is held");
               require(info->capacity == capacity, "a pool that was set to " +
                                                       std::to_string(capacity) + " slots has " +
                                                       std::to_string(info->capacity));
             }));
}

void Clients::change_settings() {
  for (const PoolPlan& pool : world_.plan.pools) {
    if (!pool.configured || !world_.chance.percent(50)) continue;
    sometimes("a server starts with another capacity");
    set_pool(pool, world_.chance.between(0, pool.capacity + 2));
  }
}

void Clients::drain(const PoolPlan& pool, service::Pools::Drain drain, const SlotName& slot) {
  world_.lines.pool_asked(pool.name);
  const bool on = drain == service::Pools::Drain::on;
  world_.say((on ? "drain " : "undrain ") + pool.name.value + " " + slot.value);
  world_.ask(on ? rpc::drain : rpc::undrain, DrainRequest{"default", pool.name, slot},
             std::function([this, name = pool.name](service::Result<PoolInfo>) {
               world_.lines.pool_answered(name);
             }));
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
  world_.say("force-release " + request.id.value);
  world_.send([this, request, promise] {
    world_.ask(rpc::force_release, request, promise,
               std::function([](service::Result<PermitInfo> result) {
                 const Error* error = std::get_if<Error>(&result);
                 sometimes(error != nullptr && error->reason() == "HOLDER_CHANGED",
                           "a force-release of a hold that has gone hits nobody");
               }));
  });
}

void Clients::remove_waiter() {
  for (const auto& [id, waiter] : world_.lines.waiters()) {
    if (!waiter.timer_id.empty() || !waiter.granted.empty()) continue;
    if (!world_.chance.percent(30)) continue;
    world_.say("remove waiter " + std::to_string(id));
    sometimes("an operator takes somebody out of the line");
    world_.ask(rpc::remove_waiter, RemoveWaiterRequest{"default", Fence{id}});
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
    world_.ask(rpc::signal, request);
  }
}

}  // namespace permit::simulation
