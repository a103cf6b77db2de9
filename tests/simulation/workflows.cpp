#include "tests/simulation/workflows.h"

#include <algorithm>

namespace permit::simulation {

using namespace std::chrono_literals;

namespace {

template <class T>
Command command_of(T attributes) {
  return Command{std::move(attributes), std::nullopt};
}

Command complete_with(const std::string& result) {
  return command_of(command::CompleteWorkflowExecution{json_payloads("\"" + result + "\"")});
}

Command start_timer(std::string id, Duration wait, PoolName wake_on_pool = {}) {
  return command_of(
      command::StartTimer{std::move(id), std::max<Duration>(wait, 1us), std::move(wake_on_pool)});
}

// One completion of a parent, put together at random from what its history allows.
class Parent {
 public:
  Parent(World& world, const RunTrace& run)
      : world_(world), chance_(world.chance), plan_(world.plan), run_(run) {}

  std::vector<Command> play();

 private:
  void act();
  void use_permits();
  void ask_for_permit();
  void start_child();
  void start_orphan();
  bool is_first_task() const;
  void release(const WorkflowExecution& permit);
  void release_something();
  void withdraw();
  void sleep();
  void sleep_if_refused();
  void wake_up();
  void schedule_activity();
  void cancel_activity();
  bool close();
  void blunder();
  std::vector<WorkflowExecution> held() const;

  template <class T>
  void add(T attributes) {
    commands_.push_back(command_of(std::move(attributes)));
  }

  World& world_;
  Chance& chance_;
  const Plan& plan_;
  const RunTrace& run_;
  std::vector<Command> commands_;
  std::set<std::string> timers_canceled_;
};

std::vector<Command> Parent::play() {
  use_permits();
  if (world_.draining) {
    for (const WorkflowExecution& permit : held()) {
      if (world_.released_at_end.insert(permit.run_id).second) release(permit);
    }
    const bool pending = std::any_of(run_.children.begin(), run_.children.end(),
                                     [](const auto& child) { return child.second.permit; });
    if (run_.told_to_finish || (!pending && run_.activities.empty() && run_.timers.empty())) {
      commands_.clear();
      commands_.push_back(complete_with("done"));
    }
    return std::move(commands_);
  }
  if (is_first_task() && chance_.percent(plan_.orphans)) start_orphan();
  if (run_.events.size() > 150 || chance_.percent(plan_.close)) {
    if (close()) return std::move(commands_);
  }
  sleep_if_refused();
  const int actions = chance_.between(0, 3);
  for (int i = 0; i < actions; ++i) act();
  if (chance_.percent(plan_.activities / 3)) schedule_activity();
  if (!run_.activities.empty() && chance_.percent(50)) cancel_activity();
  if (chance_.percent(plan_.invalid)) blunder();
  if (chance_.percent(plan_.close / 2)) close();  // beside other commands
  return std::move(commands_);
}

void Parent::act() {
  const int die = chance_.between(0, 99);
  if (die < 38) {
    ask_for_permit();
  } else if (die < 56) {
    release_something();
  } else if (die < 61) {
    withdraw();
  } else if (die < 70) {
    if (chance_.percent(plan_.sleepers)) {
      sleep();
    } else if (chance_.percent(30)) {
      wake_up();
    }
  } else if (die < 82) {
    if (chance_.percent(plan_.activities)) schedule_activity();
  } else if (die < 89) {
    cancel_activity();
  } else if (chance_.percent(plan_.children)) {
    start_child();
  }
}

std::vector<WorkflowExecution> Parent::held() const {
  std::vector<WorkflowExecution> permits;
  for (const auto& [id, child] : run_.children) {
    if (!child.permit) continue;
    permits.insert(permits.end(), child.open.begin(), child.open.end());
  }
  return permits;
}

void Parent::use_permits() {
  for (const WorkflowExecution& permit : run_.permits_past) {
    const RunTrace* hold = world_.ledger.find(permit.run_id);
    if (hold != nullptr && chance_.percent(50)) world_.resources.write(*hold, world_.ledger);
  }
}

void Parent::ask_for_permit() {
  if (run_.children.size() > 6) return;
  const PoolPlan& pool = chance_.pick(plan_.pools);
  command::StartChildWorkflowExecution start;
  start.permit.emplace();
  PermitRequest& request = *start.permit;
  request.pool = pool.name;
  if (!pool.configured || chance_.percent(30)) {
    int believed = pool.capacity;
    if (chance_.percent(plan_.invalid)) ++believed;
    for (int i = 0; i < believed; ++i) request.slots.emplace_back(std::to_string(i));
    if (chance_.percent(50)) std::swap(request.slots.front(), request.slots.back());
  }
  if (chance_.percent(15)) {
    request.only.emplace_back(std::to_string(chance_.between(0, pool.capacity - 1)));
  }
  request.count = chance_.percent(plan_.several) ? chance_.between(2, 3) : 1;
  request.lease = chance_.duration(plan_.lease_min, plan_.lease_max);
  if (chance_.percent(10)) {
    request.max_hold = chance_.duration(plan_.lease_min, plan_.lease_max * 2);
  }
  request.order = chance_.percent(plan_.fair) ? PermitOrder::fair : PermitOrder::any;
  request.wait = chance_.percent(60);
  if (chance_.percent(30)) request.wait_timeout = chance_.duration(100ms, plan_.lease_max * 2);
  if (chance_.percent(30)) start.priority = Priority{chance_.between(1, 5), "", 0};
  add(std::move(start));
}

void Parent::start_child() {
  if (run_.depth > 3 || run_.children.size() > 6) return;
  command::StartChildWorkflowExecution start;
  start.workflow_type.name = "Parent";
  start.task_queue.name = "work";
  // From the same ids as everybody's, so that they collide, or a few of its own.
  start.workflow_id = WorkflowId(
      chance_.percent(50) ? "parent" + std::to_string(chance_.between(0, plan_.parents - 1))
                          : "child" + std::to_string(chance_.between(0, 3)));
  const std::vector<ParentClosePolicy> policies = {
      ParentClosePolicy::unspecified, ParentClosePolicy::terminate, ParentClosePolicy::terminate,
      ParentClosePolicy::abandon, ParentClosePolicy::request_cancel};
  start.parent_close_policy = chance_.pick(policies);
  if (chance_.percent(10)) {
    start.workflow_id_reuse_policy = WorkflowIdReusePolicy::terminate_if_running;
  }
  if (chance_.percent(30)) start.workflow_run_timeout = chance_.duration(1s, plan_.lease_max * 2);
  add(std::move(start));
}

bool Parent::is_first_task() const {
  return std::none_of(run_.events.begin(), run_.events.end(), [](const Event& event) {
    return event.get_if<event::WorkflowTaskCompleted>() != nullptr;
  });
}

// The next run under the parent's id has, as a rule, a child of the same event id by the time that
// this one closes.
void Parent::start_orphan() {
  if (run_.depth > 1) return;
  command::StartChildWorkflowExecution start;
  start.workflow_type.name = "Parent";
  start.task_queue.name = "work";
  start.workflow_id = WorkflowId("orphan" + std::to_string(run_.number.value));
  start.parent_close_policy = ParentClosePolicy::abandon;
  if (chance_.percent(70)) start.workflow_run_timeout = chance_.duration(1s, plan_.lease_max * 2);
  add(std::move(start));
}

void Parent::release(const WorkflowExecution& permit) {
  const auto promise = world_.promises.make(Trace::signaled);
  promise->named = permit.run_id;
  promise->leaves = false;
  promise->once = true;
  promise->unknown = 1;
  command::SignalExternalWorkflowExecution signal;
  signal.execution = permit;
  signal.signal_name = "release";
  signal.input = json_payloads("\"" + promise->mark + "\"");
  signal.child_workflow_only = true;
  add(std::move(signal));
}

void Parent::release_something() {
  const auto permits = held();
  if (!permits.empty() && chance_.percent(85)) {
    release(chance_.pick(permits));
  } else if (!run_.permits_past.empty()) {
    release(chance_.pick(run_.permits_past));  // late, as a rule
  }
}

void Parent::withdraw() {
  for (const auto& [id, child] : run_.children) {
    if (!child.permit || !child.waits) continue;
    command::RequestCancelExternalWorkflowExecution cancel;
    cancel.workflow_id = child.workflow_id;
    cancel.child_workflow_only = true;
    add(std::move(cancel));
    return;
  }
}

void Parent::sleep() {
  const std::string id = "sleep" + std::to_string(chance_.between(0, 3));
  if (run_.timers.contains(id) || timers_canceled_.contains(id)) return;
  timers_canceled_.insert(id);
  const bool wakes = chance_.percent(75);
  const PoolName pool = wakes ? chance_.pick(plan_.pools).name : PoolName();
  commands_.push_back(start_timer(id, chance_.duration(1ms, plan_.lease_max), pool));
}

// As a semaphore does that backs off: until a slot is free, or for a while.
void Parent::sleep_if_refused() {
  for (auto event = run_.events.rbegin(); event != run_.events.rend(); ++event) {
    if (event->get_if<event::WorkflowTaskCompleted>() != nullptr) return;
    const auto* failed = event->get_if<event::StartChildWorkflowExecutionFailed>();
    if (failed == nullptr || !failed->permit_failure || !chance_.percent(plan_.sleepers)) continue;
    const Event& asked = run_.events[static_cast<std::size_t>(failed->initiated_event_id - 1)];
    const auto* request = asked.get_if<event::StartChildWorkflowExecutionInitiated>();
    const std::string id = "back-off" + std::to_string(failed->initiated_event_id);
    commands_.push_back(
        start_timer(id, chance_.duration(1s, plan_.lease_max * 4 + 1min), request->permit->pool));
  }
}

void Parent::wake_up() {
  for (const auto& [id, timer] : run_.timers) {
    if (!timers_canceled_.insert(id).second) continue;
    add(command::CancelTimer{id});
    return;
  }
}

void Parent::schedule_activity() {
  if (run_.activities.size() > 3) return;
  command::ScheduleActivityTask activity;
  activity.activity_id =
      "a" + std::to_string(run_.events.size()) + "." + std::to_string(commands_.size());
  activity.activity_type.name = "work";
  activity.task_queue.name = "work";
  activity.start_to_close_timeout = chance_.duration(100ms, plan_.lease_max + 1s);
  if (chance_.percent(30)) activity.heartbeat_timeout = chance_.duration(100ms, 20s);
  if (chance_.percent(25)) activity.schedule_to_start_timeout = chance_.duration(100ms, 20s);
  activity.retry_policy.emplace();
  activity.retry_policy->maximum_attempts = chance_.between(1, 4);
  activity.retry_policy->initial_interval = chance_.duration(10ms, 2s);
  const auto permits = held();
  if (!permits.empty() && chance_.percent(60)) {
    activity.permit_run_id = chance_.pick(permits).run_id;
  }
  add(std::move(activity));
}

void Parent::cancel_activity() {
  for (const auto& [id, activity] : run_.activities) {
    if (activity.cancel_requested) continue;
    add(command::RequestCancelActivityTask{id});
    return;
  }
}

bool Parent::close() {
  if (chance_.percent(plan_.continue_as_new) && run_.events.size() < 150) {
    add(command::ContinueAsNewWorkflowExecution{});
  } else if (run_.cancel_requested && chance_.percent(60)) {
    add(command::CancelWorkflowExecution{});
  } else if (chance_.percent(25)) {
    Failure failure;
    failure.message = "simulated";
    add(command::FailWorkflowExecution{failure});
  } else {
    commands_.push_back(complete_with("done"));
  }
  return true;
}

// A command that may not be: the whole completion is refused.
void Parent::blunder() {
  switch (chance_.between(0, 6)) {
    case 0:
      return add(command::CancelTimer{"none"});
    case 1:
      return add(command::RequestCancelActivityTask{99'999});
    case 2:
      return add(command::StartTimer{"", 1s, {}});
    case 3: {
      command::StartChildWorkflowExecution start;
      start.workflow_id = WorkflowId("permit:" + plan_.pools[0].name.value + ":0");
      start.workflow_type.name = "Parent";
      return add(std::move(start));
    }
    case 4: {
      command::StartChildWorkflowExecution start;
      start.permit.emplace();
      start.permit->pool = plan_.pools[0].name;
      start.parent_close_policy = ParentClosePolicy::abandon;
      return add(std::move(start));
    }
    case 5:
      commands_.push_back(complete_with("too early"));
      return add(command::CancelTimer{"none"});
    default: {
      command::SignalExternalWorkflowExecution signal;
      signal.execution = WorkflowExecution{WorkflowId("permit:pool0:0"), RunId()};
      signal.signal_name = "release";
      return add(std::move(signal));
    }
  }
}

}  // namespace

std::vector<Command> play_permit(World& world, const RunTrace& run) {
  const Duration lease = run.request ? run.request->lease : Duration(10s);
  std::vector<Command> commands;
  bool timer = false;
  for (const Event& event : run.events) {
    if (event.get_if<event::TimerStarted>()) timer = true;
    const auto* signaled = event.get_if<event::WorkflowExecutionSignaled>();
    if (signaled != nullptr && signaled->signal_name == "release") {
      return {complete_with("released")};
    }
    if (event.get_if<event::TimerFired>()) return {complete_with("lease_expired")};
    if (event.get_if<event::WorkflowExecutionCancelRequested>()) {
      return {command_of(command::CancelWorkflowExecution{})};
    }
  }
  if (!timer) commands.push_back(start_timer("lease", run.started + lease - world.now()));
  if (world.fault(world.plan.invalid) && world.chance.percent(30)) {
    Failure failure;
    failure.message = "simulated";
    return {command_of(command::FailWorkflowExecution{failure})};
  }
  return commands;
}

std::vector<Command> play_parent(World& world, const RunTrace& run) {
  return Parent(world, run).play();
}

void note_heartbeat(World& world, const RunTrace& run, std::int64_t scheduled_event_id) {
  const auto index = static_cast<std::size_t>(scheduled_event_id) - 1;
  if (index >= run.events.size()) return;
  const auto* scheduled = run.events[index].get_if<event::ActivityTaskScheduled>();
  if (scheduled == nullptr || scheduled->permit_run_id.empty()) return;
  const RunTrace* permit = world.ledger.find(scheduled->permit_run_id);
  if (permit == nullptr || !permit->request) return;
  world.ledger.renewed(permit->run_id, world.latest(), permit->request->lease);
  ++world.totals.renewals;
}

}  // namespace permit::simulation
