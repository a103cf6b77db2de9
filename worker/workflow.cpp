#include "worker/workflow.h"

#include <utility>

#include "worker/workflow_instance.h"

namespace permit::worker {

OperationHost& Workflow::host() const { return instance_->host(); }

Scheduler& Workflow::scheduler() const { return instance_->scheduler_; }

void Workflow::throw_if_canceled() const {
  if (scope_->is_canceled()) throw Canceled();
}

// --- Work ---

Workflow::Cancel Workflow::begin_activity(command::ScheduleActivityTask command, OnCancel on_cancel,
                                          Done done) const {
  instance_->check_writable();
  if (is_closing()) return {};
  if (scope_->is_canceled()) {
    done(std::make_exception_ptr(Canceled()));
    return {};
  }
  command.activity_id = std::to_string(++instance_->last_activity_);
  if (command.task_queue.name.empty()) command.task_queue.name = info().task_queue;
  const auto operation =
      std::make_shared<ActivityOperation>(host(), scope_, on_cancel, std::move(done));
  instance_->add(operation);
  operation->begin(std::move(command));
  return [weak = std::weak_ptr<Operation>(operation)] {
    if (const auto activity = weak.lock()) activity->cancel();
  };
}

std::shared_ptr<ChildOperation> Workflow::begin_child(
    command::StartChildWorkflowExecution command, ChildOperation::Started started,
    ChildOperation::NotStarted not_started) const {
  instance_->check_writable();
  std::size_t runs = 1;
  if (command.permit) {
    runs = static_cast<std::size_t>(std::max(command.permit->count, 1));
  } else if (command.workflow_id.empty()) {
    command.workflow_id =
        WorkflowId(info().execution.run_id.value + "_" + std::to_string(++instance_->last_child_));
  }
  if (command.task_queue.name.empty() && !command.permit) {
    command.task_queue.name = info().task_queue;
  }
  const auto operation = std::make_shared<ChildOperation>(
      host(), scope_, command.workflow_id, runs, std::move(started), std::move(not_started));
  if (is_closing()) return operation;
  if (scope_->is_canceled()) {
    operation->refuse(std::make_exception_ptr(Canceled()));
    return operation;
  }
  instance_->add(operation);
  operation->begin(std::move(command));
  return operation;
}

Future<std::vector<Child<std::string>>> Workflow::start_permit(PermitRequest request,
                                                               const ChildOptions& options) const {
  command::StartChildWorkflowExecution command = options.command();
  command.workflow_type.name = "PermitSlotWorkflow";
  command.permit = std::move(request);
  Future<std::vector<Child<std::string>>> future(scheduler());
  const auto operation = std::make_shared<std::weak_ptr<ChildOperation>>();
  const Workflow shield = shielded();
  const auto begun = begin_child(
      std::move(command),
      [future, operation, shield](const std::vector<ChildRun>& runs) {
        const auto started = operation->lock();
        started->outlive_scope();
        std::vector<Child<std::string>> children;
        children.reserve(runs.size());
        for (const ChildRun& run : runs) children.emplace_back(shield, started, run);
        future.resolve(std::move(children));
      },
      [future](std::exception_ptr exception) { future.fail(std::move(exception)); });
  *operation = begun;
  future.on_cancel([weak = std::weak_ptr<ChildOperation>(begun)] {
    if (const auto waiting = weak.lock()) waiting->cancel();
  });
  return future;
}

void Workflow::begin_spawned(Async<void> coroutine, bool is_handler, std::string name) const {
  instance_->check_writable();
  if (is_closing()) return;
  instance_->spawned_.push_back({std::move(coroutine), is_handler, std::move(name)});
  instance_->spawned_.back().coroutine.start(scheduler());
}

// --- Time ---

Time Workflow::now() const {
  instance_->check_usable();
  return instance_->now_;
}

Future<void> Workflow::begin_timer(Duration duration, PoolName pool, std::string timer_id) const {
  instance_->check_writable();
  Future<void> future(scheduler());
  if (is_closing()) return future;
  if (scope_->is_canceled()) {
    future.fail_with(Canceled());
    return future;
  }
  if (duration.count() <= 0) {
    future.resolve({});
    return future;
  }
  command::StartTimer command;
  command.timer_id =
      timer_id.empty() ? std::to_string(++instance_->last_timer_) : std::move(timer_id);
  command.start_to_fire_timeout = duration;
  command.wake_on_pool = std::move(pool);
  const auto operation =
      std::make_shared<TimerOperation>(host(), scope_, command.timer_id, settle(future));
  instance_->add(operation);
  operation->begin(std::move(command));
  future.on_cancel([weak = std::weak_ptr<Operation>(operation)] {
    if (const auto timer = weak.lock()) timer->cancel();
  });
  return future;
}

Future<void> Workflow::sleep(Duration duration) const { return begin_timer(duration, {}, {}); }

Future<void> Workflow::sleep_for_pool(Duration duration, PoolName pool) const {
  return begin_timer(duration, std::move(pool), {});
}

Async<bool> Workflow::wait(Workflow self, std::function<bool()> predicate,
                           std::optional<Time> deadline, std::string timer_id) {
  self.instance_->check_writable();
  if (predicate()) co_return true;
  self.throw_if_canceled();
  std::optional<Future<void>> timer;
  if (deadline) timer = self.begin_timer(*deadline - self.now(), {}, std::move(timer_id));
  Condition changed(
      [&] { return predicate() || (timer && timer->is_ready()) || self.is_canceled(); });
  co_await changed;
  const bool in_time = predicate();
  if (timer) timer->cancel();
  if (!in_time) self.throw_if_canceled();
  co_return in_time;
}

Async<bool> Workflow::wait_until(std::function<bool()> predicate) const {
  return wait(*this, std::move(predicate), std::nullopt, {});
}

Async<bool> Workflow::wait_until(std::function<bool()> predicate, Duration timeout) const {
  return wait(*this, std::move(predicate), now() + timeout, {});
}

Async<bool> Workflow::wait_until(std::function<bool()> predicate, Time deadline,
                                 std::string timer_id) const {
  return wait(*this, std::move(predicate), deadline, std::move(timer_id));
}

// --- Others ---

void Workflow::begin_external(CommandAttributes command, Done done) const {
  instance_->check_writable();
  if (is_closing()) return;
  if (scope_->is_canceled()) {
    done(std::make_exception_ptr(Canceled()));
    return;
  }
  const auto operation = std::make_shared<ExternalOperation>(host(), scope_, std::move(done));
  instance_->add(operation);
  operation->begin(std::move(command));
}

Future<void> Workflow::begin_external(CommandAttributes command) const {
  Future<void> future(scheduler());
  begin_external(std::move(command), settle(future));
  return future;
}

Future<std::optional<Time>> Workflow::begin_renewal(const WorkflowExecution& permit) const {
  command::SignalExternalWorkflowExecution command;
  command.execution = permit;
  command.signal_name = "renew";
  command.child_workflow_only = true;
  Future<std::optional<Time>> future(scheduler());
  begin_external(std::move(command), [future](const RawResult& result) {
    if (const auto* exception = std::get_if<std::exception_ptr>(&result)) {
      future.fail(*exception);
      return;
    }
    const Time deadline{Duration(from_payloads<std::int64_t>(std::get<0>(result)))};
    future.resolve(deadline == Time{} ? std::nullopt : std::optional(deadline));
  });
  return future;
}

Future<void> Workflow::begin_signal(WorkflowExecution target, std::string signal,
                                    std::optional<Payloads> input, bool child_only) const {
  command::SignalExternalWorkflowExecution command;
  command.execution = std::move(target);
  command.signal_name = std::move(signal);
  command.input = std::move(input);
  command.child_workflow_only = child_only;
  return begin_external(std::move(command));
}

Future<void> Workflow::cancel_external(WorkflowExecution target, std::string reason) const {
  command::RequestCancelExternalWorkflowExecution command;
  command.workflow_id = std::move(target.workflow_id);
  command.run_id = std::move(target.run_id);
  command.reason = std::move(reason);
  return begin_external(std::move(command));
}

// --- What comes in ---

void Workflow::add_signal_handler(
    const std::string& name, std::function<void(const std::optional<Payloads>&)> handler) const {
  instance_->check_writable();
  auto& handlers = instance_->signal_handlers_;
  handlers[name] = std::move(handler);
  auto& unhandled = instance_->signals_unhandled_;
  std::vector<std::pair<std::string, std::optional<Payloads>>> waiting;
  for (auto signal = unhandled.begin(); signal != unhandled.end();) {
    if (signal->first != name) {
      ++signal;
      continue;
    }
    waiting.push_back(std::move(*signal));
    signal = unhandled.erase(signal);
  }
  for (const auto& [signal, input] : waiting) handlers.at(name)(input);
}

void Workflow::add_query_handler(
    std::string name,
    std::function<std::optional<Payloads>(const std::optional<Payloads>&)> handler,
    bool outlives_run) const {
  instance_->check_writable();
  instance_->query_handlers_[std::move(name)] = {std::move(handler), outlives_run};
}

std::size_t Workflow::handlers_running() const {
  std::size_t running = 0;
  for (const auto& one : instance_->spawned_) {
    if (one.is_handler && !one.coroutine.is_done()) ++running;
  }
  return running;
}

// --- What differs between executions ---

Random& Workflow::random(const std::string& stream) const {
  instance_->check_writable();
  const auto found = instance_->streams_.find(stream);
  if (found != instance_->streams_.end()) return found->second;
  const std::uint64_t seed = stream_seed(instance_->seed_run_id_, stream);
  return instance_->streams_.emplace(stream, Random(seed)).first->second;
}

std::string Workflow::uuid() const {
  Random& words = random("uuid");
  static constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (int i = 0; i < 2; ++i) {
    std::uint64_t word = words.word();
    if (i == 0) word = (word & ~std::uint64_t{0xf000}) | 0x4000;  // version 4
    if (i == 1) word = (word & ~(std::uint64_t{3} << 62U)) | (std::uint64_t{2} << 62U);
    for (int shift = 60; shift >= 0; shift -= 4) text += digits[(word >> shift) & 0xfU];
  }
  for (const std::size_t at : {8U, 13U, 18U, 23U}) text.insert(at, "-");
  return text;
}

std::optional<Payloads> Workflow::marked(
    const std::function<std::optional<Payloads>()>& make) const {
  instance_->check_writable();
  std::optional<Payloads> value;
  auto& recorded = instance_->side_effects_;
  if (!is_replaying()) {
    value = make();
  } else if (recorded.empty()) {
    command::RecordMarker missing;
    missing.marker_name = "SideEffect";
    const Command asked{std::move(missing), {}};
    instance_->contradict(nullptr, &asked);
  } else {
    const auto data = recorded.front()->details.find("data");
    if (data != recorded.front()->details.end()) value = data->second;
    recorded.pop_front();
  }
  command::RecordMarker marker;
  marker.marker_name = "SideEffect";
  marker.details["data"] = value.value_or(Payloads{});
  instance_->issue(std::move(marker), nullptr);
  return value;
}

bool Workflow::patched(const std::string& id) const {
  instance_->check_writable();
  const auto answered = instance_->patch_answers_.find(id);
  if (answered != instance_->patch_answers_.end()) return answered->second;
  const bool is_new = !is_replaying() || instance_->patches_.contains(id);
  instance_->patch_answers_[id] = is_new;
  if (is_new) {
    command::RecordMarker marker;
    marker.marker_name = "core_patch";
    nlohmann::json data = {{"id", id}, {"deprecated", false}};
    marker.details["patch-data"] = json_payloads(data.dump());
    instance_->issue(std::move(marker), nullptr);
  }
  return is_new;
}

// --- Ends and marks ---

void Workflow::upsert(std::string key, Payload value) const {
  instance_->check_writable();
  if (is_closing()) return;
  instance_->info_.memo.fields[key] = value;
  command::ModifyWorkflowProperties command;
  command.upserted_memo.emplace().fields[std::move(key)] = std::move(value);
  instance_->issue(std::move(command), nullptr);
}

void Workflow::upsert_search_attribute(std::string key, Payload value) const {
  instance_->check_writable();
  if (is_closing()) return;
  command::UpsertWorkflowSearchAttributes command;
  command.search_attributes.emplace().indexed_fields[std::move(key)] = std::move(value);
  instance_->issue(std::move(command), nullptr);
}

// --- Cancellation ---

Workflow Workflow::cancelable() const { return {*instance_, scope_->make_inner()}; }

Workflow Workflow::shielded() const { return {*instance_, instance_->shield_}; }

void Workflow::cancel() const {
  instance_->check_writable();
  if (!is_closing()) scope_->cancel();
}

// --- The rest ---

const WorkflowInfo& Workflow::info() const { return instance_->info_; }

void Workflow::log(LogLevel level, const std::string& text) const {
  if (is_replaying() || is_closing() || !instance_->log_) return;
  instance_->log_(level, info(), text);
}

bool Workflow::is_replaying() const { return instance_->is_replaying_; }

bool Workflow::is_closing() const { return instance_->is_closing_; }

}  // namespace permit::worker
