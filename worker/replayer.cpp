#include "worker/replayer.h"

#include <nlohmann/json.hpp>

#include "orchestrator/protocol/error.h"
#include "orchestrator/protocol/json.h"
#include "worker/workflow_instance.h"

namespace permit::worker {

namespace {

std::unique_ptr<WorkflowInstance> instance_for(const Registry& registry,
                                               const WorkflowExecution& execution,
                                               const std::vector<Event>& events) {
  static const LogSink silent;
  const auto* started =
      events.empty() ? nullptr : events.front().get_if<event::WorkflowExecutionStarted>();
  if (started == nullptr) {
    throw invalid_argument("HISTORY_INVALID",
                           "a history begins with WorkflowExecutionStarted; this one does not");
  }
  const std::string& type = started->workflow_type.name;
  const WorkflowFunction* function = registry.find_workflow(type);
  if (function == nullptr) {
    throw Misuse("no workflow \"" + type +
                 "\" is registered; there is: " + registry.workflow_names());
  }
  return std::make_unique<WorkflowInstance>(execution, *function, silent);
}

}  // namespace

std::vector<Event> read_history(std::string_view json) {
  const std::size_t first = json.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && json[first] == '[') {
    return read_json<std::vector<Event>>(json);
  }
  nlohmann::json parsed = nlohmann::json::parse(json, nullptr, false);
  if (parsed.is_discarded() || !parsed.is_object() || !parsed.contains("events")) {
    throw invalid_argument("HISTORY_INVALID", "a history file is {\"events\": [...]} or the list");
  }
  return read_json<std::vector<Event>>(parsed["events"].dump());
}

std::vector<std::vector<Command>> replay(const Registry& registry,
                                         const WorkflowExecution& execution,
                                         const std::vector<Event>& events) {
  std::vector<std::vector<Command>> tasks;
  const auto instance = instance_for(registry, execution, events);
  instance->record_tasks(tasks);
  instance->activate(events);
  if (instance->task_started_event_id() != 0) tasks.pop_back();
  return tasks;
}

}  // namespace permit::worker
