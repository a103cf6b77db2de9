// Payloads in JSON. The shorthand of a payload, in and out:
//
//   null                             metadata {encoding: binary/null}, no data
//   {"metadata":{"encoding":…},…}    itself, if nothing but metadata and data is there, the bytes
//   are
//                                    base64, and "data" is there or the encoding is binary/null
//   {"_protoMessageType":"X",…}      metadata {encoding: json/protobuf, messageType: X}; the data
//   is
//                                    the text without that member
//   anything else                    metadata {encoding: json/plain}; the data is the text
//
// The text is kept as it came: what a user wrote is never written anew.
#include <algorithm>
#include <optional>
#include <utility>

#include "orchestrator/protocol/base64.h"
#include "orchestrator/protocol/json_values.h"

namespace permit {
namespace {

constexpr std::string_view message_type_key = "_protoMessageType";

Payload null_payload() { return Payload{{{"encoding", Bytes{"binary/null"}}}, Bytes{}}; }

const Bytes* find_metadata(const Payload& payload, std::string_view key) {
  for (const auto& [name, value] : payload.metadata) {
    if (name == key) return &value;
  }
  return nullptr;
}

bool is_encoding(const Payload& payload, std::string_view encoding) {
  const Bytes* found = find_metadata(payload, "encoding");
  return found != nullptr && found->value == encoding;
}

bool read_bytes(JsonReader& reader, std::string& out) {
  if (reader.peek() != '"') return false;
  std::string scratch;
  auto bytes = from_base64(reader.read_user_string(scratch));
  if (bytes) out = std::move(*bytes);
  return bytes.has_value();
}

bool read_metadata(JsonReader& reader, Payload& payload) {
  if (reader.peek() != '{') return false;
  JsonReader::Object members(reader);
  while (members.next()) {
    if (members.key().find('\0') != std::string_view::npos) return false;
    auto& [name, value] = payload.metadata.emplace_back(members.key(), Bytes{});
    if (!read_bytes(reader, value.value)) return false;
    if (name == "encoding")
      std::rotate(payload.metadata.begin(), payload.metadata.end() - 1, payload.metadata.end());
  }
  return true;
}

struct LongForm {
  Payload payload;
  bool has_data = false;
};

// `text` is valid JSON.
std::optional<LongForm> parse_long_form(std::string_view text) {
  if (text.front() != '{') return std::nullopt;
  LongForm result;
  JsonReader reader(text, own_text);
  JsonReader::Object members(reader);
  while (members.next()) {
    if (members.key() == "metadata") {
      if (!read_metadata(reader, result.payload)) return std::nullopt;
    } else if (members.key() == "data") {
      if (!read_bytes(reader, result.payload.data.value)) return std::nullopt;
      result.has_data = true;
    } else {
      return std::nullopt;
    }
  }
  return result;
}

std::optional<Payload> parse_literal(std::string_view text) {
  auto literal = parse_long_form(text);
  if (!literal || find_metadata(literal->payload, "encoding") == nullptr) return std::nullopt;
  if (!literal->has_data && !is_encoding(literal->payload, "binary/null")) return std::nullopt;
  return std::move(literal->payload);
}

// The object `text` without the member whose value ends at `end`; what precedes it, a comma
// included, begins at `begin`.
std::string without_member(std::string_view text, std::size_t begin, std::size_t end) {
  if (begin == 1) {
    const std::size_t after = text.find_first_not_of(" \t\r\n", end);
    if (text[after] == ',') end = after + 1;
  }
  return std::string(text.substr(0, begin)) + std::string(text.substr(end));
}

std::optional<Payload> parse_message(std::string_view text) {
  if (text.front() != '{' || text.find(message_type_key) == std::string_view::npos) {
    return std::nullopt;
  }
  JsonReader reader(text, own_text);
  JsonReader::Object members(reader);
  std::size_t begin = 1;
  while (members.next()) {
    const std::string_view value = reader.skip_value();
    const auto end = static_cast<std::size_t>(value.data() + value.size() - text.data());
    if (members.key() == message_type_key) {
      if (value.front() != '"') return std::nullopt;
      std::string scratch;
      JsonReader type(value, own_text);
      Bytes type_name{std::string(type.read_user_string(scratch))};
      if (type_name.value.empty()) return std::nullopt;
      return Payload{{{"encoding", Bytes{"json/protobuf"}}, {"messageType", std::move(type_name)}},
                     Bytes{without_member(text, begin, end)}};
    }
    begin = end;
  }
  return std::nullopt;
}

// `text` is valid JSON.
Payload parse_shorthand(std::string_view text) {
  if (text == "null") return null_payload();
  if (auto literal = parse_literal(text)) return std::move(*literal);
  if (auto message = parse_message(text)) return std::move(*message);
  return json_payload(std::string(text));
}

bool is_json(std::string_view text) {
  constexpr JsonLimits limits{foreign_text.depth_max, own_text.values_max};
  try {
    JsonReader reader(text, limits);
    return reader.skip_value().size() == text.size();
  } catch (const Error&) {
    return false;
  }
}

std::string message_text(const std::string& data, const std::string& type) {
  std::string text = "{";
  append_json_string(message_type_key, text);
  text += ':';
  append_json_string(type, text);
  const std::size_t first = data.find_first_not_of(" \t\r\n", 1);
  if (first != std::string::npos && data[first] != '}') text += ',';
  return text.append(data, 1);
}

// Empty if the payload has no shorthand that reads back as the same payload.
std::optional<std::string> shorthand_of(const Payload& payload) {
  std::string text;
  if (is_encoding(payload, "binary/null")) {
    text = "null";
  } else if (is_encoding(payload, "json/plain")) {
    text = payload.data.value;
  } else if (is_encoding(payload, "json/protobuf") && payload.data.value.starts_with('{')) {
    const Bytes* type = find_metadata(payload, "messageType");
    if (type != nullptr) text = message_text(payload.data.value, type->value);
  }
  if (!is_json(text) || !(parse_shorthand(text) == payload)) return std::nullopt;
  return text;
}

void write_long_form(JsonWriter& writer, const Payload& payload) {
  writer.out += '{';
  if (!payload.metadata.empty()) {
    writer.out += "\"metadata\":{";
    for (const auto& [name, value] : payload.metadata) {
      if (writer.out.back() != '{') writer.out += ',';
      append_json_string(name, writer.out);
      writer.out += ':';
      write_value(writer, value);
    }
    writer.out += '}';
  }
  // Empty data is written, for what parse_literal() makes of an object without it.
  if (!payload.data.value.empty() ||
      (!payload.metadata.empty() && !is_encoding(payload, "binary/null"))) {
    writer.begin_member(",\"data\":");
    write_value(writer, payload.data);
  }
  writer.out += '}';
}

void read_long_form_list(JsonReader& reader, Payloads& value) {
  JsonReader::Object members(reader);
  bool has_list = false;
  while (members.next()) {
    if (members.key() != "payloads") {
      reader.invalid("left out: write the values as an array, or as {\"payloads\":[…]}");
    }
    if (std::exchange(has_list, true)) members.duplicate();
    if (reader.consume_null()) continue;
    JsonReader::Array elements(reader);
    while (elements.next()) {
      auto payload = parse_long_form(reader.skip_value());
      if (!payload) reader.invalid(R"(a payload {"metadata":{…},"data":…} with values in base64)");
      value.payloads.push_back(std::move(payload->payload));
    }
  }
}

bool write_shorthand_list(JsonWriter& writer, const Payloads& value) {
  std::string list = "[";
  for (const Payload& payload : value.payloads) {
    const auto text = shorthand_of(payload);
    if (!text) return false;
    if (list.size() > 1) list += ',';
    list += *text;
  }
  writer.out += list;
  writer.out += ']';
  return true;
}

}  // namespace

void read_value(JsonReader& reader, Payload& value) {
  value = parse_shorthand(reader.skip_value());
}

void read_value(JsonReader& reader, Payloads& value) {
  const char first = reader.peek();
  if (first == '{') return read_long_form_list(reader, value);
  if (reader.consume_null()) return;
  if (first != '[') reader.wrong_kind("an array of values");
  JsonReader::Array elements(reader);
  while (elements.next()) read_value(reader, value.payloads.emplace_back());
}

void write_value(JsonWriter& writer, const Payload& value) {
  if (writer.form == PayloadForm::shorthand) {
    if (const auto text = shorthand_of(value)) {
      writer.out += *text;
      return;
    }
  }
  write_long_form(writer, value);
}

void write_value(JsonWriter& writer, const Payloads& value) {
  if (writer.form == PayloadForm::shorthand && write_shorthand_list(writer, value)) return;
  writer.out += '{';
  if (!value.payloads.empty()) writer.out += "\"payloads\":[";
  for (const Payload& payload : value.payloads) {
    if (writer.out.back() != '[') writer.out += ',';
    write_long_form(writer, payload);
  }
  writer.out += value.payloads.empty() ? "}" : "]}";
}

}  // namespace permit
