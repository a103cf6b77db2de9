// The handle that workflow code works with: everything that is not pure comes from here, so that
// a replay of the history finds the same. Copies are the same run; one is good for its workflow's
// own coroutines only, while they run.
//
//   Async<Report> nightly(Workflow workflow, Plan plan) {
//     bool stop = false;
//     workflow.on_signal("stop", [&stop] { stop = true; });
//     const auto quick = ActivityOptions().start_to_close(1min).retry(3);
//     Report report = co_await workflow.execute_activity(make_report, quick, plan);
//     const auto is_stopped = [&stop] { return stop; };
//     const bool in_time = co_await workflow.wait_until(is_stopped, 8h);
//     ...
//
// What begins something (an activity, a timer, a child) begins it at once and gives a Future;
// await it now, later, or together with others (all, any).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "orchestrator/protocol/ids.h"
#include "worker/async.h"
#include "worker/convert.h"
#include "worker/future.h"
#include "worker/names.h"
#include "worker/operation.h"
#include "worker/options.h"
#include "worker/random.h"

namespace permit::worker {

class WorkflowInstance;
template <class R>
class Child;

enum class LogLevel { debug, info, warning, error };

// What a run knows of itself.
struct WorkflowInfo {
  WorkflowExecution execution;
  RunId first_run_id;
  std::string workflow_type;
  std::string task_queue;
  std::optional<WorkflowExecution> parent;
  std::optional<PermitGrant> permit;  // of a permit run: what was granted
  Memo memo;
  Time start_time{};
  std::int64_t history_events = 0;
  std::int64_t history_bytes = 0;
  bool suggest_continue_as_new = false;  // the history grows long
  bool is_closed = false;                // as a query after its end finds
};

class Workflow {
 public:
  Workflow(WorkflowInstance& instance, std::shared_ptr<CancelScope> scope)
      : instance_(&instance), scope_(std::move(scope)) {}

  // --- Work ---

  template <class R, class... Args>
  Future<R> execute_activity(ActivityName<R(Args...)> name, const ActivityOptions& options,
                             const std::type_identity_t<Args>&... args) const;

  // Done when the child has started, or fails with ChildNotStarted.
  template <class R, class... Args>
  Future<Child<R>> start_child(WorkflowName<R(Args...)> name, const ChildOptions& options,
                               const std::type_identity_t<Args>&... args) const;
  template <class R, class... Args>
  Async<R> execute_child(WorkflowName<R(Args...)> name, ChildOptions options,
                         std::type_identity_t<Args>... args) const;

  // Asks for slots of a pool, see permits/semaphore.h. Done with a child for each slot, or fails
  // with ChildNotStarted. While it waits a cancellation withdraws it; what has been granted stays.
  Future<std::vector<Child<std::string>>> start_permit(PermitRequest request,
                                                       const ChildOptions& options) const;

  // Runs beside the coroutine that calls this. Ends with the run.
  template <class T>
  Future<T> spawn(Async<T> coroutine) const;

  // --- Time ---

  // When this task began, by the server's clock.
  Time now() const;
  Time start_time() const { return info().start_time; }
  Future<void> sleep(Duration duration) const;
  // Wakes early if a slot of `pool` becomes free.
  Future<void> sleep_for_pool(Duration duration, PoolName pool) const;
  // Until a predicate over the workflow's own variables holds; whether it did in time.
  Async<bool> wait_until(std::function<bool()> predicate) const;
  Async<bool> wait_until(std::function<bool()> predicate, Duration timeout) const;
  Async<bool> wait_until(std::function<bool()> predicate, Time deadline,
                         std::string timer_id = {}) const;

  // --- Others ---

  // Done when it has been delivered, or fails with ExternalFailed. Without a run id: whichever run
  // is open.
  template <class... Args>
  Future<void> signal_external(WorkflowExecution target, std::string signal,
                               const Args&... args) const;
  Future<void> cancel_external(WorkflowExecution target, std::string reason = {}) const;

  // --- What comes in ---

  // A handler is a function, or a coroutine that returns Async<void>. Signals that came before it
  // was registered are handed over at once, in order.
  template <class Handler>
  void on_signal(const std::string& name, Handler handler) const;
  // Must not change anything. Answers while the workflow function runs: so it may read its
  // variables.
  template <class Handler>
  void on_query(std::string name, Handler handler) const;
  // handler(*state, arguments…) answers after the run has closed, too; it reads nothing but
  // `state`.
  template <class State, class Handler>
  void on_query(std::string name, std::shared_ptr<State> state, Handler handler) const;
  // Signal handlers that are coroutines and have not ended. A run that ends with some is a bug.
  std::size_t handlers_running() const;

  // --- What differs between executions, the same on replay ---

  // A stream of its own for each name; keep it, or call this again for where it stands.
  Random& random(const std::string& stream = {}) const;
  std::string uuid() const;
  // Runs `function` once; every replay gets that value back. Not for I/O that may fail.
  template <class Function>
  auto side_effect(Function function) const -> decltype(function());
  // Whether this run began the changed part after the change: false for one that is past it.
  bool patched(const std::string& id) const;

  // --- Ends and marks ---

  // Ends this run and begins another of the same workflow id and type.
  template <class... Args>
  [[noreturn]] void continue_as_new(const Args&... args) const;
  template <class T>
  void upsert_memo(const std::string& key, const T& value) const;
  template <class T>
  void upsert_search_attributes(const std::string& key, const T& value) const;

  // --- Cancellation ---

  // A handle to a part of this one's scope that can be canceled by itself.
  Workflow cancelable() const;
  // A handle that no cancellation reaches: for what must be done all the same, such as clean-up.
  Workflow shielded() const;
  // Cancels everything that was begun through this handle and handles made from it. What waits for
  // it gets Canceled, and so does whatever is begun through it from now on.
  void cancel() const;
  bool is_canceled() const { return scope_->is_canceled(); }

  // --- The rest ---

  const WorkflowInfo& info() const;
  // Silent while the history is replayed.
  void log(LogLevel level, const std::string& text) const;
  bool is_replaying() const;
  // The run is leaving memory: frames are being destroyed, and nothing here has an effect.
  bool is_closing() const;

 private:
  template <class R>
  friend class Child;
  struct ContinueAsNew {
    std::optional<Payloads> input;
  };
  friend class WorkflowInstance;

  using Cancel = std::function<void()>;

  template <class R, class... Args>
  static Async<R> run_child(Workflow self, WorkflowName<R(Args...)> name, ChildOptions options,
                            Args... args);
  static Async<bool> wait(Workflow self, std::function<bool()> predicate,
                          std::optional<Time> deadline, std::string timer_id);

  OperationHost& host() const;
  Scheduler& scheduler() const;
  Cancel begin_activity(command::ScheduleActivityTask command, OnCancel on_cancel, Done done) const;
  std::shared_ptr<ChildOperation> begin_child(command::StartChildWorkflowExecution command,
                                              ChildOperation::Started started,
                                              ChildOperation::NotStarted not_started) const;
  Future<void> begin_timer(Duration duration, PoolName pool, std::string timer_id) const;
  Future<void> begin_external(CommandAttributes command) const;
  Future<std::optional<Time>> begin_renewal(const WorkflowExecution& permit) const;
  Future<void> begin_signal(WorkflowExecution target, std::string signal,
                            std::optional<Payloads> input, bool child_only) const;
  void begin_external(CommandAttributes command, Done done) const;
  void begin_spawned(Async<void> coroutine, bool is_handler, std::string name) const;
  void add_signal_handler(const std::string& name,
                          std::function<void(const std::optional<Payloads>&)> handler) const;
  void add_query_handler(
      std::string name,
      std::function<std::optional<Payloads>(const std::optional<Payloads>&)> handler,
      bool outlives_run) const;
  std::optional<Payloads> marked(const std::function<std::optional<Payloads>()>& make) const;
  void upsert(std::string key, Payload value) const;
  void upsert_search_attribute(std::string key, Payload value) const;
  void throw_if_canceled() const;

  template <class R>
  static Done settle(Future<R> future);

  WorkflowInstance* instance_;
  std::shared_ptr<CancelScope> scope_;
};

// A child that has started. Copies are the same child.
template <class R>
class Child {
 public:
  Child(Workflow workflow, std::shared_ptr<ChildOperation> operation, ChildRun run)
      : workflow_(std::move(workflow)), operation_(std::move(operation)), run_(std::move(run)) {}

  const WorkflowId& id() const { return run_.execution.workflow_id; }
  const RunId& run_id() const { return run_.execution.run_id; }
  Future<R> result() const;
  // Reaches this very run, and only as this run's child.
  template <class... Args>
  Future<void> signal(std::string name, const Args&... args) const;
  void cancel() const { operation_->cancel_run(run_.execution.run_id); }

  // Of a permit, as granted.
  Fence fence() const { return run_.fence; }
  Time deadline() const { return run_.deadline; }
  // Done with the permit's new deadline, or with none: too late. Fails with ExternalFailed if it
  // has ended.
  Future<std::optional<Time>> renew() const;

 private:
  Workflow workflow_;
  std::shared_ptr<ChildOperation> operation_;
  ChildRun run_;
};

}  // namespace permit::worker

#include "worker/workflow_templates.h"
