#include "orchestrator/protocol/json_values.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <system_error>
#include <utility>
#include <vector>

#include "orchestrator/protocol/base64.h"
#include "orchestrator/protocol/ensure.h"
#include "orchestrator/protocol/json_text.h"
#include "orchestrator/protocol/nearest.h"
#include "orchestrator/protocol/time_text.h"

namespace permit {
namespace {

template <class Integer>
void read_integer(JsonReader& reader, Integer& value, std::string_view expected) {
  std::string scratch;
  const char first = reader.peek();
  if (first != '"' && first != '-' && !is_digit(first)) reader.wrong_kind(expected);
  const std::string_view text =
      first == '"' ? reader.read_string_view(scratch) : reader.read_number();
  const std::string_view digits = text.substr(text.starts_with('-') ? 1 : 0);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() ||
      (digits.size() > 1 && digits.front() == '0')) {
    reader.invalid(expected);
  }
}

template <class Number>
void append_number(Number number, TextBuffer& out) {
  constexpr std::size_t size_max = 32;
  char* const to = out.room(size_max);
  out.wrote_to(std::to_chars(to, to + size_max, number).ptr);
}

// A short text that needs no escapes. `put` writes 32 bytes at most and returns their end.
template <class Put>
void append_quoted(JsonWriter& writer, Put put) {
  char* const to = writer.out.room(34);
  *to = '"';
  char* end = put(to + 1);
  *end++ = '"';
  writer.out.wrote_to(end);
}

// Text that a JSON parser would take as a value which says nothing.
bool is_zero_text(std::string_view text) {
  if (text.front() == '{' || text.front() == '[') {
    text.remove_prefix(1);
    text.remove_suffix(1);
    return std::all_of(text.begin(), text.end(), is_json_space);
  }
  if (text.front() == '-' || is_digit(text.front())) {
    return text.substr(0, text.find_first_of("eE")).find_first_of("123456789") ==
           std::string_view::npos;
  }
  return text == "null" || text == "false" || text == R"("")" || text == R"("0")" ||
         text == R"("0s")";
}

char to_lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// Ignores case and '_': CamelCase is SNAKE_CASE.
bool is_same_word(std::string_view a, std::string_view b) {
  const auto skip = [](std::string_view& text) {
    while (!text.empty() && text.front() == '_') text.remove_prefix(1);
  };
  for (;;) {
    skip(a);
    skip(b);
    if (a.empty() || b.empty()) return a.empty() && b.empty();
    if (to_lower(a.front()) != to_lower(b.front())) return false;
    a.remove_prefix(1);
    b.remove_prefix(1);
  }
}

// Some exports have this for no time at all.
constexpr std::string_view go_zero_time = "0001-01-01T00:00:00Z";

constexpr std::size_t no_field = static_cast<std::size_t>(-1);

// Most texts hold the fields in our order, so the search begins behind the last one found.
std::size_t find_field(StructCodec codec, std::string_view key, std::size_t start) {
  for (std::size_t at = start; at < codec.size(); ++at) {
    if (is_name(key, codec[at].name())) return at;
  }
  for (std::size_t at = 0; at < start; ++at) {
    if (is_name(key, codec[at].name())) return at;
  }
  return no_field;
}

std::string one_of(const EnumCodec& codec) {
  constexpr std::size_t shown_max = 8;
  std::string list;
  for (std::size_t i = 1; i < codec.names.size() && i <= shown_max; ++i) {
    list += (list.empty() ? "" : ", ") + std::string(codec.names[i].text);
  }
  return codec.names.size() > shown_max + 1 ? list + ", …" : list;
}

}  // namespace

void read_value(JsonReader& reader, bool& value) { value = reader.read_bool(); }

void read_value(JsonReader& reader, std::int32_t& value) {
  read_integer(reader, value, "a whole number from -2147483648 to 2147483647");
}

void read_value(JsonReader& reader, std::int64_t& value) {
  read_integer(reader, value, "a whole number of 64 bits, best in a string");
}

void read_value(JsonReader& reader, double& value) {
  constexpr std::string_view expected = "a finite number";
  std::string scratch;
  const std::string_view text =
      reader.peek() == '"' ? reader.read_string_view(scratch) : reader.read_number();
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) {
    reader.invalid(expected);
  }
}

void read_value(JsonReader& reader, std::string& value) { reader.read_string(value); }

void read_value(JsonReader& reader, Time& value) {
  std::string scratch;
  const std::string_view text = reader.read_string_view(scratch);
  if (reader.skips_unknown() && text == go_zero_time) return;
  const auto time = parse_time(text);
  if (!time) reader.invalid("a time of the years 1970 to 9999, as in \"2026-08-01T12:00:00Z\"");
  value = *time;
}

void read_value(JsonReader& reader, Duration& value) {
  std::string scratch;
  const auto duration = parse_duration(reader.read_string_view(scratch));
  if (!duration) reader.invalid("a duration in seconds, as in \"90s\" or \"0.500s\"");
  value = *duration;
}

void read_value(JsonReader& reader, Bytes& value) {
  std::string scratch;
  auto bytes = from_base64(reader.read_string_view(scratch));
  if (!bytes) reader.invalid("bytes in base64");
  value.value = std::move(*bytes);
}

void read_value(JsonReader& reader, Fence& value) { read_value(reader, value.value); }

void read_value(JsonReader& reader, Count& value) { read_value(reader, value.value); }

void read_value(JsonReader& reader, RawJson& value) { value.text = reader.skip_value(); }

void read_value(JsonReader& reader, Unsupported&) {
  if (is_zero_text(reader.skip_value())) return;
  reader.refuse(ErrorCode::unimplemented, "FIELD_UNSUPPORTED", "is not offered; leave it out.");
}

void read_value(JsonReader& reader, Ignored&) { reader.skip_value(); }

void write_value(JsonWriter& writer, bool value) { writer.out += value ? "true" : "false"; }

void write_value(JsonWriter& writer, std::int32_t value) { append_number(value, writer.out); }

void write_value(JsonWriter& writer, std::int64_t value) {
  append_quoted(writer, [value](char* to) { return std::to_chars(to, to + 20, value).ptr; });
}

void write_value(JsonWriter& writer, double value) {
  ENSURE(std::isfinite(value));
  append_number(value, writer.out);
}

void write_value(JsonWriter& writer, const std::string& value) {
  append_json_string(value, writer.out);
}

void write_value(JsonWriter& writer, Time value) {
  append_quoted(writer, [value](char* to) { return put_time(value, to); });
}

void write_value(JsonWriter& writer, Duration value) {
  append_quoted(writer, [value](char* to) { return put_duration(value, to); });
}

void write_value(JsonWriter& writer, const Bytes& value) {
  writer.out += '"';
  char* const to = writer.out.room(base64_size(value.value.size()));
  writer.out.wrote_to(put_base64(value.value, to));
  writer.out += '"';
}

void write_value(JsonWriter& writer, Fence value) { append_number(value.value, writer.out); }

void write_value(JsonWriter& writer, Count value) { append_number(value.value, writer.out); }

void write_value(JsonWriter& writer, const RawJson& value) { writer.out += value.text; }

void read_value(JsonReader& reader, Sample& value) {
  if (!reader.consume_null()) read_value(reader, value.value.emplace());
}

void write_value(JsonWriter& writer, const Sample& value) {
  if (value.value) {
    write_value(writer, *value.value);
  } else {
    writer.out += "null";
  }
}

bool FieldReader::read(const JsonReader::Object& members) {
  const std::size_t at = find_field(codec_, members.key(), next_);
  if (at == no_field) return false;
  const std::uint64_t bit = std::uint64_t{1} << at;
  if ((seen_ & bit) != 0) members.duplicate();
  seen_ |= bit;
  codec_[at].read(reader_, object_);
  next_ = at + 1;
  return true;
}

void read_struct(JsonReader& reader, StructCodec codec, void* object) {
  JsonReader::Object members(reader);
  FieldReader fields(reader, codec, object);
  while (members.next()) {
    if (!fields.read(members)) unknown_field(reader, members.key(), codec);
  }
}

void write_struct(JsonWriter& writer, StructCodec codec, const void* object) {
  writer.out += '{';
  for (const FieldCodec& field : codec) field.write(writer, field.key, object);
  writer.out += '}';
}

void write_struct_member(JsonWriter& writer, std::string_view key, StructCodec codec,
                         const void* object) {
  const std::size_t before = writer.out.size();
  writer.begin_member(key);
  const std::size_t start = writer.out.size();
  write_struct(writer, codec, object);
  if (writer.out.size() == start + 2) writer.out.cut_to(before);
}

bool is_name(std::string_view key, std::string_view name) {
  if (key == name) return true;
  if (key.size() <= name.size()) return false;  // snake_case is longer
  std::size_t at = 0;
  for (std::size_t i = 0; i < key.size(); ++i, ++at) {
    const bool is_word = key[i] == '_' && i + 1 < key.size();
    const char c = is_word ? key[++i] : key[i];
    if (at >= name.size() || to_lower(c) != c) return false;
    if (name[at] != (is_word ? static_cast<char>(c - 'a' + 'A') : c)) return false;
  }
  return at == name.size();
}

void unknown_field(JsonReader& reader, std::string_view key, StructCodec codec) {
  if (reader.skips_unknown()) {
    reader.skip_value();
    return;
  }
  std::string problem = "is not a field; ";
  std::size_t nearest = 4;  // farther is another word
  std::string_view meant;
  for (const FieldCodec& field : codec) {
    if (key.size() > field.name().size() + nearest) continue;
    const std::size_t far = edit_distance(key, field.name());
    if (far < nearest && far < key.size()) {
      nearest = far;
      meant = field.name();
    }
  }
  problem += meant.empty() ? "leave it out." : "did you mean " + std::string(meant) + '?';
  reader.refuse(ErrorCode::invalid_argument, "FIELD_UNKNOWN", problem);
}

int find_enum(const EnumCodec& codec, std::string_view text) {
  for (const EnumName& name : codec.names) {
    if (text == name.text) return name.value;
  }
  for (const EnumName& name : codec.names) {
    if (is_same_word(text, name.text.substr(codec.prefix_size))) return name.value;
  }
  return -1;
}

int read_enum(JsonReader& reader, const EnumCodec& codec) {
  std::string scratch;
  int value = -1;
  if (reader.peek() == '"') {
    value = find_enum(codec, reader.read_string_view(scratch));
  } else {
    std::int32_t number = 0;
    read_integer(reader, number, "a name in a string");
    const auto known = [&](const EnumName& name) { return name.value == number; };
    if (std::any_of(codec.names.begin(), codec.names.end(), known)) value = number;
  }
  if (value >= 0) return value;
  if (reader.skips_unknown()) return codec.names.front().value;
  reader.refuse(ErrorCode::invalid_argument, "ENUM_UNKNOWN",
                "must be one of " + one_of(codec) + '.');
}

void write_enum(JsonWriter& writer, const EnumCodec& codec, int value) {
  const auto is_value = [&](const EnumName& name) { return name.value == value; };
  const auto name = std::find_if(codec.names.begin(), codec.names.end(), is_value);
  ENSURE(name != codec.names.end());
  writer.out += '"';
  writer.out += name->text;
  writer.out += '"';
}

}  // namespace permit
