// The reader below the codec, in both of its ways: skipping a value and walking through it must
// agree, and a tree-building parser that is not ours must take what it takes.
#include "orchestrator/protocol/json_reader.h"

#include <nlohmann/json.hpp>
#include <optional>

#include "orchestrator/http/url.h"
#include "tests/fuzz/targets.h"

namespace permit::fuzz {

namespace {

constexpr JsonLimits small_text{24, 2'000};

void walk(JsonReader& reader) {
  std::string scratch;
  switch (reader.peek()) {
    case '{': {
      JsonReader::Object members(reader);
      while (members.next()) walk(reader);
      return;
    }
    case '[': {
      JsonReader::Array elements(reader);
      while (elements.next()) walk(reader);
      return;
    }
    case '"':
      promise(http::is_utf8(reader.read_user_string(scratch)), "a string is UTF-8");
      return;
    case 't':
    case 'f':
      reader.read_bool();
      return;
    case 'n':
      reader.consume_null();
      return;
    default:
      promise(reader.read_number().size() <= 32, "a number is short");
  }
}

struct Outcome {
  std::string reason;  // of a refusal
  std::string_view value;
};

template <class Use>
Outcome read(std::string_view text, const Use& use) {
  JsonReader reader(text, small_text);
  try {
    const std::string_view value = use(reader);
    reader.finish();
    return {"", value};
  } catch (const Error& error) {
    promise(!error.reason().empty() && http::is_utf8(error.message()), "a refusal says why");
    return {error.reason(), {}};
  }
}

enum class Other { takes, refuses, cannot_hold };

// nlohmann has no limit on a number's length, but one of a double's range, at which it gives up.
Other other_opinion(std::string_view text) {
  try {
    const auto tree = nlohmann::json::parse(text.begin(), text.end());
    return tree.is_discarded() ? Other::refuses : Other::takes;
  } catch (const nlohmann::json::out_of_range&) {
    return Other::cannot_hold;  // 1e999: JSON all the same, and payloads are kept as they came
  } catch (const nlohmann::json::exception&) {
    return Other::refuses;
  }
}

}  // namespace

void json_reader(std::string_view input) {
  const Outcome skipped = read(input, [](JsonReader& reader) { return reader.skip_value(); });
  const Outcome walked = read(input, [](JsonReader& reader) {
    walk(reader);
    return std::string_view();
  });
  if (skipped.reason.empty()) {
    // A number of ours has 32 characters at most; one of a user's, who is not asked, may be longer.
    const bool long_number = walked.reason == "FIELD_INVALID" && input.size() > 32;
    promise(walked.reason.empty() || long_number, "what can be skipped can be walked through");
    promise(other_opinion(input) != Other::refuses, "what is taken is JSON");
    const Outcome again =
        read(skipped.value, [](JsonReader& reader) { return reader.skip_value(); });
    promise(again.reason.empty() && again.value == skipped.value, "a value's text is that value");
  } else if (skipped.reason == "JSON_INVALID") {
    // Which nlohmann skips, and takes for the end.
    const bool has_mark = input.starts_with("\xEF\xBB\xBF") || input.find('\0') != input.npos;
    promise(has_mark || walked.reason != "", "what is no JSON cannot be walked through");
    const bool long_number = input.size() > 32;
    promise(has_mark || long_number || other_opinion(input) != Other::takes,
            "what is JSON is taken");
  } else {
    promise(skipped.reason == "JSON_DUPLICATE_KEY" || skipped.reason == "JSON_TOO_DEEP" ||
                skipped.reason == "JSON_TOO_LARGE",
            "there are four reasons not to take a text");
  }
}

}  // namespace permit::fuzz
