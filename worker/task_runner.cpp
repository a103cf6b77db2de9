#include "worker/task_runner.h"

#include <utility>

#include "orchestrator/protocol/json.h"

namespace permit::worker {

namespace {

std::vector<Event> events_of(const PollWorkflowTaskQueueResponse& task) {
  if (!task.history) return {};
  return read_json<std::vector<Event>>(task.history->events.text);
}

Time attempt_deadline(const PollActivityTaskQueueResponse& task) {
  Time deadline = never;
  if (task.start_to_close_timeout.count() > 0) {
    deadline = task.started_time + task.start_to_close_timeout;
  }
  if (task.schedule_to_close_timeout.count() > 0) {
    deadline = std::min(deadline, task.scheduled_time + task.schedule_to_close_timeout);
  }
  return deadline;
}

}  // namespace

TaskRunner::TaskRunner(const Registry& registry, Options options)
    : registry_(registry), options_(std::move(options)) {}

WorkflowTaskAnswer TaskRunner::run(const PollWorkflowTaskQueueResponse& task) {
  if (task.query) return answer_query(task);
  const RunId& run = task.workflow_execution->run_id;
  try {
    return run_task(task);
  } catch (const NondeterminismError&) {
    evict(run);
    return failed(task, WorkflowTaskFailedCause::non_deterministic_error, std::current_exception());
  } catch (...) {
    evict(run);
    return failed(task, WorkflowTaskFailedCause::workflow_worker_unhandled_failure,
                  std::current_exception());
  }
}

std::unique_ptr<WorkflowInstance> TaskRunner::make(
    const PollWorkflowTaskQueueResponse& task) const {
  const std::string& type = task.workflow_type->name;
  const WorkflowFunction* function = registry_.find_workflow(type);
  if (function == nullptr) {
    throw Misuse("this worker has no workflow \"" + type +
                 "\"; it has: " + registry_.workflow_names());
  }
  return std::make_unique<WorkflowInstance>(*task.workflow_execution, *function, options_.log);
}

WorkflowTaskAnswer TaskRunner::run_task(const PollWorkflowTaskQueueResponse& task) {
  const RunId& run = task.workflow_execution->run_id;
  std::vector<Event> events = events_of(task);
  Cached* cached = find(run);
  const bool is_whole = !events.empty() && events.front().event_id == 1;
  const bool goes_on = cached != nullptr && !is_whole && cached->unanswered.value.empty() &&
                       cached->instance->task_started_event_id() == task.previous_started_event_id;
  if (goes_on) {
    ++cache_hits_;
  } else {
    if (task.previous_started_event_id > 0) ++cache_misses_;
    evict(run);
    if (!is_whole) events = options_.fetch_history(*task.workflow_execution);
    keep(run, make(task));
    cached = find(run);
  }
  WorkflowInstance* const instance = cached->instance.get();
  cached->unanswered = task.task_token;
  RespondWorkflowTaskCompletedRequest answer;
  answer.commands = instance->activate(events);
  for (const auto& [id, query] : task.queries) {
    WorkflowQueryResult& result = answer.query_results[id];
    try {
      result.answer = instance->query(query.query_type, query.query_args);
      result.result_type = QueryResultType::answered;
    } catch (const std::exception& error) {
      result.error_message = error.what();
      result.result_type = QueryResultType::failed;
    }
  }
  answer.task_token = task.task_token;
  answer.identity = options_.identity;
  answer.namespace_ = options_.namespace_name;
  answer.return_new_workflow_task = true;
  const bool keeps = !options_.sticky_queue.empty() && options_.runs_cached_max > 0;
  if (instance->is_closed() || !keeps) {
    evict(run);
  } else {
    StickyExecutionAttributes& sticky = answer.sticky_attributes.emplace();
    sticky.worker_task_queue.name = options_.sticky_queue;
    sticky.worker_task_queue.kind = TaskQueueKind::sticky;
    sticky.worker_task_queue.normal_name = task.workflow_execution_task_queue
                                               ? task.workflow_execution_task_queue->name
                                               : std::string();
    sticky.schedule_to_start_timeout = options_.sticky_timeout;
  }
  return answer;
}

// The run as it is, if it is here; else as its history makes it, for this once.
WorkflowTaskAnswer TaskRunner::answer_query(const PollWorkflowTaskQueueResponse& task) {
  RespondQueryTaskCompletedRequest answer;
  answer.task_token = task.task_token;
  answer.namespace_ = options_.namespace_name;
  try {
    const Cached* cached = find(task.workflow_execution->run_id);
    WorkflowInstance* instance = cached == nullptr ? nullptr : cached->instance.get();
    std::unique_ptr<WorkflowInstance> replayed;
    std::vector<Event> events = events_of(task);
    const bool knows_less = instance != nullptr && !events.empty() &&
                            events.back().event_id > instance->last_event_id();
    if (instance == nullptr || knows_less) {  // it may have been closed by others since
      replayed = make(task);
      replayed->activate(events);
      instance = replayed.get();
    }
    answer.query_result = instance->query(task.query->query_type, task.query->query_args);
    answer.completed_type = QueryResultType::answered;
  } catch (const std::exception& error) {
    answer.completed_type = QueryResultType::failed;
    answer.error_message = error.what();
  }
  return answer;
}

WorkflowTaskAnswer TaskRunner::failed(const PollWorkflowTaskQueueResponse& task,
                                      WorkflowTaskFailedCause cause,
                                      const std::exception_ptr& why) {
  RespondWorkflowTaskFailedRequest answer;
  answer.task_token = task.task_token;
  answer.namespace_ = options_.namespace_name;
  answer.identity = options_.identity;
  answer.cause = cause;
  answer.failure = failure_of(why);
  if (options_.log) {
    WorkflowInfo info;
    info.execution = *task.workflow_execution;
    info.workflow_type = task.workflow_type->name;
    options_.log(LogLevel::error, info,
                 "workflow task failed, attempt " + std::to_string(task.attempt) + ": " +
                     answer.failure->message);
  }
  if (task.attempt > 1) return std::monostate();
  return answer;
}

TaskRunner::Cached* TaskRunner::find(const RunId& run) {
  const auto found = cached_.find(run);
  if (found == cached_.end()) return nullptr;
  uses_.splice(uses_.begin(), uses_, found->second.use);
  return &found->second;
}

void TaskRunner::accepted(const RunId& run, const Bytes& task_token) {
  const auto found = cached_.find(run);
  if (found == cached_.end() || found->second.unanswered != task_token) return;
  found->second.unanswered = {};
}

void TaskRunner::keep(const RunId& run, std::unique_ptr<WorkflowInstance> instance) {
  uses_.push_front(run);
  cached_[run] = {std::move(instance), uses_.begin()};
  while (cached_.size() > std::max<std::size_t>(options_.runs_cached_max, 1)) {
    const RunId oldest = uses_.back();
    evict(oldest);
  }
}

void TaskRunner::evict(const RunId& run) {
  const auto found = cached_.find(run);
  if (found == cached_.end()) return;
  uses_.erase(found->second.use);
  cached_.erase(found);
}

void TaskRunner::evict_all() {
  cached_.clear();
  uses_.clear();
}

// --- Activities ---

ActivityInfo activity_info_of(const PollActivityTaskQueueResponse& task) {
  ActivityInfo info;
  info.workflow = task.workflow_execution.value_or(WorkflowExecution{});
  if (task.workflow_type) info.workflow_type = task.workflow_type->name;
  info.activity_id = task.activity_id;
  if (task.activity_type) info.activity_type = task.activity_type->name;
  info.attempt = task.attempt;
  info.task_token = task.task_token;
  info.scheduled_time = task.scheduled_time;
  info.started_time = task.started_time;
  info.deadline = attempt_deadline(task);
  info.heartbeat_timeout = task.heartbeat_timeout;
  return info;
}

ActivityTaskAnswer run_activity(const Registry& registry, const PollActivityTaskQueueResponse& task,
                                ActivityContext& context) {
  const auto fail = [&](const std::exception_ptr& why) {
    RespondActivityTaskFailedRequest answer;
    answer.task_token = task.task_token;
    answer.failure = failure_of(why);
    return answer;
  };
  try {
    const ActivityFunction* function = registry.find_activity(context.info().activity_type);
    if (function == nullptr) {
      throw ApplicationFailed("this worker has no activity \"" + context.info().activity_type +
                              "\"; it has: " + registry.activity_names())
          .type("ActivityNotRegistered");
    }
    RespondActivityTaskCompletedRequest answer;
    answer.task_token = task.task_token;
    answer.result = (*function)(context, task.input);
    return answer;
  } catch (const CompletesLater&) {
    return std::monostate();
  } catch (const Canceled&) {
    if (!context.is_canceled()) return fail(std::current_exception());
    RespondActivityTaskCanceledRequest answer;
    answer.task_token = task.task_token;
    return answer;
  } catch (...) {
    return fail(std::current_exception());
  }
}

}  // namespace permit::worker
