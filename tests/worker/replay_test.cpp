#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "orchestrator/protocol/json.h"
#include "worker/replayer.h"
#include "worker/test_environment.h"

using namespace permit;
using namespace permit::worker;
using namespace std::chrono_literals;

namespace {

constexpr WorkflowName<std::string()> flow{"flow"};
constexpr ActivityName<std::string(std::string)> echo{"echo"};
constexpr ActivityName<std::string(std::string)> shout{"shout"};

using Code = Async<std::string> (*)(Workflow);

Async<std::string> first_version(Workflow workflow) {
  const auto quick = ActivityOptions().start_to_close(1min);
  std::string word = "a";
  std::string text = co_await workflow.execute_activity(echo, quick, word);
  co_await workflow.sleep(1h);
  co_return text;
}

Async<std::string> other_activity(Workflow workflow) {
  const auto quick = ActivityOptions().start_to_close(1min);
  std::string word = "a";
  std::string text = co_await workflow.execute_activity(shout, quick, word);
  co_await workflow.sleep(1h);
  co_return text;
}

Async<std::string> timer_first(Workflow workflow) {
  co_await workflow.sleep(1h);
  co_return "";
}

Async<std::string> one_more(Workflow workflow) {
  const auto quick = ActivityOptions().start_to_close(1min);
  std::string word = "a";
  const Future<void> early = workflow.sleep(2h);
  std::string text = co_await workflow.execute_activity(echo, quick, word);
  co_await workflow.sleep(1h);
  co_return text;
}

Async<std::string> one_less(Workflow) { co_return "a"; }

Async<std::string> patched_version(Workflow workflow) {
  const auto quick = ActivityOptions().start_to_close(1min);
  std::string word = "a";
  std::string text;
  if (workflow.patched("shout")) {
    text = co_await workflow.execute_activity(shout, quick, word);
  } else {
    text = co_await workflow.execute_activity(echo, quick, word);
  }
  co_await workflow.sleep(1h);
  co_return text;
}

Registry registry_of(Code code) {
  Registry registry;
  registry.workflow(flow, code);
  registry.activity(echo, [](ActivityContext&, std::string text) { return text; });
  registry.activity(shout, [](ActivityContext&, std::string text) { return text + "!"; });
  return registry;
}

// The history of a run of `code` that sleeps.
std::vector<Event> open_history(Code code) {
  const Registry registry = registry_of(code);
  TestEnvironment environment(registry);
  const auto run = environment.client().start(flow, StartOptions("f"));
  environment.advance(1min);
  return run.history();
}

std::string difference(Code code, const std::vector<Event>& events) {
  try {
    replay(registry_of(code), {WorkflowId("f"), RunId("r")}, events);
  } catch (const NondeterminismError& error) {
    return error.what();
  }
  return "none";
}

std::string read_file(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// A new recording, if there is none yet: one that is there is never written again.
void record(const std::string& name, const std::vector<Event>& events) {
  const std::string path = "tests/histories/" + name + ".json";
  if (std::getenv("UPDATE_GOLDEN") == nullptr || std::filesystem::exists(path)) return;
  std::ofstream file(path);
  file << "{\"events\": [\n";
  for (const Event& event : events) {
    file << to_json(event, PayloadForm::shorthand) << (&event == &events.back() ? "\n" : ",\n");
  }
  file << "]}\n";
}

}  // namespace

TEST_SUITE_BEGIN("replay");

TEST_CASE("code that was changed under an open run is told what differs, and where") {
  const std::vector<Event> events = open_history(first_version);
  const std::string likely =
      ". Likely the code was changed under an open run (see Workflow::patched), or it uses what "
      "is not in its history: a clock, random numbers, a thread, the order of an unordered "
      "container.";
  const std::string run = "workflow \"flow\" (f, run r) does not replay: ";
  CHECK(difference(first_version, events) == "none");
  CHECK(difference(other_activity, events) ==
        run +
            "event 5 of its history is ActivityTaskScheduled 1 of type echo, and the code asked "
            "for ScheduleActivityTask 1 of type shout" +
            likely);
  CHECK(difference(timer_first, events) ==
        run +
            "event 5 of its history is ActivityTaskScheduled 1 of type echo, and the code asked "
            "for StartTimer 1" +
            likely);
  CHECK(difference(one_less, events) ==
        run +
            "event 5 of its history is ActivityTaskScheduled 1 of type echo, and the code asked "
            "for CompleteWorkflowExecution" +
            likely);
  CHECK(difference(one_more, events) ==
        run +
            "event 5 of its history is ActivityTaskScheduled 1 of type echo, and the code asked "
            "for StartTimer 1" +
            likely);
}

TEST_CASE("code that asks for more than its history has is told so at the next task") {
  std::vector<Event> events = open_history(first_version);
  std::erase_if(events,
                [](const Event& event) { return event.get_if<event::TimerStarted>() != nullptr; });
  Event scheduled;
  scheduled.event_id = 90;
  scheduled.attributes = event::WorkflowTaskScheduled{};
  Event started;
  started.event_id = 91;
  started.attributes = event::WorkflowTaskStarted{};
  events.push_back(scheduled);
  events.push_back(started);
  CHECK(difference(first_version, events)
            .find("its history has nothing more, and the code asked for StartTimer 1") !=
        std::string::npos);
}

TEST_CASE("patched lets old runs go the old way and new ones the new way") {
  const std::vector<Event> before = open_history(first_version);
  const std::vector<Event> after = open_history(patched_version);
  record("patch_before", before);
  record("patch_after", after);
  CHECK(difference(patched_version, before) == "none");
  CHECK(difference(patched_version, after) == "none");
  CHECK(difference(first_version, after) != "none");
}

TEST_CASE("a worker whose code does not replay fails the task, and a fixed one goes on") {
  Registry registry = registry_of(first_version);
  const Registry changed = registry_of(other_activity);
  TestEnvironment environment(registry);
  const auto run = environment.client().start(flow, StartOptions("f"));
  environment.advance(1min);

  std::vector<Event> events = run.history();
  TaskRunner::Options options;
  options.sticky_queue = "s";
  TaskRunner runner(changed, options);
  PollWorkflowTaskQueueResponse task;
  task.workflow_execution = run.execution();
  task.workflow_type = WorkflowType{"flow"};
  task.attempt = 1;
  std::string text;
  for (const Event& event : events) text += (text.empty() ? "[" : ",") + to_json(event);
  task.history = RawHistory{RawJson{text + "]"}};
  const WorkflowTaskAnswer answer = runner.run(task);
  const auto* failed = std::get_if<RespondWorkflowTaskFailedRequest>(&answer);
  REQUIRE(failed != nullptr);
  CHECK(failed->cause == WorkflowTaskFailedCause::non_deterministic_error);
  CHECK(runner.runs_cached() == 0);
  // Tried again, it is left to time out: no storm of failing tasks.
  task.attempt = 2;
  const WorkflowTaskAnswer again = runner.run(task);
  CHECK(std::holds_alternative<std::monostate>(again));

  CHECK(run.result() == "a");
}

TEST_CASE("recorded histories replay for ever") {
  const Registry registry = registry_of(patched_version);
  int files = 0;
  for (const auto& file : std::filesystem::directory_iterator("tests/histories")) {
    if (file.path().extension() != ".json") continue;
    CAPTURE(file.path().string());
    ++files;
    const std::vector<Event> events = read_history(read_file(file.path()));
    CHECK_NOTHROW(replay(registry, {WorkflowId("f"), RunId("r")}, events));
  }
  CHECK(files >= 3);
}

TEST_CASE("an export of Temporal's replays, and changed code is told where it parts") {
  const std::string text = read_file("tests/histories/temporal_export.json");
  const std::vector<Event> events = read_history(text);
  REQUIRE(events.size() == 19);  // of 20, one that a worker may ignore
  CHECK(events.front().get_if<event::WorkflowExecutionStarted>()->memo->fields.size() == 1);
  const auto* failed = events[3].get_if<event::WorkflowTaskFailed>();
  REQUIRE(failed != nullptr);
  CHECK(failed->cause == WorkflowTaskFailedCause::unspecified);  // a newer one than ours
  CHECK(failed->failure->application_failure_info->type == "Error");

  const auto tasks = replay(registry_of(first_version), {WorkflowId("f"), RunId("r")}, events);
  CHECK(tasks.size() == 3);
  CHECK(difference(patched_version, events) == "none");
  CHECK(difference(other_activity, events)
            .find("event 8 of its history is ActivityTaskScheduled 1 of type echo, and the code "
                  "asked for ScheduleActivityTask 1 of type shout") != std::string::npos);
  CHECK(difference(one_more, events)
            .find("event 8 of its history is ActivityTaskScheduled 1 of type echo, and the code "
                  "asked for StartTimer 1") != std::string::npos);

  // As the list alone, and as the API answers.
  const std::string list = text.substr(text.find('['), text.rfind(']') + 1 - text.find('['));
  CHECK(read_history(list).size() == 19);
  CHECK(read_history("{\"nextPageToken\":\"\",\"history\":" + text + "}").size() == 19);
}

TEST_CASE("what a history cannot do without is not skipped") {
  const auto read_one = [](const std::string& event) {
    return read_history("{\"events\":[" + event + "]}").size();
  };
  CHECK(read_one(
            R"({"eventType":"EVENT_TYPE_TIMER_FIRED","timerFiredEventAttributes":{"x":[{}]}})") ==
        1);
  const std::string unknown =
      R"("eventType":"EVENT_TYPE_NEXUS_OPERATION_SCHEDULED","nexusOperationScheduledEventAttributes":{)";
  CHECK_THROWS_AS(read_one("{" + unknown + "}}"), Error);
  CHECK_THROWS_AS(read_one("{" + unknown + "},\"workerMayIgnore\":false}"), Error);
  CHECK(read_one("{" + unknown + "},\"workerMayIgnore\":true}") == 0);
  // Still bounded in depth.
  const std::string deep = std::string(200, '[') + std::string(200, ']');
  CHECK_THROWS_AS(read_one("{\"newField\":" + deep + ",\"timerFiredEventAttributes\":{}}"), Error);
}

TEST_CASE("a file that is no history is refused") {
  const char* const problem = "a history file is {\"events\": [...]} or the list";
  CHECK_THROWS_WITH_AS(read_history("{}"), problem, Error);
  CHECK_THROWS_WITH_AS(read_history("{\"events\":{}}"), problem, Error);
  CHECK_THROWS_WITH_AS(read_history("5"), problem, Error);
  CHECK_THROWS_AS(read_history("[{]"), Error);
  CHECK_THROWS_AS(read_history("[] []"), Error);
  CHECK_THROWS_AS(read_history("[5]"), Error);
  CHECK_THROWS_WITH_AS(replay(registry_of(one_less), {}, {}),
                       "a history begins with WorkflowExecutionStarted; this one does not", Error);
}

TEST_SUITE_END();
