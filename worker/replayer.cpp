#include "worker/replayer.h"

#include "orchestrator/protocol/error.h"
#include "orchestrator/protocol/json.h"
#include "orchestrator/protocol/json_reader.h"
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

// The text of the list in an export.
std::string_view events_in(std::string_view json) {
  JsonReader reader(json, own_text);
  std::string_view found;
  if (reader.peek() == '[') {
    found = reader.skip_value();
  } else if (reader.peek() == '{') {
    JsonReader::Object members(reader);
    while (members.next()) {
      const std::string_view value = reader.skip_value();
      if (members.key() == "events") found = value;
      if (members.key() == "history") found = events_in(value);
    }
  }
  if (!found.starts_with('[')) {
    throw invalid_argument("HISTORY_INVALID", "a history file is {\"events\": [...]} or the list");
  }
  reader.finish();
  return found;
}

bool may_be_ignored(std::string_view event) {
  if (!event.starts_with('{')) return false;
  bool ignorable = false;
  JsonReader reader(event, own_text);
  JsonReader::Object members(reader);
  while (members.next()) {
    const std::string_view value = reader.skip_value();
    if (members.key() == "workerMayIgnore") ignorable = value == "true";
  }
  return ignorable;
}

}  // namespace

std::vector<Event> read_history(std::string_view json) {
  const std::string_view all = events_in(json);
  // Most files mark no event: then the text is read as it is. A backslash may hide the word.
  if (all.find("workerMayIgnore") == all.npos && all.find('\\') == all.npos) {
    return read_json<std::vector<Event>>(all, Unknown::skip);
  }
  std::string list = "[";
  JsonReader reader(all, own_text);
  JsonReader::Array events(reader);
  while (events.next()) {
    const std::string_view event = reader.skip_value();
    if (may_be_ignored(event)) continue;
    if (list.size() > 1) list += ',';
    list += event;
  }
  list += ']';
  return read_json<std::vector<Event>>(list, Unknown::skip);
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
