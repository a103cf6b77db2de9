// The generic codec: one read_value() and one write_value() for every described struct, every enum,
// and the containers around them. Heavy; include it only where PERMIT_JSON is used.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "orchestrator/protocol/json.h"
#include "orchestrator/protocol/json_tables.h"
#include "orchestrator/protocol/json_values.h"

namespace permit {

// --- Containers ---

template <class Tag>
void read_value(JsonReader& reader, Name<Tag>& value) {
  reader.read_string(value.value);
}
template <class Tag>
void write_value(JsonWriter& writer, const Name<Tag>& value) {
  append_json_string(value.value, writer.out);
}

template <class T>
void read_value(JsonReader& reader, std::optional<T>& value) {
  read_value(reader, value.emplace());
}
template <class T>
void write_value(JsonWriter& writer, const std::optional<T>& value) {
  write_value(writer, *value);
}

template <class T>
void read_value(JsonReader& reader, Box<T>& value) {
  read_value(reader, value.emplace());
}
template <class T>
void write_value(JsonWriter& writer, const Box<T>& value) {
  write_value(writer, *value);
}

template <class T>
void read_value(JsonReader& reader, std::vector<T>& value) {
  JsonReader::Array elements(reader);
  while (elements.next()) read_value(reader, value.emplace_back());
}
template <class T>
void write_value(JsonWriter& writer, const std::vector<T>& value) {
  writer.out += '[';
  for (const T& element : value) {
    if (writer.out.back() != '[') writer.out += ',';
    write_value(writer, element);
  }
  writer.out += ']';
}

template <class T>
void read_value(JsonReader& reader, std::map<std::string, T>& value) {
  JsonReader::Object members(reader);
  while (members.next()) {
    if (members.key().find('\0') != std::string_view::npos)
      reader.invalid("under a key without U+0000");
    const auto [place, is_new] = value.try_emplace(std::string(members.key()));
    if (!is_new) members.duplicate();
    read_value(reader, place->second);
  }
}
template <class T>
void write_value(JsonWriter& writer, const std::map<std::string, T>& value) {
  writer.out += '{';
  for (const auto& [key, element] : value) {
    if (writer.out.back() != '{') writer.out += ',';
    append_json_string(key, writer.out);
    writer.out += ':';
    write_value(writer, element);
  }
  writer.out += '}';
}

// --- json.h ---

// What is not a request only a server writes; that has no limit but its size.
template <class T>
inline constexpr JsonLimits json_limits =
    type_name<T>().ends_with("Request") ? foreign_text : own_text;
template <>
inline constexpr JsonLimits json_limits<RespondWorkflowTaskCompletedRequest> = completion_text;

template <class T>
T read_json(std::string_view text, Unknown unknown) {
  JsonLimits limits = json_limits<T>;
  limits.skips_unknown = unknown == Unknown::skip;
  JsonReader reader(text, limits);
  T value{};
  read_value(reader, value);
  reader.finish();
  return value;
}

template <class T>
void write_json(const T& value, std::string& out, PayloadForm form) {
  TextBuffer text;
  JsonWriter writer{text, form};
  write_value(writer, value);
  out += text.view();
}

}  // namespace permit

// Instantiates json.h for a type, once in the program. In namespace permit.
#define PERMIT_JSON(T)                                \
  template T read_json<T>(std::string_view, Unknown); \
  template void write_json<T>(const T&, std::string&, PayloadForm);
