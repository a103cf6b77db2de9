#include <algorithm>
#include <cstdint>
#include <utility>

#include "orchestrator/protocol/json_values.h"

namespace permit {
namespace {

constexpr int none = -1;

class OneOfReader {
 public:
  OneOfReader(JsonReader& reader, const OneOfCodec& codec, void* variant)
      : reader_(reader), codec_(codec), variant_(variant) {}

  // Reads the current member if it is the type or attributes, of whatever type.
  bool read(const JsonReader::Object& members);
  // The object is at its end.
  void check_agreement();

 private:
  const AlternativeCodec& alternative(int index) const {
    return codec_.alternatives[static_cast<std::size_t>(index)];
  }
  int find_alternative(std::string_view key) const;
  int read_type();
  void read_attributes(int index);

  JsonReader& reader_;
  const OneOfCodec& codec_;
  void* variant_;
  int type_ = none;
  int attributes_ = none;
  bool has_type_ = false;
  std::uint64_t seen_ = 0;  // attributes, by index; they may be null
};

bool OneOfReader::read(const JsonReader::Object& members) {
  if (is_name(members.key(), codec_.type_name())) {
    if (std::exchange(has_type_, true)) members.duplicate();
    if (!reader_.consume_null()) type_ = read_type();
    return true;
  }
  const int index = find_alternative(members.key());
  if (index == none) return false;
  const std::uint64_t bit = std::uint64_t{1} << index;
  if ((seen_ & bit) != 0) members.duplicate();
  seen_ |= bit;
  if (!reader_.consume_null()) read_attributes(index);
  return true;
}

// The type usually comes first, so its attributes are the ones to look for.
int OneOfReader::find_alternative(std::string_view key) const {
  if (type_ != none && is_name(key, alternative(type_).name())) return type_;
  const int count = static_cast<int>(codec_.alternatives.size());
  for (int index = 0; index < count; ++index) {
    if (is_name(key, alternative(index).name())) return index;
  }
  if (key.size() > codec_.suffix.size() && key.ends_with(codec_.suffix)) {
    reader_.refuse(ErrorCode::invalid_argument, std::string(codec_.unknown_reason),
                   "is for a type that does not exist here.");
  }
  return none;
}

int OneOfReader::read_type() {
  std::string scratch;
  const int type = find_enum(codec_.types, reader_.read_string_view(scratch));
  if (type != none) return type;
  const std::string example(codec_.types.names.front().text);
  reader_.refuse(ErrorCode::invalid_argument, std::string(codec_.unknown_reason),
                 "is a type that does not exist here; one that does is " + example + '.');
}

void OneOfReader::read_attributes(int index) {
  if (attributes_ != none) reader_.invalid("left out: there are attributes already");
  attributes_ = index;
  read_struct(reader_, alternative(index).attributes, alternative(index).emplace(variant_));
}

void OneOfReader::check_agreement() {
  if (attributes_ == none) {
    const std::string_view expected = alternative(std::max(type_, 0)).name();
    reader_.refuse(ErrorCode::invalid_argument, "FIELD_INVALID",
                   (type_ == none ? "must have attributes, such as " : "must have ") +
                       std::string(expected) + '.');
  }
  if (type_ == none || type_ == attributes_) return;
  const auto& fitting = codec_.types.names[static_cast<std::size_t>(attributes_)];
  reader_.refuse(ErrorCode::invalid_argument, "FIELD_INVALID",
                 "has attributes that do not fit its " + std::string(codec_.type_name()) +
                     "; they are those of " + std::string(fitting.text) + '.');
}

}  // namespace

void read_one_of(JsonReader& reader, const OneOfCodec& codec, void* variant, StructCodec fields,
                 void* object) {
  JsonReader::Object members(reader);
  FieldReader field_reader(reader, fields, object);
  OneOfReader one_of(reader, codec, variant);
  while (members.next()) {
    if (field_reader.read(members) || one_of.read(members)) continue;
    unknown_field(reader, members.key(), fields);
  }
  one_of.check_agreement();
}

void write_one_of(JsonWriter& writer, const OneOfCodec& codec, std::size_t index,
                  const void* variant) {
  const AlternativeCodec& alternative = codec.alternatives[index];
  writer.begin_member(alternative.type_and_key);
  write_struct(writer, alternative.attributes, alternative.get(variant));
}

}  // namespace permit
