#include "tests/support/prefixes.h"

#include <string>

#include "orchestrator/protocol/json.h"
#include "tests/simulation/chance.h"
#include "worker/command_matching.h"
#include "worker/workflow_instance.h"

namespace permit::test {

namespace {

using namespace worker;
using Tasks = std::vector<std::string>;  // the commands of each

std::string text_of(const std::vector<Command>& commands) {
  std::string text;
  for (const Command& command : commands) {
    write_json(command, text);
    text += '\n';
  }
  return text;
}

Tasks texts_of(const std::vector<std::vector<Command>>& tasks) {
  Tasks texts;
  for (const std::vector<Command>& commands : tasks) texts.push_back(text_of(commands));
  return texts;
}

void compare(const Tasks& expected, const Tasks& replayed, std::size_t count,
             const std::string& what, ReplayTotals& totals) {
  simulation::require(replayed.size() == count, what + ": " + std::to_string(replayed.size()) +
                                                    " tasks, not " + std::to_string(count));
  for (std::size_t i = 0; i < count; ++i, ++totals.tasks_compared) {
    simulation::require(expected[i] == replayed[i], what + ": task " + std::to_string(i + 1) +
                                                        " asked for\n" + expected[i] +
                                                        "and in this replay for\n" + replayed[i]);
  }
}

// Past the last event of the commands of that completed task. Others may be between them: an
// activity that waits for its next attempt is canceled as soon as that is asked for.
std::size_t end_of_commands(const std::vector<Event>& events, std::size_t completed) {
  std::size_t end = completed + 1;
  for (std::size_t i = end; i < events.size(); ++i) {
    if (events[i].get_if<event::WorkflowTaskCompleted>() != nullptr) break;
    if (is_of_command(events[i])) end = i + 1;
  }
  return end;
}

// Where the events before `completed` were the last that a worker saw, which then ran the task.
Tasks split_there(const Registry& registry, const WorkflowExecution& execution,
                  const std::vector<Event>& events, std::size_t completed) {
  static const LogSink silent;
  const std::string& type =
      events.front().get_if<event::WorkflowExecutionStarted>()->workflow_type.name;
  std::vector<std::vector<Command>> tasks;
  WorkflowInstance instance(execution, *registry.find_workflow(type), silent);
  instance.record_tasks(tasks);
  const auto middle = events.begin() + static_cast<std::ptrdiff_t>(completed);
  instance.activate({events.begin(), middle});
  instance.activate({middle, events.end()});
  return texts_of(tasks);
}

}  // namespace

void check_prefixes(const Registry& registry, const WorkflowExecution& execution,
                    const std::vector<Event>& events, Ends ends, ReplayTotals& totals) {
  const std::string name =
      "workflow " + execution.workflow_id.value + ", run " + execution.run_id.value;
  const bool is_open_task = events.back().get_if<event::WorkflowTaskStarted>() != nullptr;
  simulation::require(!is_open_task, name + ": it ends in the middle of a task");
  const Tasks whole = texts_of(replay(registry, execution, events));
  std::size_t task = 0;
  for (std::size_t i = 0; i < events.size(); ++i) {
    if (events[i].get_if<event::WorkflowTaskCompleted>() == nullptr) continue;
    const std::string what = name + ", cut at event " + std::to_string(events[i].event_id);
    ++task;
    const auto end = static_cast<std::ptrdiff_t>(end_of_commands(events, i));
    const std::vector<Event> prefix(events.begin(), events.begin() + end);
    ++totals.prefixes;
    compare(whole, texts_of(replay(registry, execution, prefix)), task, what, totals);
    // A side effect that runs again gives another value, as it should.
    if (ends == Ends::replayed || whole[task - 1].find("SideEffect") != std::string::npos) continue;
    const Tasks split = split_there(registry, execution, events, i);
    compare(whole, split, whole.size(), what + " and taken up again", totals);
  }
}

}  // namespace permit::test
