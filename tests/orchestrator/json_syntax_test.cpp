// Texts that are not JSON, or more of it than we take.
#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

#include "orchestrator/protocol/error.h"
#include "orchestrator/protocol/json.h"
#include "orchestrator/protocol/request.h"

namespace permit {
namespace {

template <class T = StartWorkflowExecutionRequest>
std::string outcome(std::string_view text) {
  try {
    read_json<T>(text);
    return "accepted";
  } catch (const Error& error) {
    return error.reason() + ": " + error.message();
  }
}

template <class T = StartWorkflowExecutionRequest>
std::string reason(std::string_view text) {
  const std::string all = outcome<T>(text);
  return all.substr(0, all.find(':'));
}

std::string repeat(std::string_view text, int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out += text;
  return out;
}

// Not JSON, on their own or in an array or object.
constexpr std::string_view bad_values[] = {"]",
                                           "}",
                                           "nul",
                                           "nulll",
                                           "NULL",
                                           "undefined",
                                           "NaN",
                                           "Infinity",
                                           "-Infinity",
                                           "-",
                                           "01",
                                           "-01",
                                           "1.",
                                           ".5",
                                           "1e",
                                           "1e+",
                                           "+1",
                                           "0x1",
                                           "1_000",
                                           "1 2",
                                           "'a'",
                                           "a",
                                           "\"",
                                           "\"a",
                                           "\"\\\"",
                                           "\"\\x\"",
                                           "\"\\u12\"",
                                           "\"\\u12G4\"",
                                           "\"\\ud800\"",
                                           "\"\\udc00\"",
                                           "\"\\ud800\\u0041\"",
                                           "\"\\ud800x\"",
                                           "\"\\ud800\\ud800\"",
                                           "\"a\nb\"",
                                           "\"a\tb\"",
                                           "\"\x1F\"",
                                           "\"\x80\"",
                                           "\"\xC3\"",
                                           "\"\xC3\x28\"",
                                           "\"\xC1\xBF\"",
                                           "\"\xE0\x80\xAF\"",
                                           "\"\xED\xA0\x80\"",
                                           "\"\xF0\x80\x80\xAF\"",
                                           "\"\xF4\x90\x80\x80\"",
                                           "\"\xF8\x88\x80\x80\x80\"",
                                           "\"\xFF\"",
                                           "[",
                                           "[1",
                                           "[1,",
                                           "[1,]",
                                           "[,1]",
                                           "[1 2]",
                                           "[1}",
                                           "{",
                                           "{\"a\"",
                                           "{\"a\":",
                                           "{\"a\":1",
                                           "{\"a\":1,",
                                           "{\"a\":1,}",
                                           "{,}",
                                           "{a:1}",
                                           "{'a':1}",
                                           "{1:1}",
                                           "{\"a\" 1}",
                                           "{\"a\":1 \"b\":2}",
                                           "{\"a\":1]",
                                           "{\"a\":}",
                                           "/**/1",
                                           "1//",
                                           "#",
                                           "\f1",
                                           "\xC2\xA0",
                                           "\v1"};

}  // namespace

TEST_CASE("a text that is not JSON is refused with the place and the cause") {
  const struct {
    std::string text;
    std::string outcome;
  } rows[] = {
      {"", "JSON_INVALID: The body is empty; send a JSON object."},
      {" \r\n\t", "JSON_INVALID: The body is empty; send a JSON object."},
      {"{",
       "JSON_INVALID: The JSON is not valid at byte 1: the text ends where a value should be."},
      {"{}x",
       "JSON_INVALID: The JSON is not valid at byte 2: text follows after the end of the "
       "value."},
      {"\xEF\xBB\xBF{}",
       "JSON_INVALID: The JSON is not valid at byte 0: a value should be here; "
       "send UTF-8 without a byte order mark."},
      {"{\"workflowId\":\"\xC0\xAF\"}",
       "JSON_INVALID: The JSON is not valid at byte 15: this is "
       "not UTF-8."},
  };
  for (const auto& row : rows) CHECK(outcome(row.text) == row.outcome);
}

TEST_CASE("the grammar is RFC 8259's and nothing more, in our fields and in users' values") {
  for (const std::string_view bad : bad_values) {
    const std::string value(bad);
    CAPTURE(value);
    CHECK(reason("{\"links\":" + value + "}") == "JSON_INVALID");
    CHECK(reason("{\"input\":[0," + value + "]}") == "JSON_INVALID");
    CHECK(reason("{\"memo\":{\"fields\":{\"a\":" + value + "}}}") == "JSON_INVALID");
  }
  CHECK(reason("{\"links\":\"" + std::string(1, '\0') + "\"}") == "JSON_INVALID");
  for (const std::string value : {"\"\\u0000\"", "\"\\ud83d\\ude00\"", "\"\xF0\x9F\x98\x80\"",
                                  "\"\xEF\xBF\xBF\"", "-0", "0.0", "1e999", "-1E-5", "[ ]", "{ }",
                                  " \t\r\n1 ", "123456789012345678901234567890123456789"}) {
    CAPTURE(value);
    CHECK(reason("{\"links\":" + value + "}") == "accepted");
    CHECK(reason("{\"input\":[" + value + "]}") == "accepted");
  }
}

TEST_CASE("nesting and the number of values are limited") {
  const auto nested = [](int depth) {
    return "{\"input\":[" + repeat("[", depth) + repeat("]", depth) + "]}";
  };
  CHECK(reason(nested(62)) == "accepted");
  CHECK(outcome(nested(63)) ==
        "JSON_TOO_DEEP: The JSON nests deeper than 64 levels; send it flatter.");
  CHECK(reason(repeat("[", 1'000'000)) == "FIELD_INVALID");
  CHECK(reason("{\"links\":" + repeat("[", 1'000'000)) == "JSON_TOO_DEEP");
  CHECK(reason("{\"links\":" + repeat("{\"a\":", 1'000'000)) == "JSON_TOO_DEEP");
  const auto failed = [](int causes) {
    return reason<RespondActivityTaskFailedRequest>(
        "{\"failure\":" + repeat("{\"cause\":", causes) + "{}" + repeat("}", causes) + "}");
  };
  CHECK(failed(62) == "accepted");
  CHECK(failed(63) == "JSON_TOO_DEEP");

  // The object, the array, and its elements.
  CHECK(reason("{\"links\":[0" + repeat(",0", 49'997) + "]}") == "accepted");
  CHECK(outcome("{\"links\":[0" + repeat(",0", 49'998) + "]}") ==
        "JSON_TOO_LARGE: The JSON has more than 50000 values; send less at once.");
  CHECK(reason("{\"input\":[[]" + repeat(",[]", 499'999) + "]}") == "JSON_TOO_LARGE");
  std::string members = "{\"memo\":{\"fields\":{";
  for (int i = 0; i < 50'001; ++i) members += (i > 0 ? ",\"" : "\"") + std::to_string(i) + "\":0";
  CHECK(reason(members + "}}}") == "JSON_TOO_LARGE");
}

TEST_CASE("what a server wrote may be as long as it likes and nest deeper") {
  const std::string event = R"({"eventId":"1","timerFiredEventAttributes":{"timerId":"1"}})";
  CHECK(reason<std::vector<Event>>("[" + event + repeat("," + event, 19'999) + "]") == "accepted");
  CHECK(reason<GetWorkflowExecutionHistoryResponse>("{\"history\":{\"events\":[" + event +
                                                    repeat("," + event, 19'999) + "]}}") ==
        "accepted");
  const std::string failure = repeat("{\"cause\":", 63) + "{}" + repeat("}", 63);
  CHECK(reason<Event>("{\"workflowExecutionFailedEventAttributes\":{\"failure\":" + failure +
                      "}}") == "accepted");
  CHECK(reason<Event>("{\"workflowExecutionFailedEventAttributes\":{\"failure\":" +
                      repeat("{\"cause\":", 126) + "{}" + repeat("}", 126) + "}}") ==
        "JSON_TOO_DEEP");
}

}  // namespace permit
