// What is written reads back as the same value: for every message filled with something in every
// field, and for whatever a few thousand damaged messages still mean.
#include <doctest/doctest.h>

#include <boost/mp11.hpp>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "orchestrator/protocol/error.h"
#include "orchestrator/protocol/json.h"
#include "orchestrator/protocol/json_text.h"
#include "tests/support/reflect.h"

namespace permit {
namespace {

using test::Filler;
using test::same;

template <class T>
void check_round_trip(const T& value) {
  const std::string text = to_json(value);
  CAPTURE(text);
  const T copy = read_json<T>(text);
  CHECK(same(value, copy));
  CHECK(to_json(copy) == text);
  const std::string shorthand = to_json(value, PayloadForm::shorthand);
  CAPTURE(shorthand);
  CHECK(same(value, read_json<T>(shorthand)));
}

// {"runId":…} as {"run_id":…}, at every depth.
std::string with_snake_case_keys(const std::string& text) {
  std::string out;
  std::size_t key = 0;  // where the last string began in `out`
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    out += text[i];
    if (text[i] == '\\') out += text[++i];
    if (text[i] != '"' || (i > 0 && text[i - 1] == '\\')) continue;
    in_string = !in_string;
    if (in_string) key = out.size();
    if (in_string || text[i + 1] != ':') continue;
    for (std::size_t at = out.size(); at-- > key;) {
      if (out[at] < 'A' || out[at] > 'Z') continue;
      out[at] = static_cast<char>(out[at] - 'A' + 'a');
      out.insert(at, 1, '_');
    }
  }
  return out;
}

bool is_utf8(std::string_view text) {
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at != end) {
    const std::size_t size = utf8_size(at, end);
    if (size == 0) return false;
    at += size;
  }
  return true;
}

class Damage {
 public:
  explicit Damage(std::uint32_t seed) : random_(seed) {}

  std::string apply(std::string text, std::string_view other) {
    for (std::size_t count = 1 + below(3); count > 0; --count) change(text, other);
    return text;
  }

 private:
  std::size_t below(std::size_t limit) { return random_() % limit; }

  void change(std::string& text, std::string_view other) {
    static const std::vector<std::string> pieces = {
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"",
        "\\",
        "0",
        "-",
        "1e999",
        "null",
        "true",
        "{}",
        "[]",
        " ",
        "\\u0000",
        "\\ud800",
        "\\ud83d\\ude00",
        "\xFF",
        "\xC3\xA4",
        "\xE2\x80\xA8",
        "\"\":",
        "\"_protoMessageType\":\"X\",",
        "\"metadata\":{\"encoding\":\"anNvbi9wbGFpbg==\"}",
        "\"data\":\"\",",
        "\"a\":1,",
        "1.5",
        "99999999999999999999",
        std::string(1, '\0')};
    const std::size_t at = below(text.size() + 1);
    const std::size_t size = below(1 + std::min<std::size_t>(text.size() - at, 20));
    switch (below(6)) {
      case 0:
        text.insert(at, pieces[below(pieces.size())]);
        break;
      case 1:
        text.replace(at, size, pieces[below(pieces.size())]);
        break;
      case 2:
        text.erase(at, size);
        break;
      case 3:
        text.insert(below(text.size() + 1), text.substr(at, size));
        break;
      case 4:
        text.insert(at, other.substr(below(other.size()), below(40)));
        break;
      default:
        if (at < text.size()) text[at] = static_cast<char>(below(256));
    }
  }

  std::mt19937 random_;
};

// Returns whether the damaged text still meant something.
template <class T>
bool check_damaged(const std::string& text) {
  T value;
  try {
    value = read_json<T>(text);
  } catch (const Error& error) {
    CHECK(!error.reason().empty());
    CHECK(is_utf8(error.message()));
    return false;
  }
  const std::string written = to_json(value);
  const T copy = read_json<T>(written);
  CHECK(same(value, copy));
  CHECK(to_json(copy) == written);
  CHECK(same(value, read_json<T>(to_json(value, PayloadForm::shorthand))));
  return true;
}

template <class T>
void damage(const std::vector<std::string>& texts, std::uint32_t seed) {
  constexpr int rounds = 4000;
  Damage damage(seed);
  int accepted = 0;
  for (int i = 0; i < rounds; ++i) {
    const auto& text = texts[static_cast<std::size_t>(i) % texts.size()];
    const auto& other = texts[static_cast<std::size_t>(i + 1) % texts.size()];
    const std::string damaged = damage.apply(text, other);
    CAPTURE(damaged);
    accepted += check_damaged<T>(damaged) ? 1 : 0;
  }
  CHECK(accepted > rounds / 100);
  CHECK(accepted < rounds * 9 / 10);
}

}  // namespace

TEST_CASE("every message, with something in every field, reads back as it was written") {
  Filler filler;
  boost::mp11::mp_for_each<boost::mp11::mp_transform<boost::mp11::mp_identity, test::Messages>>(
      [&](auto identity) {
        using T = typename decltype(identity)::type;
        check_round_trip(filler.make<T>());
        if (!std::is_same_v<T, Payload>) check_round_trip(T{});  // {} is a user's value
      });
}

TEST_CASE("every event and every command, filled and empty, reads back as it was written") {
  Filler filler;
  boost::mp11::mp_for_each<boost::mp11::mp_iota_c<std::variant_size_v<EventVariant>>>(
      [&](auto index) {
        Event event = filler.make<Event>();
        event.attributes.emplace<index>();
        check_round_trip(event);
        filler.fill(std::get<index>(event.attributes));
        check_round_trip(event);
      });
  boost::mp11::mp_for_each<boost::mp11::mp_iota_c<std::variant_size_v<CommandVariant>>>(
      [&](auto index) {
        Command command = filler.make<Command>();
        command.attributes.emplace<index>();
        check_round_trip(command);
        filler.fill(std::get<index>(command.attributes));
        check_round_trip(command);
      });
}

TEST_CASE("every field is read under its snake_case name too") {
  Filler filler;
  boost::mp11::mp_for_each<boost::mp11::mp_transform<boost::mp11::mp_identity, test::Messages>>(
      [&](auto identity) {
        using T = typename decltype(identity)::type;
        const T value = filler.make<T>();
        const std::string text = with_snake_case_keys(to_json(value));
        CAPTURE(text);
        CHECK(same(value, read_json<T>(text)));
      });
}

TEST_CASE("stored events become shorthand") {
  Filler filler;
  std::string stored;
  std::vector<Event> events;
  for (int i = 0; i < 50; ++i) {
    events.push_back(filler.make<Event>());
    if (i > 0) stored += ',';
    write_json(events.back(), stored);
  }
  const std::string shorthand = events_to_shorthand(stored);
  CHECK("[" + shorthand + "]" == to_json(events, PayloadForm::shorthand));
  CHECK(same(events, read_json<std::vector<Event>>("[" + shorthand + "]")));
  CHECK(events_to_shorthand("").empty());
}

TEST_CASE("a damaged message is refused, or means what it then reads back as") {
  const std::string start =
      R"({"namespace":"default","workflowId":"train-1","workflowType":{"name":"Train"},)"
      R"("task_queue":{"name":"gpu","kind":"Normal"},"input":["x",{"a":[1,2.50,null]},null,)"
      R"({"_protoMessageType":"X","b":1}],"workflowExecutionTimeout":"3600s","memo":{"fields":)"
      R"({"note":"hi","n":{"metadata":{"encoding":"anNvbi9wbGFpbg=="},"data":"MQ=="}}},)"
      R"("retryPolicy":null,"permit":{"pool":"gpu","count":2,"lease":"90.5s","order":"fair",)"
      R"("labels":{"team":"a"},"slots":["0","1"]},"priority":{"fairnessWeight":1.5}})";
  Filler filler;
  const auto texts = [&]<class T>(T) {
    std::vector<std::string> list;
    for (int i = 0; i < 60; ++i) {
      const T value = filler.make<T>();
      list.push_back(to_json(value, i % 2 ? PayloadForm::shorthand : PayloadForm::long_form));
    }
    return list;
  };
  damage<StartWorkflowExecutionRequest>({start, R"({"workflowId":"a","input":[{}]})"}, 1);
  damage<Command>(texts(Command()), 2);
  damage<Event>(texts(Event()), 3);
  damage<Payloads>(
      {R"([{"metadata":{"encoding":"YmluYXJ5L251bGw="}},{"a":"b"}])",
       R"({"payloads":[{"metadata":{"encoding":"anNvbi9wbGFpbg=="},"data":"MQ=="}]})",
       R"([{"x":1,"_protoMessageType":"X"},{"_protoMessageType":"X"},"\u0000",1e999])"},
      4);
  damage<Failure>(texts(Failure()), 5);
}

}  // namespace permit
