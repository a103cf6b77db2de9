#include "orchestrator/protocol/json_reader.h"

#include <algorithm>
#include <utility>

#include "orchestrator/protocol/json_text.h"

namespace permit {
namespace {

constexpr std::size_t number_size_max = 32;
constexpr std::size_t shown_key_size_max = 64;
constexpr std::size_t small_object = 12;  // up to here, comparing all keys beats sorting them

// Keys come from anybody, and messages go to terminals.
std::string shown(std::string_view key) {
  if (key.empty()) return "\"\"";
  std::size_t size = std::min(key.size(), shown_key_size_max);
  while (size < key.size() && (static_cast<unsigned char>(key[size]) & 0xC0) == 0x80) --size;
  std::string text(key.substr(0, size));
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; };
  std::replace_if(text.begin(), text.end(), is_control, '?');
  if (size < key.size()) text += "…";
  return text;
}

std::string_view kind_name(char first) {
  switch (first) {
    case '{':
      return "an object";
    case '[':
      return "an array";
    case '"':
      return "a string";
    case 't':
    case 'f':
      return "a boolean";
    case 'n':
      return "null";
    default:
      return "a number";
  }
}

}  // namespace

char JsonReader::peek_behind_space() {
  skip_space();
  if (at_ == end_) {
    if (values_ == 0) {
      throw invalid_argument("JSON_INVALID", "The body is empty; send a JSON object.");
    }
    bad_syntax("the text ends where a value should be");
  }
  return *at_;
}

bool JsonReader::consume_null() {
  if (peek() != 'n') return false;
  take_literal("null");
  return true;
}

bool JsonReader::read_bool() {
  const char first = peek();
  if (first != 't' && first != 'f') wrong_kind("true or false");
  take_literal(first == 't' ? "true" : "false");
  return first == 't';
}

std::string_view JsonReader::read_number() {
  const char first = peek();
  if (first != '-' && !is_digit(first)) wrong_kind("a number");
  const std::string_view number = scan_number();
  if (number.size() > number_size_max) invalid("a number of at most 32 characters");
  return number;
}

std::string_view JsonReader::read_user_string(std::string& scratch) {
  if (peek() != '"') wrong_kind("a string");
  const StringText text = scan_string();
  if (!text.escaped) return text.raw;
  scratch.clear();
  append_unescaped(text.raw, scratch);
  return scratch;
}

std::string_view JsonReader::read_string_view(std::string& scratch) {
  const std::string_view text = read_user_string(scratch);
  if (text.data() == scratch.data() && text.find('\0') != std::string_view::npos) {
    invalid("a string without the character U+0000");
  }
  return text;
}

void JsonReader::read_string(std::string& out) {
  const std::string_view text = read_string_view(out);
  if (text.data() != out.data()) out.assign(text);
}

std::string_view JsonReader::skip_value() {
  peek();
  const char* const start = at_;
  skip_any();
  unescaped_keys_.clear();
  return std::string_view(start, static_cast<std::size_t>(at_ - start));
}

void JsonReader::finish() {
  skip_space();
  if (at_ != end_) bad_syntax("text follows after the end of the value");
}

std::string JsonReader::path() const {
  std::vector<const Frame*> frames;
  for (const Frame* frame = frame_; frame != nullptr; frame = frame->parent) {
    if (frame->in_value) frames.push_back(frame);
  }
  std::string path;
  for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) {
    if ((*frame)->in_array) {
      path += '[' + std::to_string((*frame)->index) + ']';
    } else {
      path += (path.empty() ? "" : ".") + shown((*frame)->key);
    }
  }
  return path;
}

void JsonReader::invalid(std::string_view expected) const {
  refuse(ErrorCode::invalid_argument, "FIELD_INVALID", "must be " + std::string(expected) + '.');
}

void JsonReader::wrong_kind(std::string_view expected) {
  const char first = peek();
  const bool is_value = std::string_view("{[\"-tfn").find(first) != std::string_view::npos;
  if (!is_value && !is_digit(first)) skip_any();  // says why
  const std::string found(kind_name(first));
  invalid(std::string(expected) + ", not " + found);
}

void JsonReader::refuse(ErrorCode code, std::string reason, std::string_view problem) const {
  std::string where = path();
  if (where.empty()) where = "The body";
  throw Error(code, std::move(reason), where + ' ' + std::string(problem));
}

void JsonReader::bad_syntax(std::string_view problem) const {
  throw invalid_argument("JSON_INVALID", "The JSON is not valid at byte " +
                                             std::to_string(at_ - begin_) + ": " +
                                             std::string(problem) + '.');
}

void JsonReader::duplicate_key(std::string_view key) const {
  const std::string where = path();
  const std::string inside = where.empty() || where == key ? "" : " (at " + where + ')';
  throw invalid_argument(
      "JSON_DUPLICATE_KEY",
      "The key \"" + shown(key) + "\" is twice in one object" + inside + "; leave one out.");
}

void JsonReader::skip_space() {
  while (at_ != end_ && is_json_space(*at_)) ++at_;
}

void JsonReader::too_large() const {
  throw invalid_argument("JSON_TOO_LARGE", "The JSON has more than " +
                                               std::to_string(limits_.values_max) +
                                               " values; send less at once.");
}

// Into an object or array, whose bracket is next.
void JsonReader::enter() {
  count_value();
  if (++depth_ > limits_.depth_max) {
    throw invalid_argument("JSON_TOO_DEEP", "The JSON nests deeper than " +
                                                std::to_string(limits_.depth_max) +
                                                " levels; send it flatter.");
  }
  ++at_;
}

void JsonReader::take_literal(std::string_view literal) {
  const auto left = static_cast<std::size_t>(end_ - at_);
  if (!std::string_view(at_, left).starts_with(literal)) bad_syntax("this is not a JSON value");
  count_value();
  at_ += literal.size();
}

std::string_view JsonReader::scan_number() {
  count_value();
  const char* const start = at_;
  const auto is_next = [&](char c) { return at_ != end_ && *at_ == c; };
  const auto digits = [&] {
    if (at_ == end_ || !is_digit(*at_)) bad_syntax("a digit is missing in a number");
    while (at_ != end_ && is_digit(*at_)) ++at_;
  };
  if (is_next('-')) ++at_;
  const char* const integer = at_;
  digits();
  if (*integer == '0' && at_ - integer > 1) bad_syntax("a number begins with 0");
  if (is_next('.')) {
    ++at_;
    digits();
  }
  if (is_next('e') || is_next('E')) {
    ++at_;
    if (is_next('+') || is_next('-')) ++at_;
    digits();
  }
  return std::string_view(start, static_cast<std::size_t>(at_ - start));
}

JsonReader::StringText JsonReader::scan_string() {
  count_value();
  StringText text;
  const char* const start = ++at_;
  for (;;) {
    at_ = plain_end(at_, end_);
    if (at_ == end_) bad_syntax("a string is not closed");
    if (*at_ == '"') break;
    if (*at_ == '\\') {
      scan_escape(text);
      continue;
    }
    if (static_cast<unsigned char>(*at_) < 0x20) bad_syntax("a control character is not escaped");
    const std::size_t size = utf8_size(at_, end_);
    if (size == 0) bad_syntax("this is not UTF-8");
    at_ += size;
  }
  text.raw = std::string_view(start, static_cast<std::size_t>(at_ - start));
  ++at_;
  return text;
}

void JsonReader::scan_escape(StringText& text) {
  text.escaped = true;
  ++at_;
  if (at_ == end_ || std::string_view("\"\\/bfnrtu").find(*at_) == std::string_view::npos) {
    bad_syntax("there is no such escape in a string");
  }
  if (*at_++ != 'u') return;
  const std::uint32_t code = scan_hex4();
  if (code < 0xD800 || code > 0xDFFF) return;
  if (code >= 0xDC00 || end_ - at_ < 2 || at_[0] != '\\' || at_[1] != 'u') {
    bad_syntax("half a surrogate pair stands alone");
  }
  at_ += 2;
  const std::uint32_t low = scan_hex4();
  if (low < 0xDC00 || low > 0xDFFF) bad_syntax("half a surrogate pair stands alone");
}

std::uint32_t JsonReader::scan_hex4() {
  for (int i = 0; i < 4; ++i) {
    if (end_ - at_ <= i || hex_value(at_[i]) < 0) bad_syntax("\\u needs four hex digits");
  }
  at_ += 4;
  return hex4(at_ - 4);
}

void JsonReader::skip_any() {
  const char first = peek();
  switch (first) {
    case '{':
      return skip_object();
    case '[':
      return skip_array();
    case '"':
      scan_string();
      return;
    case 't':
      return take_literal("true");
    case 'f':
      return take_literal("false");
    case 'n':
      return take_literal("null");
    case '\xEF':
      bad_syntax("a value should be here; send UTF-8 without a byte order mark");
    default:
      break;
  }
  if (first != '-' && !is_digit(first)) bad_syntax("this is not a JSON value");
  scan_number();
}

void JsonReader::skip_object() {
  const std::size_t first_key = keys_.size();
  enter();
  if (peek() == '}') {
    ++at_;
  } else {
    for (;;) {
      keys_.push_back(skipped_key());
      skip_any();
      if (peek() == '}') break;
      if (*at_ != ',') bad_syntax("',' or '}' is missing");
      ++at_;
    }
    ++at_;
  }
  check_duplicates(first_key);
  keys_.resize(first_key);
  --depth_;
}

void JsonReader::skip_array() {
  enter();
  if (peek() == ']') {
    ++at_;
  } else {
    for (;;) {
      skip_any();
      if (peek() == ']') break;
      if (*at_ != ',') bad_syntax("',' or ']' is missing");
      ++at_;
    }
    ++at_;
  }
  --depth_;
}

std::string_view JsonReader::scan_key(std::string& unescaped) {
  if (peek() != '"') bad_syntax("a key in double quotes is missing");
  const StringText text = scan_string();
  --values_;  // a key is not a value
  if (peek() != ':') bad_syntax("':' is missing after a key");
  ++at_;
  if (!text.escaped) return text.raw;
  unescaped.clear();
  append_unescaped(text.raw, unescaped);
  return unescaped;
}

std::string_view JsonReader::skipped_key() {
  std::string unescaped;
  const std::string_view key = scan_key(unescaped);
  if (key.data() != unescaped.data()) return key;
  return unescaped_keys_.emplace_front(std::move(unescaped));
}

void JsonReader::check_duplicates(std::size_t first_key) const {
  const std::size_t count = keys_.size() - first_key;
  const auto first = keys_.begin() + static_cast<std::ptrdiff_t>(first_key);
  if (count <= small_object) {
    for (auto key = first; key != keys_.end(); ++key) {
      if (std::find(first, key, *key) != key) duplicate_key(*key);
    }
    return;
  }
  std::vector<std::string_view> sorted(first, keys_.end());
  std::sort(sorted.begin(), sorted.end());
  const auto twin = std::adjacent_find(sorted.begin(), sorted.end());
  if (twin != sorted.end()) duplicate_key(*twin);
}

JsonReader::Object::Object(JsonReader& reader) : reader_(reader) {
  if (reader_.peek() != '{') reader_.wrong_kind("a JSON object");
  reader_.enter();
  frame_.parent = reader_.frame_;
  reader_.frame_ = &frame_;
}

JsonReader::Object::~Object() {
  reader_.frame_ = frame_.parent;
  --reader_.depth_;
}

bool JsonReader::Object::next() {
  frame_.in_value = false;
  const char c = reader_.peek();
  if (c == '}') {
    ++reader_.at_;
    return false;
  }
  if (!first_) {
    if (c != ',') reader_.bad_syntax("',' or '}' is missing");
    ++reader_.at_;
  }
  first_ = false;
  frame_.key = reader_.scan_key(unescaped_);
  frame_.in_value = true;
  return true;
}

JsonReader::Array::Array(JsonReader& reader) : reader_(reader) {
  if (reader_.peek() != '[') reader_.wrong_kind("an array");
  reader_.enter();
  frame_.in_array = true;
  frame_.parent = reader_.frame_;
  reader_.frame_ = &frame_;
}

JsonReader::Array::~Array() {
  reader_.frame_ = frame_.parent;
  --reader_.depth_;
}

bool JsonReader::Array::next() {
  const char c = reader_.peek();
  if (c == ']') {
    ++reader_.at_;
    frame_.in_value = false;
    return false;
  }
  if (frame_.in_value) {
    if (c != ',') reader_.bad_syntax("',' or ']' is missing");
    ++reader_.at_;
    ++frame_.index;
  }
  frame_.in_value = true;
  return true;
}

}  // namespace permit
