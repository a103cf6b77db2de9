#include "worker/workflow_instance.h"

#include <algorithm>
#include <utility>

#include "orchestrator/protocol/ensure.h"
#include "worker/command_matching.h"

namespace permit::worker {

namespace {

constexpr const char* patch_marker = "core_patch";
constexpr const char* side_effect_marker = "SideEffect";

// The instance whose code runs on this thread. A handle checks that it is its own.
thread_local const WorkflowInstance* entered = nullptr;

class Entered {
 public:
  explicit Entered(const WorkflowInstance* instance) : before_(std::exchange(entered, instance)) {}
  ~Entered() { entered = before_; }
  Entered(const Entered&) = delete;
  Entered& operator=(const Entered&) = delete;

 private:
  const WorkflowInstance* before_;
};

std::string patch_of(const event::MarkerRecorded& marker) {
  const auto data = marker.details.find("patch-data");
  if (data == marker.details.end() || data->second.payloads.empty()) return {};
  return from_payload<nlohmann::json>(data->second.payloads.front()).value("id", "");
}

bool is_close(const Event& event) {
  return event.get_if<event::WorkflowExecutionCompleted>() != nullptr ||
         event.get_if<event::WorkflowExecutionFailed>() != nullptr ||
         event.get_if<event::WorkflowExecutionCanceled>() != nullptr ||
         event.get_if<event::WorkflowExecutionTimedOut>() != nullptr ||
         event.get_if<event::WorkflowExecutionTerminated>() != nullptr ||
         event.get_if<event::WorkflowExecutionContinuedAsNew>() != nullptr;
}

}  // namespace

WorkflowInstance::WorkflowInstance(WorkflowExecution execution, const WorkflowFunction& function,
                                   const LogSink& log)
    : function_(function),
      log_(log),
      root_(std::make_shared<CancelScope>()),
      shield_(std::make_shared<CancelScope>()) {
  info_.execution = std::move(execution);
}

WorkflowInstance::~WorkflowInstance() {
  const Entered inside(this);
  is_closing_ = true;
  spawned_.clear();
  main_.reset();
  // Callbacks hold futures, and those may hold what holds the operations.
  for (const auto& operation : live_) operation->drop();
  for (const auto& [id, operation] : operations_) operation->drop();
}

// --- History ---

std::vector<Command> WorkflowInstance::activate(const std::vector<Event>& events) {
  const Entered inside(this);
  candidate_.reset();
  for (std::size_t i = 0; i < events.size(); ++i) apply(events, i);
  std::vector<Command> commands;
  if (candidate_) {
    const Task task = *std::exchange(candidate_, std::nullopt);
    is_replaying_ = false;
    run_task(task);
    live_task_ = task.started_event_id;
    commands = this->commands();
    is_replaying_ = true;
  }
  unseen_.clear();
  return commands;
}

void WorkflowInstance::apply(const std::vector<Event>& events, std::size_t index) {
  const Event& event = events[index];
  if (event.event_id > 0) last_event_id_ = event.event_id;
  if (is_close(event)) info_.is_closed = true;
  if (const auto* started = event.get_if<event::WorkflowExecutionStarted>()) {
    info_.workflow_type = started->workflow_type.name;
    info_.task_queue = started->task_queue.name;
    info_.parent = started->parent_workflow_execution;
    info_.first_run_id = started->first_execution_run_id;
    info_.permit = started->permit;
    if (started->memo) info_.memo = *started->memo;
    info_.start_time = event.event_time;
    input_ = started->input;
    const RunId& original = started->original_execution_run_id;
    seed_run_id_ = original.empty() ? info_.execution.run_id.value : original.value;
  } else if (const auto* task = event.get_if<event::WorkflowTaskStarted>()) {
    candidate_ = Task{event.event_id, event.event_time, task->suggest_continue_as_new,
                      task->history_size_bytes};
  } else if (const auto* completed = event.get_if<event::WorkflowTaskCompleted>()) {
    const std::int64_t own = std::exchange(live_task_, 0);
    if (own == completed->started_event_id) return;
    if (own != 0 || !candidate_) throw InstanceStale("another task was completed than ran here");
    note_markers(events, index);
    run_task(*std::exchange(candidate_, std::nullopt));
  } else if (event.get_if<event::WorkflowTaskFailed>() != nullptr ||
             event.get_if<event::WorkflowTaskTimedOut>() != nullptr) {
    if (live_task_ != 0) throw InstanceStale("the task that this instance has run did not count");
    candidate_.reset();
  } else if (is_of_command(event)) {
    match(event);
  } else {
    unseen_.push_back(&event);
  }
}

void WorkflowInstance::match(const Event& event) {
  if (issued_.empty()) contradict(&event, nullptr);
  const Issued issued = issued_.front();
  if (!matches(issued.command, event)) contradict(&event, &issued.command);
  issued_.pop_front();
  if (!issued.operation) return;
  issued.operation->recorded(event);
  operations_[event.event_id] = issued.operation;
}

// What the task that is about to be replayed had recorded: code that asks during it must know.
void WorkflowInstance::note_markers(const std::vector<Event>& events, std::size_t completed) {
  side_effects_.clear();
  for (std::size_t i = completed + 1; i < events.size(); ++i) {
    if (events[i].get_if<event::WorkflowTaskStarted>() != nullptr) return;
    const auto* marker = events[i].get_if<event::MarkerRecorded>();
    if (marker == nullptr) continue;
    if (marker->marker_name == side_effect_marker) side_effects_.push_back(marker);
    if (marker->marker_name == patch_marker) patches_.insert(patch_of(*marker));
  }
}

void WorkflowInstance::run_task(const Task& task) {
  if (!issued_.empty()) contradict(nullptr, &issued_.front().command);
  now_ = task.time;
  info_.history_events = task.started_event_id;  // not of what a replay knows beyond
  info_.suggest_continue_as_new = task.suggest_continue_as_new;
  info_.history_bytes = task.history_bytes;
  note_ends();
  if (!main_) {
    main_.emplace(run_main());
    main_->start(scheduler_);
    run_until_blocked();
  }
  for (const Event* event : std::exchange(unseen_, {})) {
    if (closing_command_) break;
    dispatch(*event);
    run_until_blocked();
  }
  if (closing_command_) {
    const std::optional<Command> closing = std::exchange(closing_command_, std::nullopt);
    if (!closed_) issued_.push_back({*closing, nullptr});
    closed_ = true;
  }
  if (record_ != nullptr) record_->push_back(commands());
}

std::vector<Command> WorkflowInstance::commands() const {
  std::vector<Command> commands;
  commands.reserve(issued_.size());
  for (const Issued& issued : issued_) commands.push_back(issued.command);
  return commands;
}

void WorkflowInstance::run_until_blocked() {
  scheduler_.run_until_blocked();
  std::erase_if(spawned_, [](const Spawned& one) { return one.coroutine.is_done(); });
  if (task_failure_) std::rethrow_exception(task_failure_);
}

// An operation whose end is in what comes now cannot be canceled any more.
void WorkflowInstance::note_ends() {
  for (const Event* event : unseen_) {
    const bool ends = event->get_if<event::TimerFired>() != nullptr ||
                      event->get_if<event::ActivityTaskCompleted>() != nullptr ||
                      event->get_if<event::ActivityTaskFailed>() != nullptr ||
                      event->get_if<event::ActivityTaskTimedOut>() != nullptr ||
                      event->get_if<event::ActivityTaskCanceled>() != nullptr;
    if (!ends) continue;
    if (Operation* operation = operation_of(*event)) operation->will_end();
  }
}

// The number of the event that began what this one is about; 0 if it is about nothing of ours.
std::int64_t begun_by(const Event& event) {
  return std::visit(
      []<class E>(const E& e) -> std::int64_t {
        if constexpr (std::is_same_v<E, event::TimerFired>) {
          return e.started_event_id;
        } else if constexpr (requires { e.initiated_event_id; }) {
          return e.initiated_event_id;
        } else if constexpr (requires { e.scheduled_event_id; }) {
          return e.scheduled_event_id;
        } else {
          return 0;
        }
      },
      event.attributes);
}

Operation* WorkflowInstance::operation_of(const Event& event) {
  const auto found = operations_.find(begun_by(event));
  return found == operations_.end() ? nullptr : found->second.get();
}

void WorkflowInstance::dispatch(const Event& event) {
  if (const auto* signal = event.get_if<event::WorkflowExecutionSignaled>()) {
    deliver_signal(*signal);
  } else if (event.get_if<event::WorkflowExecutionCancelRequested>() != nullptr) {
    cancel_requested_ = true;
    root_->cancel();
  } else if (Operation* operation = operation_of(event)) {
    operation->apply(event);
  }
}

void WorkflowInstance::deliver_signal(const event::WorkflowExecutionSignaled& signal) {
  const auto handler = signal_handlers_.find(signal.signal_name);
  if (handler == signal_handlers_.end()) {
    signals_unhandled_.emplace_back(signal.signal_name, signal.input);
    return;
  }
  try {
    handler->second(signal.input);
  } catch (const Failed&) {
    close(std::nullopt, std::current_exception());
  }
}

void WorkflowInstance::contradict(const Event* event, const Command* command) const {
  std::string text = "workflow \"" + info_.workflow_type + "\" (" +
                     info_.execution.workflow_id.value + ", run " + info_.execution.run_id.value +
                     ") does not replay: ";
  if (event != nullptr) {
    text += "event " + std::to_string(event->event_id) + " of its history is " + describe(*event) +
            ", and the code asked for " + (command == nullptr ? "nothing" : describe(*command));
  } else {
    text += "after event " + std::to_string(last_event_id_) +
            " its history has nothing more, and the code asked for " + describe(*command);
  }
  text +=
      ". Likely the code was changed under an open run (see Workflow::patched), or it uses "
      "what is not in its history: a clock, random numbers, a thread, the order of an "
      "unordered container.";
  throw NondeterminismError(text);
}

// --- Code ---

Async<void> WorkflowInstance::run_main() {
  std::optional<Payloads> result;
  std::exception_ptr thrown;
  try {
    const Workflow workflow(*this, root_);
    Async<std::optional<Payloads>> body = function_(workflow, input_);
    result = co_await body;
  } catch (...) {
    thrown = std::current_exception();
  }
  close(std::move(result), thrown);
}

// The run's last command, or what fails the task. The workflow function's variables are gone: what
// may refer to them, handlers, conditions, other coroutines, is not called any more.
void WorkflowInstance::close(std::optional<Payloads> result, const std::exception_ptr& thrown) {
  if (closing_command_ || closed_) return;
  scheduler_.stop();
  signal_handlers_.clear();
  for (auto& [name, handler] : query_handlers_) {
    if (!handler.outlives_run) handler.answer = {};
  }
  try {
    if (thrown) std::rethrow_exception(thrown);
    std::string running;
    for (const Spawned& one : spawned_) {
      if (one.is_handler && !one.coroutine.is_done()) running += " \"" + one.name + "\"";
    }
    if (!running.empty()) {
      throw Misuse("workflow \"" + info_.workflow_type +
                   "\" ends while handlers of these signals "
                   "still run:" +
                   running + "; wait_until handlers_running() is 0 first");
    }
    closing_command_ = Command{command::CompleteWorkflowExecution{std::move(result)}, {}};
  } catch (const Workflow::ContinueAsNew& next) {
    command::ContinueAsNewWorkflowExecution command;
    command.workflow_type.name = info_.workflow_type;
    command.task_queue.name = info_.task_queue;
    command.input = next.input;
    closing_command_ = Command{std::move(command), {}};
  } catch (const Canceled& canceled) {
    if (cancel_requested_) {
      closing_command_ = Command{command::CancelWorkflowExecution{}, {}};
    } else {
      closing_command_ = Command{command::FailWorkflowExecution{canceled.failure()}, {}};
    }
  } catch (const Failed& failed) {
    closing_command_ = Command{command::FailWorkflowExecution{failed.failure()}, {}};
  } catch (...) {
    task_failure_ = std::current_exception();
  }
}

void WorkflowInstance::check_usable() const {
  if (entered == this) return;
  throw Misuse("a Workflow handle of \"" + info_.workflow_type + "\" (" +
               info_.execution.workflow_id.value +
               ") is used outside its workflow's own code: on "
               "another thread, in an activity, or in another workflow");
}

void WorkflowInstance::check_writable() const {
  check_usable();
  if (in_query_) throw Misuse("a query handler of \"" + info_.workflow_type + "\" changes its run");
}

std::optional<Payloads> WorkflowInstance::query(const std::string& type,
                                                const std::optional<Payloads>& arguments) {
  const Entered inside(this);
  const auto handler = query_handlers_.find(type);
  if (handler == query_handlers_.end()) {
    std::string known;
    for (const auto& [name, function] : query_handlers_)
      known += (known.empty() ? "" : ", ") + name;
    throw Misuse("workflow \"" + info_.workflow_type + "\" has no query \"" + type +
                 "\"; it has: " + (known.empty() ? "none" : known));
  }
  if (!handler->second.answer) {
    throw Misuse("the run has closed, and what query \"" + type +
                 "\" reads went with it; to have "
                 "it answered still, register it with a state of its own");
  }
  in_query_ = true;
  struct Leave {
    bool& in_query;
    ~Leave() { in_query = false; }
  } leave{in_query_};
  return handler->second.answer(arguments);
}

// --- OperationHost ---

IssuedList::iterator WorkflowInstance::issue(CommandAttributes command,
                                             std::shared_ptr<Operation> operation) {
  return issued_.insert(issued_.end(), {Command{std::move(command), {}}, std::move(operation)});
}

void WorkflowInstance::take_back(IssuedList::iterator issued) { issued_.erase(issued); }

void WorkflowInstance::forget(const Operation& operation) {
  operations_.erase(operation.event_id());
  std::erase_if(live_, [&](const auto& one) { return one.get() == &operation; });
}

}  // namespace permit::worker
