#include "orchestrator/protocol/json_codec.h"

namespace permit {
namespace {

struct CommandSpelling {
  static constexpr std::string_view type_key = ",\"commandType\":";
  static constexpr std::string_view type_prefix = "COMMAND_TYPE_";
  static constexpr std::string_view suffix = "CommandAttributes";
  static constexpr std::string_view unknown_reason = "COMMAND_UNKNOWN";
};
using Table = OneOfTable<CommandSpelling, CommandVariant>;

}  // namespace

// What stands in a command beside its type and attributes.
struct CommandHead {
  std::optional<UserMetadata> user_metadata;
};
BOOST_DESCRIBE_STRUCT(CommandHead, (), (user_metadata))

void read_value(JsonReader& reader, Command& value) {
  CommandHead head;
  CommandVariant& attributes = value.attributes;
  read_one_of(reader, Table::codec, &attributes, StructTable<CommandHead>::codec, &head);
  value.user_metadata = std::move(head.user_metadata);
}

// A command takes far more memory than text, so what is too many is not read first.
void read_value(JsonReader& reader, std::vector<Command>& value) {
  JsonReader::Array elements(reader);
  while (elements.next()) {
    if (value.size() == commands_max) {
      throw invalid_argument("COMMANDS_LIMIT", "a completion may carry at most " +
                                                   std::to_string(commands_max) + " commands");
    }
    read_value(reader, value.emplace_back());
  }
}

void write_value(JsonWriter& writer, const Command& value) {
  writer.out += '{';
  const CommandVariant& attributes = value.attributes;
  write_one_of(writer, Table::codec, attributes.index(), &attributes);
  if (value.user_metadata) {
    writer.begin_member(",\"userMetadata\":");
    write_value(writer, *value.user_metadata);
  }
  writer.out += '}';
}

PERMIT_JSON(Command)

// The structs that commands share with the other messages.
PERMIT_JSON(Failure)
PERMIT_JSON(Payload)
PERMIT_JSON(Payloads)
PERMIT_JSON(Header)
PERMIT_JSON(Memo)
PERMIT_JSON(PermitRequest)
PERMIT_JSON(Priority)
PERMIT_JSON(RetryPolicy)

}  // namespace permit
