// Payloads: what shorthand means, and when a payload is written in it.
#include <doctest/doctest.h>

#include <string>
#include <string_view>

#include "orchestrator/protocol/error.h"
#include "orchestrator/protocol/json.h"
#include "orchestrator/protocol/request.h"

namespace permit {
namespace {

Payload payload_of(std::string encoding, std::string data) {
  return Payload{{{"encoding", Bytes{std::move(encoding)}}}, Bytes{std::move(data)}};
}

Payload message_of(std::string type, std::string data) {
  return Payload{{{"encoding", Bytes{"json/protobuf"}}, {"messageType", Bytes{std::move(type)}}},
                 Bytes{std::move(data)}};
}

std::string shorthand(const Payload& payload) { return to_json(payload, PayloadForm::shorthand); }

std::string reason(std::string_view text) {
  try {
    read_json<Payloads>(text);
    return "accepted";
  } catch (const Error& error) {
    return error.reason();
  }
}

}  // namespace

TEST_CASE("shorthand means a payload, its text kept as it came") {
  const struct {
    std::string text;
    Payload payload;
  } rows[] = {
      {"null", payload_of("binary/null", "")},
      {" \n1.50\t", payload_of("json/plain", "1.50")},
      {"1e999", payload_of("json/plain", "1e999")},
      {R"("\u0000\u00e4ä")", payload_of("json/plain", R"("\u0000\u00e4ä")")},
      {R"({ "b" : 1, "a": [ ] })", payload_of("json/plain", R"({ "b" : 1, "a": [ ] })")},
      {"{}", payload_of("json/plain", "{}")},
      {R"([null])", payload_of("json/plain", "[null]")},
      // Long form.
      {R"({"metadata":{"encoding":"YmluYXJ5L3BsYWlu"},"data":"AP8="})",
       payload_of("binary/plain", std::string("\0\xFF", 2))},
      {R"({"data":"AP8","metadata":{"encoding":"YmluYXJ5L3BsYWlu"}})",
       payload_of("binary/plain", std::string("\0\xFF", 2))},
      {R"({"metadata":{"encoding":"YmluYXJ5L251bGw="}})", payload_of("binary/null", "")},
      {R"({"metadata":{"encoding":"YmluYXJ5L3BsYWlu"},"data":""})", payload_of("binary/plain", "")},
      {R"({"metadata":{"a":"Yg==","encoding":"Yw=="},"data":"ZA=="})",
       Payload{{{"encoding", Bytes{"c"}}, {"a", Bytes{"b"}}}, Bytes{"d"}}},
      // Almost long form, so a value of the user's.
      {R"({"metadata":{"encoding":"utf8"}})",
       payload_of("json/plain", R"({"metadata":{"encoding":"utf8"}})")},
      {R"({"metadata":{"encoding":"utf-8"},"data":"x"})",
       payload_of("json/plain", R"({"metadata":{"encoding":"utf-8"},"data":"x"})")},
      {R"({"metadata":{"encoding":"YQ=="},"data":"*"})",
       payload_of("json/plain", R"({"metadata":{"encoding":"YQ=="},"data":"*"})")},
      {R"({"metadata":{"encoding":"YQ=="},"data":"YQ==","a":1})",
       payload_of("json/plain", R"({"metadata":{"encoding":"YQ=="},"data":"YQ==","a":1})")},
      {R"({"metadata":{"encoding":5},"data":"YQ=="})",
       payload_of("json/plain", R"({"metadata":{"encoding":5},"data":"YQ=="})")},
      {R"({"metadata":{},"data":"YQ=="})",
       payload_of("json/plain", R"({"metadata":{},"data":"YQ=="})")},
      {R"({"metadata":null,"data":null})",
       payload_of("json/plain", R"({"metadata":null,"data":null})")},
      {R"({"data":"YQ=="})", payload_of("json/plain", R"({"data":"YQ=="})")},
      {R"({"metadata":{"encoding":"\u0000"},"data":"YQ=="})",
       payload_of("json/plain", R"({"metadata":{"encoding":"\u0000"},"data":"YQ=="})")},
      {R"({"metadata":{"encoding":"YQ==","\u0000":"YQ=="},"data":"YQ=="})",
       payload_of("json/plain",
                  R"({"metadata":{"encoding":"YQ==","\u0000":"YQ=="},"data":"YQ=="})")},
      // Messages.
      {R"({"_protoMessageType":"my.Type","a": 1})", message_of("my.Type", R"({"a": 1})")},
      {R"({ "_protoMessageType" : "T" , "a": 1 })", message_of("T", R"({ "a": 1 })")},
      {R"({"a": 1, "_protoMessageType":"T", "b":2})", message_of("T", R"({"a": 1, "b":2})")},
      {R"({"a": 1, "_protoMessageType":"T" })", message_of("T", R"({"a": 1 })")},
      {R"({ "_protoMessageType":"T" })", message_of("T", "{ }")},
      {R"({"_protoMessageType":""})", payload_of("json/plain", R"({"_protoMessageType":""})")},
      {R"({"_protoMessageType":5})", payload_of("json/plain", R"({"_protoMessageType":5})")},
      {R"(["_protoMessageType"])", payload_of("json/plain", R"(["_protoMessageType"])")},
      {R"({"a":{"_protoMessageType":"T"}})",
       payload_of("json/plain", R"({"a":{"_protoMessageType":"T"}})")},
  };
  for (const auto& row : rows) {
    CAPTURE(row.text);
    CHECK(read_json<Payload>(row.text) == row.payload);
    CHECK(read_json<Payloads>("[" + row.text + "]") == Payloads{{row.payload}});
    CHECK(read_json<Memo>("{\"fields\":{\"x\":" + row.text + "}}").fields.at("x") == row.payload);
    CHECK(read_json<Payload>(shorthand(row.payload)) == row.payload);
    CHECK(read_json<Payload>(to_json(row.payload)) == row.payload);
  }
}

TEST_CASE("null is a payload where one can be, and no list where a list can be") {
  CHECK(read_json<Failure>(R"({"encodedAttributes":null})").encoded_attributes ==
        payload_of("binary/null", ""));
  CHECK(read_json<Memo>(R"({"fields":{"a":null}})").fields.at("a") ==
        payload_of("binary/null", ""));
  CHECK(!read_json<StartWorkflowExecutionRequest>(R"({"input":null})").input);
}

TEST_CASE("a list of payloads is an array of values, or the long form") {
  CHECK(read_json<Payloads>("null") == Payloads{});
  CHECK(read_json<Payloads>("[]") == Payloads{});
  CHECK(read_json<Payloads>("{}") == Payloads{});
  CHECK(read_json<Payloads>(R"({"payloads":[{"data":"YQ=="},{}]})") ==
        Payloads{{Payload{{}, Bytes{"a"}}, Payload{}}});
  CHECK(reason(R"({"payloads":["a"]})") == "FIELD_INVALID");
  CHECK(reason(R"({"payloads":[null]})") == "FIELD_INVALID");
  CHECK(reason(R"({"payloads":[{"metadata":{"encoding":"*"}}]})") == "FIELD_INVALID");
  CHECK(reason(R"({"payloads":{}})") == "FIELD_INVALID");
  CHECK(reason(R"({"a":1})") == "FIELD_INVALID");
  CHECK(reason("\"a\"") == "FIELD_INVALID");
  CHECK(reason("1") == "FIELD_INVALID");
  StartWorkflowExecutionRequest request;
  CHECK(to_json(request) == "{}");
  request.input.emplace();
  CHECK(to_json(request) == R"({"input":{}})");
  CHECK(to_json(request, PayloadForm::shorthand) == R"({"input":[]})");
}

TEST_CASE("a payload is written in shorthand only if it reads back the same") {
  const std::string plain = "\"metadata\":{\"encoding\":\"anNvbi9wbGFpbg==\"}";
  CHECK(shorthand(payload_of("binary/null", "")) == "null");
  CHECK(shorthand(json_payload("{\"a\":\n1}")) == "{\"a\":\n1}");
  CHECK(shorthand(message_of("T", "{\"a\":1}")) == R"({"_protoMessageType":"T","a":1})");
  CHECK(shorthand(message_of("T", "{ }")) == R"({"_protoMessageType":"T" })");
  CHECK(shorthand(json_payload("null")) == "{" + plain + R"(,"data":"bnVsbA=="})");
  CHECK(shorthand(json_payload("")) == "{" + plain + R"(,"data":""})");
  for (const std::string data :
       {"null", "", " 1", "1 ", "{", "1}", "1,2", "NaN", "\"\xFF\"", "{\"a\":1,\"a\":2}",
        R"({"metadata":{"encoding":"YQ=="},"data":"YQ=="})", R"({"_protoMessageType":"T"})"}) {
    CAPTURE(data);
    CHECK(shorthand(json_payload(data)) == to_json(json_payload(data)));
    CHECK(read_json<Payload>(shorthand(json_payload(data))) == json_payload(data));
  }
  const Payload others[] = {
      payload_of("binary/null", "x"),
      payload_of("binary/plain", "1"),
      Payload{{{"encoding", Bytes{"json/plain"}}, {"more", Bytes{"x"}}}, Bytes{"1"}},
      message_of("T", "[1]"),
      message_of("T", ""),
      message_of("T", R"({"_protoMessageType":"U"})"),
      message_of("", "{}"),
      message_of("\xFF", "{}"),
      message_of(std::string(1, '\0'), "{}"),
      payload_of("json/protobuf", "{}"),
  };
  for (const Payload& other : others) {
    CHECK(shorthand(other) == to_json(other));
    CHECK(read_json<Payload>(to_json(other)) == other);
  }
}

TEST_CASE("one payload without shorthand puts its whole list in the long form") {
  const Payloads list{{json_payload("1"), payload_of("binary/plain", "x")}};
  CHECK(to_json(list, PayloadForm::shorthand) == to_json(list));
  CHECK(read_json<Payloads>(to_json(list)) == list);
  Memo memo;
  memo.fields["a"] = json_payload("1");
  memo.fields["b"] = payload_of("binary/plain", "x");
  CHECK(to_json(memo, PayloadForm::shorthand) ==
        R"({"fields":{"a":1,"b":{"metadata":{"encoding":"YmluYXJ5L3BsYWlu"},"data":"eA=="}}})");
}

}  // namespace permit
