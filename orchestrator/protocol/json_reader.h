// Reads one JSON text front to back, strictly (RFC 8259), without building a tree: the caller
// pulls values in the order in which they stand. It knows where it is, so errors name the path
// ("commands[3].startTimerCommandAttributes") and a value can be taken as the text it came as.
//
//   JsonReader::Object members(reader);
//   while (members.next()) {
//     if (members.key() == "name") reader.read_string(name); else reader.skip_value();
//   }
//
// The text must outlive the reader. Every function throws Error, see json.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <forward_list>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "orchestrator/protocol/error.h"
#include "orchestrator/protocol/json_text.h"

namespace permit {

struct JsonLimits {
  int depth_max;
  std::int64_t values_max;
  bool skips_unknown = false;  // fields and enumerators; else they are errors
};
inline constexpr JsonLimits foreign_text{64, 50'000};
// A completion may carry 10,000 commands; on average there is room for 20 values in each.
inline constexpr JsonLimits completion_text{64, 200'000};
// What a server wrote wraps what it was sent, so it must be allowed to nest deeper.
inline constexpr JsonLimits own_text{128, std::numeric_limits<std::int64_t>::max()};

class JsonReader {
  // Where we are: one per open object or array, on the caller's stack.
  struct Frame {
    Frame* parent = nullptr;
    bool in_array = false;
    bool in_value = false;  // `key` or `index` is part of the path
    std::string_view key{};
    std::size_t index = 0;
  };

 public:
  class Object;
  class Array;

  JsonReader(std::string_view text, JsonLimits limits)
      : begin_(text.data()), at_(begin_), end_(begin_ + text.size()), limits_(limits) {}

  // The first character of the next value, which tells its kind. Throws at the end of the text.
  char peek() {
    if (at_ != end_ && !is_json_space(*at_)) return *at_;
    return peek_behind_space();
  }

  bool consume_null();
  bool read_bool();
  std::string_view read_number();  // as written; at most 32 characters
  // Refuses U+0000, which none of our strings may hold.
  void read_string(std::string& out);
  // The same without a copy if nothing is escaped; valid while `scratch` and the text are.
  std::string_view read_string_view(std::string& scratch);
  // The same for a string inside a user's value, which may hold U+0000.
  std::string_view read_user_string(std::string& scratch);

  // Skips one value and returns its text, white space around it cut off. It is valid JSON of
  // valid UTF-8 without duplicate keys, within the limits.
  std::string_view skip_value();

  // Nothing may follow.
  void finish();

  bool skips_unknown() const { return limits_.skips_unknown; }

  // "taskQueue.name", "" at the top.
  std::string path() const;

  // FIELD_INVALID: "<path> must be <expected>".
  [[noreturn]] void invalid(std::string_view expected) const;
  // As invalid(), naming what stands there. JSON_INVALID if that is not a value at all.
  [[noreturn]] void wrong_kind(std::string_view expected);
  // An error whose message is the path and `problem`: "<path> is not offered".
  [[noreturn]] void refuse(ErrorCode code, std::string reason, std::string_view problem) const;

 private:
  struct StringText {
    std::string_view raw;  // between the quotes
    bool escaped = false;
  };

  [[noreturn]] void bad_syntax(std::string_view problem) const;
  [[noreturn]] void duplicate_key(std::string_view key) const;
  char peek_behind_space();
  void skip_space();
  void count_value() {
    if (++values_ > limits_.values_max) too_large();
  }
  [[noreturn]] void too_large() const;
  void enter();
  void take_literal(std::string_view literal);
  std::string_view scan_number();
  StringText scan_string();
  void scan_escape(StringText& text);
  std::uint32_t scan_hex4();
  void skip_any();
  void skip_object();
  void skip_array();
  // A key and its colon. `unescaped` holds it if it has escapes.
  std::string_view scan_key(std::string& unescaped);
  std::string_view skipped_key();
  void check_duplicates(std::size_t first_key) const;

  const char* begin_;
  const char* at_;
  const char* end_;
  JsonLimits limits_;
  int depth_ = 0;
  std::int64_t values_ = 0;
  Frame* frame_ = nullptr;
  // Keys of the objects that skip_value() is in, outermost first.
  std::vector<std::string_view> keys_;
  std::forward_list<std::string> unescaped_keys_;
};

// The members of one object. Read or skip each value before the next next().
class JsonReader::Object {
 public:
  explicit Object(JsonReader& reader);
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  ~Object();

  // Moves to the next member; false after the last. Does not look for duplicate keys.
  bool next();
  std::string_view key() const { return frame_.key; }
  // For callers who keep track: the current key was there before.
  [[noreturn]] void duplicate() const { reader_.duplicate_key(frame_.key); }

 private:
  JsonReader& reader_;
  Frame frame_;
  bool first_ = true;
  std::string unescaped_;
};

class JsonReader::Array {
 public:
  explicit Array(JsonReader& reader);
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  ~Array();

  // Moves to the next element; false after the last.
  bool next();

 private:
  JsonReader& reader_;
  Frame frame_;
};

}  // namespace permit
