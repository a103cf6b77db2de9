// How the plain values of our structs stand in JSON: one read_value() and one write_value() per
// type. Reading is into a value that is still zero. What a struct or enum looks like comes from
// tables, so these functions, and not one copy per struct, do the work; json_codec.h makes the
// tables.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "orchestrator/protocol/common.h"
#include "orchestrator/protocol/json_reader.h"
#include "orchestrator/protocol/json_writer.h"
#include "orchestrator/protocol/request.h"
#include "orchestrator/protocol/server_history.h"

namespace permit {

void read_value(JsonReader& reader, bool& value);
void read_value(JsonReader& reader, std::int32_t& value);  // a number, or one in a string
void read_value(JsonReader& reader, std::int64_t& value);
void read_value(JsonReader& reader, double& value);
void read_value(JsonReader& reader, std::string& value);
void read_value(JsonReader& reader, Time& value);
void read_value(JsonReader& reader, Duration& value);
void read_value(JsonReader& reader, Bytes& value);
void read_value(JsonReader& reader, Fence& value);
void read_value(JsonReader& reader, Count& value);
void read_value(JsonReader& reader, RawJson& value);
void read_value(JsonReader& reader, Sample& value);
void read_value(JsonReader& reader, Unsupported& value);
void read_value(JsonReader& reader, Ignored& value);

void write_value(JsonWriter& writer, bool value);
void write_value(JsonWriter& writer, std::int32_t value);
void write_value(JsonWriter& writer, std::int64_t value);  // in quotes
void write_value(JsonWriter& writer, double value);        // shortest text that reads back the same
void write_value(JsonWriter& writer, const std::string& value);
void write_value(JsonWriter& writer, Time value);
void write_value(JsonWriter& writer, Duration value);
void write_value(JsonWriter& writer, const Bytes& value);
void write_value(JsonWriter& writer, Fence value);
void write_value(JsonWriter& writer, Count value);
void write_value(JsonWriter& writer, const RawJson& value);
void write_value(JsonWriter& writer, const Sample& value);  // a number, or null

// --- Structs ---

struct FieldCodec {
  std::string_view key;  // ,"workflowId":
  void (*read)(JsonReader&, void* object);
  // Writes nothing if the field is zero.
  void (*write)(JsonWriter&, std::string_view key, const void* object);

  std::string_view name() const { return key.substr(2, key.size() - 4); }
};
using StructCodec = std::span<const FieldCodec>;

// Reads the members of one object as they come.
class FieldReader {
 public:
  FieldReader(JsonReader& reader, StructCodec codec, void* object)
      : reader_(reader), codec_(codec), object_(object) {}

  // Reads the current member; false, and nothing read, if it is not a field.
  bool read(const JsonReader::Object& members);

 private:
  JsonReader& reader_;
  StructCodec codec_;
  void* object_;
  std::uint64_t seen_ = 0;
  std::size_t next_ = 0;
};

void read_struct(JsonReader& reader, StructCodec codec, void* object);
void write_struct(JsonWriter& writer, StructCodec codec, const void* object);
// A member that is left out if it would be {}.
void write_struct_member(JsonWriter& writer, std::string_view key, StructCodec codec,
                         const void* object);

// Whether `key`, from the wire, is `name` in camelCase or in snake_case.
bool is_name(std::string_view key, std::string_view name);

// Skips the current member if the reader skips the unknown. Else FIELD_UNKNOWN, with the name among
// `codec` that was probably meant.
void unknown_field(JsonReader& reader, std::string_view key, StructCodec codec);

// --- Enums ---

struct EnumName {
  std::string_view text;  // TASK_QUEUE_KIND_STICKY
  int value;
};
struct EnumCodec {
  std::span<const EnumName> names;
  std::size_t prefix_size;  // of TASK_QUEUE_KIND_
};

// Takes the full name, the name without its prefix in any case with or without '_', or the number.
int read_enum(JsonReader& reader, const EnumCodec& codec);
void write_enum(JsonWriter& writer, const EnumCodec& codec, int value);

// The value of one of `names` as read_enum() would; -1 if it is none.
int find_enum(const EnumCodec& codec, std::string_view text);

// --- Payloads (json_payload.cpp) ---

void read_value(JsonReader& reader, Payload& value);
void read_value(JsonReader& reader, Payloads& value);
void write_value(JsonWriter& writer, const Payload& value);
void write_value(JsonWriter& writer, const Payloads& value);

// --- Oneofs (json_event.cpp, json_command.cpp) ---

struct AlternativeCodec {
  std::string_view key;           // ,"timerStartedEventAttributes":
  std::string_view type_and_key;  // ,"eventType":"EVENT_TYPE_TIMER_STARTED", and the key
  StructCodec attributes;
  void* (*emplace)(void* variant);
  const void* (*get)(const void* variant);

  std::string_view name() const { return key.substr(2, key.size() - 4); }
};
struct OneOfCodec {
  std::string_view type_key;        // ,"eventType":
  std::string_view suffix;          // EventAttributes
  std::string_view unknown_reason;  // for a type that is none of ours
  EnumCodec types;                  // EVENT_TYPE_TIMER_STARTED; the value is the variant's index
  std::span<const AlternativeCodec> alternatives;  // by the variant's index

  std::string_view type_name() const { return type_key.substr(2, type_key.size() - 4); }
};

// Reads an object with `fields` of `object` and one of the alternatives. Its attributes tell which;
// a type beside them must agree.
void read_one_of(JsonReader& reader, const OneOfCodec& codec, void* variant, StructCodec fields,
                 void* object);
// The members for type and attributes.
void write_one_of(JsonWriter& writer, const OneOfCodec& codec, std::size_t index,
                  const void* variant);

void read_value(JsonReader& reader, Event& value);
void read_value(JsonReader& reader, Command& value);
void read_value(JsonReader& reader, std::vector<Command>& value);
void write_value(JsonWriter& writer, const Event& value);
void write_value(JsonWriter& writer, const Command& value);

}  // namespace permit
