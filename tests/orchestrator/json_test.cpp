// The rules of the codec, one line each: what a text means, how a value is written, and what is
// refused with which reason.
#include "orchestrator/protocol/json.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "orchestrator/protocol/ensure.h"
#include "orchestrator/protocol/error.h"
#include "orchestrator/protocol/json_names.h"
#include "orchestrator/protocol/json_writer.h"
#include "orchestrator/protocol/request.h"

namespace permit {
namespace {

using Start = StartWorkflowExecutionRequest;

// What reading ends in: the value written again, or "REASON: message".
template <class T>
std::string outcome(std::string_view text, PayloadForm form = PayloadForm::shorthand) {
  try {
    return to_json(read_json<T>(text), form);
  } catch (const Error& error) {
    return error.reason() + ": " + error.message();
  }
}

template <class T>
std::string reason(std::string_view text) {
  try {
    read_json<T>(text);
    return "accepted";
  } catch (const Error& error) {
    return error.reason();
  }
}

std::string repeat(std::string_view text, int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out += text;
  return out;
}

struct Row {
  std::string in;
  std::string out;
};

template <class T>
void check_rows(const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    CAPTURE(row.in);
    CHECK(outcome<T>(row.in) == row.out);
  }
}

// `rows` are for the value of one field.
template <class T>
void check_field(const std::string& field, const std::vector<Row>& rows) {
  const std::string member = "{\"" + field + "\":";
  for (const Row& row : rows) {
    CAPTURE(row.in);
    const bool is_reason = row.out.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ_") == row.out.npos;
    if (!row.out.empty() && is_reason) {
      CHECK(reason<T>(member + row.in + '}') == row.out);
    } else {
      CHECK(outcome<T>(member + row.in + '}') == (row.out.empty() ? "{}" : member + row.out + '}'));
    }
  }
}

}  // namespace

TEST_CASE("zero values are left out, but an optional that is there is written") {
  check_rows<Start>({
      {"{}", "{}"},
      {R"({"workflowId":"","taskQueue":{"name":""},"permit":{"slots":[],"count":0,"wait":false}})",
       R"({"permit":{}})"},
      {R"({"workflowRunTimeout":"0s","workflowIdReusePolicy":0,"header":{"fields":{}}})",
       R"({"header":{}})"},
      {R"({"workflowId":null,"taskQueue":null,"input":null,"permit":null,"links":null})", "{}"},
  });
}

TEST_CASE("64-bit integers are strings, exact, and within range") {
  check_field<CountWorkflowExecutionsResponse>(
      "count", {
                   {"5", "\"5\""},
                   {"\"5\"", "\"5\""},
                   {"0", ""},
                   {"-0", ""},
                   {"9223372036854775807", "\"9223372036854775807\""},
                   {"\"-9223372036854775808\"", "\"-9223372036854775808\""},
                   {"9007199254740993", "\"9007199254740993\""},
                   {"9223372036854775808", "FIELD_INVALID"},
                   {"18446744073709551616", "FIELD_INVALID"},
                   {"-9223372036854775809", "FIELD_INVALID"},
                   {"1.5", "FIELD_INVALID"},
                   {"1.0", "FIELD_INVALID"},
                   {"1e3", "FIELD_INVALID"},
                   {"\"1e3\"", "FIELD_INVALID"},
                   {"\"\"", "FIELD_INVALID"},
                   {"\" 5\"", "FIELD_INVALID"},
                   {"\"05\"", "FIELD_INVALID"},
                   {"\"+5\"", "FIELD_INVALID"},
                   {"\"0x5\"", "FIELD_INVALID"},
                   {"\"5\\u0000\"", "FIELD_INVALID"},
                   {"true", "FIELD_INVALID"},
                   {"[5]", "FIELD_INVALID"},
                   {"{}", "FIELD_INVALID"},
                   {"05", "JSON_INVALID"},
                   {"+5", "JSON_INVALID"},
                   {"0x5", "JSON_INVALID"},
                   {"-", "JSON_INVALID"},
                   {"1.", "JSON_INVALID"},
                   {"000000000000000000000000000000005", "JSON_INVALID"},
                   {"1000000000000000000000000000000000", "FIELD_INVALID"},
               });
}

TEST_CASE("32-bit integers and fences are numbers") {
  check_field<Priority>("priorityKey", {
                                           {"2147483647", "2147483647"},
                                           {"\"-2147483648\"", "-2147483648"},
                                           {"2147483648", "FIELD_INVALID"},
                                           {"-2147483649", "FIELD_INVALID"},
                                           {"0.5", "FIELD_INVALID"},
                                       });
  check_field<StartWorkflowExecutionResponse>("fence", {
                                                           {"9007199254740991", "9007199254740991"},
                                                           {"\"7\"", "7"},
                                                           {"7.0", "FIELD_INVALID"},
                                                       });
}

TEST_CASE("doubles are finite and written in their shortest form") {
  check_field<RetryPolicy>("backoffCoefficient", {
                                                     {"2", "2"},
                                                     {"2.0", "2"},
                                                     {"0.1", "0.1"},
                                                     {"\"1.5\"", "1.5"},
                                                     {"1e3", "1000"},
                                                     {"1e300", "1e+300"},
                                                     {"0.1000000000000000055", "0.1"},
                                                     {"1e999", "FIELD_INVALID"},
                                                     {"-1e999", "FIELD_INVALID"},
                                                     {"1e-999", "FIELD_INVALID"},
                                                     {"NaN", "JSON_INVALID"},
                                                     {"Infinity", "JSON_INVALID"},
                                                     {"-Infinity", "JSON_INVALID"},
                                                     {"\"NaN\"", "FIELD_INVALID"},
                                                     {"\"Infinity\"", "FIELD_INVALID"},
                                                     {"\"-inf\"", "FIELD_INVALID"},
                                                     {"\"\"", "FIELD_INVALID"},
                                                     {"\"1.5x\"", "FIELD_INVALID"},
                                                     {"true", "FIELD_INVALID"},
                                                     {"0.12345678901234567890123456789012",
                                                      "FIELD_INVALID"},  // 34 characters
                                                 });
  RetryPolicy policy;
  policy.backoff_coefficient = std::numeric_limits<double>::infinity();
  CHECK_THROWS_AS(to_json(policy), InvariantViolated);
  policy.backoff_coefficient = std::nan("");
  CHECK_THROWS_AS(to_json(policy), InvariantViolated);
}

TEST_CASE("booleans, strings, bytes, times and durations") {
  check_field<PermitRequest>("wait", {
                                         {"true", "true"},
                                         {"false", ""},
                                         {"\"true\"", "FIELD_INVALID"},
                                         {"1", "FIELD_INVALID"},
                                         {"tru", "JSON_INVALID"},
                                         {"True", "JSON_INVALID"},
                                         {"trueish", "JSON_INVALID"},
                                     });
  check_field<PermitRequest>("reason",
                             {
                                 {R"("a\u00e4\ud83d\ude00\n\/")", "\"aä😀\\n/\""},
                                 {"\"\x7F\"", "\"\x7F\""},
                                 {R"("\u2028\u2029<&>")", R"("\u2028\u2029<&>")"},
                                 {R"("\u0001\b\f\t\r\"\\")", R"("\u0001\u0008\u000c\t\r\"\\")"},
                                 {"\"'; DROP TABLE run; --\"", "\"'; DROP TABLE run; --\""},
                                 {R"("a\u0000b")", "FIELD_INVALID"},
                                 {"5", "FIELD_INVALID"},
                             });
  check_field<GetWorkflowExecutionHistoryRequest>("nextPageToken",
                                                  {
                                                      {"\"AAEC/w==\"", "\"AAEC/w==\""},
                                                      {"\"AAEC_w\"", "\"AAEC/w==\""},
                                                      {"\"\"", ""},
                                                      {"\"AAEC/w=\"", "FIELD_INVALID"},
                                                      {"\"*\"", "FIELD_INVALID"},
                                                      {"[1]", "FIELD_INVALID"},
                                                  });
  check_field<RecordActivityTaskHeartbeatResponse>(
      "permitDeadline", {
                            {"\"2026-08-01T14:00:00.1+02:00\"", "\"2026-08-01T12:00:00.100Z\""},
                            {"\"1970-01-01T00:00:00Z\"", ""},
                            {"\"soon\"", "FIELD_INVALID"},
                            {"1785585600", "FIELD_INVALID"},
                        });
  check_field<PermitRequest>("lease", {
                                          {"\"90s\"", "\"90s\""},
                                          {"\"0.5s\"", "\"0.500s\""},
                                          {"\"-1s\"", "\"-1s\""},
                                          {"\"90\"", "FIELD_INVALID"},
                                          {"\"1m\"", "FIELD_INVALID"},
                                          {"90", "FIELD_INVALID"},
                                          {"\"1000000000000s\"", "FIELD_INVALID"},
                                          {"\"NaNs\"", "FIELD_INVALID"},
                                      });
}

TEST_CASE("an enumerator is its full name; its short name and its number are read as well") {
  const std::string full = "\"WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE_FAILED_ONLY\"";
  check_field<Start>(
      "workflowIdReusePolicy",
      {
          {full, full},
          {"\"ALLOW_DUPLICATE_FAILED_ONLY\"", full},
          {"\"AllowDuplicateFailedOnly\"", full},
          {"2", full},
          {"0", ""},
          {"\"WORKFLOW_ID_REUSE_POLICY_UNSPECIFIED\"", ""},
          {"\"workflow_id_reuse_policy_allow_duplicate_failed_only\"", "ENUM_UNKNOWN"},
          {"\"ALLOW_DUPLICATE_FAILED\"", "ENUM_UNKNOWN"},
          {"\"\"", "ENUM_UNKNOWN"},
          {"\"2\"", "ENUM_UNKNOWN"},
          {"17", "ENUM_UNKNOWN"},
          {"-1", "ENUM_UNKNOWN"},
          {"1.5", "FIELD_INVALID"},
          {"true", "FIELD_INVALID"},
      });
  check_field<PermitRequest>("order", {
                                          {"\"fair\"", "\"fair\""},
                                          {"\"FAIR\"", "\"fair\""},
                                          {"1", "\"any\""},
                                          {"\"PERMIT_ORDER_FAIR\"", "ENUM_UNKNOWN"},
                                      });
  CHECK(outcome<PermitRequest>(R"({"order":"first"})") ==
        "ENUM_UNKNOWN: order must be one of any, fair.");
}

TEST_CASE("names on the wire are made of names in C++") {
  CHECK(type_name<WorkflowTaskFailedCause>() == "WorkflowTaskFailedCause");
  CHECK(type_name<event::TimerFired>() == "TimerFired");
  const auto upper = [](std::string_view name) {
    std::string text(64, ' ');
    NameBuffer buffer(text.data());
    buffer.put_upper_snake(name);
    return text.substr(0, buffer.size());
  };
  CHECK(upper("WorkflowTaskFailedCause") == "WORKFLOW_TASK_FAILED_CAUSE");
  CHECK(upper("wait_timed_out") == "WAIT_TIMED_OUT");
  CHECK(outcome<RespondWorkflowTaskFailedRequest>(R"({"cause":"NonDeterministicError"})") ==
        R"({"cause":"WORKFLOW_TASK_FAILED_CAUSE_NON_DETERMINISTIC_ERROR"})");
}

TEST_CASE("an unknown field is refused with its path") {
  check_rows<Start>({
      {R"({"taskQueue":{"nmae":"q"}})",
       "FIELD_UNKNOWN: taskQueue.nmae is not a field; did you mean name?"},
      {R"({"task_queue":{"Name":"q"}})",
       "FIELD_UNKNOWN: task_queue.Name is not a field; did you mean name?"},
      {R"({"permit":{"labels":{"a":1}}})",
       "FIELD_INVALID: permit.labels.a must be a string, not a number."},
      {R"({"permit":{"slots":["a",null]}})",
       "FIELD_INVALID: permit.slots[1] must be a string, not null."},
      {R"({"workflow_Id":"a"})",
       "FIELD_UNKNOWN: workflow_Id is not a field; did you mean workflowId?"},
      {R"({"":1})", "FIELD_UNKNOWN: \"\" is not a field; leave it out."},
      {R"({"a\nb\u001b[2J":1})", "FIELD_UNKNOWN: a?b?[2J is not a field; leave it out."},
      {"[]", "FIELD_INVALID: The body must be a JSON object, not an array."},
      {"null", "FIELD_INVALID: The body must be a JSON object, not null."},
      {"\"{}\"", "FIELD_INVALID: The body must be a JSON object, not a string."},
  });
  for (const std::string key :
       {"status", "fence", "runId", "run_id", "parent", "", "_", "__", "workflowId_", "_workflowId",
        "workflow__id", "namespace_", "Namespace", "workflowid", "unused"}) {
    CAPTURE(key);
    CHECK(reason<Start>("{\"" + key + "\":1}") == "FIELD_UNKNOWN");
  }
  const std::string long_key = repeat("ä", 5000);
  CHECK(outcome<Start>("{\"" + long_key + "\":1}") ==
        "FIELD_UNKNOWN: " + repeat("ä", 32) + "… is not a field; leave it out.");
}

TEST_CASE("a key may be escaped, and stands once in its object however it is spelled") {
  CHECK(outcome<Start>(R"({"workflow\u0049d":"a"})") == R"({"workflowId":"a"})");
  for (const std::string text :
       {R"({"workflowId":"a","workflowId":"a"})", R"({"workflowId":"a","workflow_id":"b"})",
        R"({"workflowId":null,"workflowId":"b"})", R"({"workflow_id":"a","workflow\u005fid":"b"})",
        R"({"links":[],"links":[]})", R"({"links":[{"a":1,"a":2}]})",
        R"({"memo":{"fields":{"a":1,"a":1}}})", R"({"memo":{"fields":{"a":1,"\u0061":1}}})",
        R"({"input":[{"a":1,"a":2}]})", R"({"input":[[{"b":{"a":1,"c":3,"\u0061":2}}]]})",
        R"({"input":[{"metadata":{"encoding":"YQ==","encoding":"YQ=="}}]})",
        R"({"input":{"payloads":[],"payloads":[]}})",
        R"({"input":{"payloads":[{"data":"","data":""}]}})"}) {
    CAPTURE(text);
    CHECK(reason<Start>(text) == "JSON_DUPLICATE_KEY");
  }
  std::string wide = "{\"input\":[{\"a\":0";
  for (int i = 0; i < 5000; ++i) wide += ",\"key" + std::to_string(i) + "\":0";
  CHECK(reason<Start>(wide + "}]}") == "accepted");
  CHECK(outcome<Start>(wide + ",\"key777\":0}]}") ==
        "JSON_DUPLICATE_KEY: The key \"key777\" is twice in one object (at input[0]); leave one "
        "out.");
}

TEST_CASE("what we do not offer is refused unless it says nothing") {
  for (const std::string value : {"null", "\"\"", "0", "0.0", "-0", "0e5", "false", "{}", "{ }",
                                  "[]", "[ \n]", "\"0s\"", "\"0\""}) {
    CAPTURE(value);
    CHECK(reason<Start>("{\"cronSchedule\":" + value + "}") == "accepted");
  }
  for (const std::string value :
       {"\"* * * * *\"", "1", "0.01", "true", "{\"a\":0}", "[0]", "\"1s\"", "\" \""}) {
    CAPTURE(value);
    CHECK(reason<Start>("{\"cron_schedule\":" + value + "}") == "FIELD_UNSUPPORTED");
  }
  CHECK(reason<Start>(R"({"cronSchedule":{"a":}})") == "JSON_INVALID");
  CHECK(outcome<Start>(R"({"links":[{"a":[1,"x",null]}],"requestEagerExecution":7})") == "{}");
  try {
    read_json<Start>(R"({"retryPolicy":{"maximumAttempts":3}})");
    FAIL("not refused");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::unimplemented);
    CHECK(error.message() == "retryPolicy is not offered; leave it out.");
  }
}

TEST_CASE("events and commands: the attributes tell which, and a type must agree") {
  check_rows<Command>({
      {R"({"start_timer_command_attributes":{"timer_id":"1"}})",
       R"({"commandType":"COMMAND_TYPE_START_TIMER","startTimerCommandAttributes":{"timerId":"1"}})"},
      {R"({"startTimerCommandAttributes":{},"commandType":"StartTimer","userMetadata":{"summary":1}})",
       R"({"commandType":"COMMAND_TYPE_START_TIMER","startTimerCommandAttributes":{},"userMetadata":{"summary":1}})"},
      {R"({"commandType":"COMMAND_TYPE_CANCEL_TIMER","startTimerCommandAttributes":{}})",
       "FIELD_INVALID: The body has attributes that do not fit its commandType; they are those of "
       "COMMAND_TYPE_START_TIMER."},
      {R"({"commandType":"COMMAND_TYPE_START_TIMER"})",
       "FIELD_INVALID: The body must have startTimerCommandAttributes."},
      {R"({"commandType":"COMMAND_TYPE_START_TIMER","startTimerCommandAttributes":null})",
       "FIELD_INVALID: The body must have startTimerCommandAttributes."},
      {"{}",
       "FIELD_INVALID: The body must have attributes, such as "
       "scheduleActivityTaskCommandAttributes."},
      {R"({"commandType":"COMMAND_TYPE_PROTOCOL_MESSAGE"})",
       "COMMAND_UNKNOWN: commandType is a type that does not exist here; one that does is "
       "COMMAND_TYPE_SCHEDULE_ACTIVITY_TASK."},
      {R"({"protocolMessageCommandAttributes":{}})",
       "COMMAND_UNKNOWN: protocolMessageCommandAttributes is for a type that does not exist here."},
      {R"({"startTimerCommandAttributes":{},"cancelTimerCommandAttributes":{}})",
       "FIELD_INVALID: cancelTimerCommandAttributes must be left out: there are attributes "
       "already."},
      {R"({"startTimerCommandAttributes":{},"start_timer_command_attributes":{}})",
       "JSON_DUPLICATE_KEY: The key \"start_timer_command_attributes\" is twice in one object; "
       "leave one out."},
      {R"({"startTimerCommandAttributes":{},"userMetaData":{}})",
       "FIELD_UNKNOWN: userMetaData is not a field; did you mean userMetadata?"},
      {R"({"commandType":null,"startTimerCommandAttributes":{},"cancelTimerCommandAttributes":null})",
       R"({"commandType":"COMMAND_TYPE_START_TIMER","startTimerCommandAttributes":{}})"},
      {R"({"commandType":null,"commandType":null})",
       "JSON_DUPLICATE_KEY: The key \"commandType\" is twice in one object; leave one out."},
      {R"({"startTimerCommandAttributes":null,"startTimerCommandAttributes":{}})",
       "JSON_DUPLICATE_KEY: The key \"startTimerCommandAttributes\" is twice in one object; "
       "leave one out."},
      {R"({"commandType":5,"startTimerCommandAttributes":{}})",
       "FIELD_INVALID: commandType must be a string, not a number."},
  });
  CHECK(outcome<RespondWorkflowTaskCompletedRequest>(
            R"({"commands":[{"startTimerCommandAttributes":{}},)"
            R"({"startTimerCommandAttributes":{"startToFireTimeout":"5"}}]})") ==
        "FIELD_INVALID: commands[1].startTimerCommandAttributes.startToFireTimeout must be a "
        "duration in seconds, as in \"90s\" or \"0.500s\".");
  check_rows<Event>({
      {R"({"eventId":"7","eventTime":"2026-08-01T12:00:00Z","version":"1","taskId":"9","links":[],)"
       R"("workerMayIgnore":true,"eventType":"TimerFired","timerFiredEventAttributes":{}})",
       R"({"eventId":"7","eventTime":"2026-08-01T12:00:00Z","eventType":"EVENT_TYPE_TIMER_FIRED",)"
       R"("timerFiredEventAttributes":{}})"},
      {R"({"eventType":"EVENT_TYPE_NOTHING","timerFiredEventAttributes":{}})",
       "ENUM_UNKNOWN: eventType is a type that does not exist here; one that does is "
       "EVENT_TYPE_WORKFLOW_EXECUTION_STARTED."},
      {R"({"startChildWorkflowExecutionFailedEventAttributes":{"permitFailure":{"kind":"taken"}}})",
       R"({"eventType":"EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_FAILED",)"
       R"("startChildWorkflowExecutionFailedEventAttributes":{"permitFailure":{"kind":"TAKEN"}}})"},
      {R"({"timerFiredEventAttributes":{"timer":"1"}})",
       "FIELD_UNKNOWN: timerFiredEventAttributes.timer is not a field; did you mean timerId?"},
      {R"({"permit_failed":1})", "FIELD_UNKNOWN: permit_failed is not a field; leave it out."},
  });
}

TEST_CASE("history is spliced into a response as it is, and taken out as it is") {
  GetWorkflowExecutionHistoryResponse response;
  CHECK(to_json(response) == "{}");
  response.history.events.text = "[{\"eventId\": \"1\"}]";
  CHECK(to_json(response) == R"({"history":{"events":[{"eventId": "1"}]}})");
  const auto copy = read_json<GetWorkflowExecutionHistoryResponse>(to_json(response));
  CHECK(copy.history.events.text == response.history.events.text);
}

TEST_CASE("a string that is not UTF-8 is written as valid JSON all the same") {
  const Row rows[] = {
      {"\xFF", "\\ufffd"},
      {"a\xC3", "a\\ufffd"},
      {"\xC0\xAF/", "\\ufffd\\ufffd/"},
      {"\xED\xA0\x80", "\\ufffd\\ufffd\\ufffd"},
      {std::string("a\0b", 3), "a\\ufffdb"},
      {"\xE2\x80\xA8\xE2\x80\xA9\xE2\x80\xAA", "\\u2028\\u2029\xE2\x80\xAA"},
      {"0123456\"789abcdef\\", "0123456\\\"789abcdef\\\\"},
  };
  for (const Row& row : rows) {
    std::string out;
    append_json_string(row.in, out);
    CHECK(out == '"' + row.out + '"');
  }
}

}  // namespace permit
