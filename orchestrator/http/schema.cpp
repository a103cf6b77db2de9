#include "orchestrator/http/schema.h"

#include <utility>

#include "orchestrator/protocol/ensure.h"

namespace permit::http {

namespace {

// "timerStarted" + "EventAttributes", as the codec has them.
template <class Put>
std::string named(Put put) {
  NameBuffer counted(nullptr);
  put(counted);
  std::string out(counted.size(), ' ');
  NameBuffer buffer(out.data());
  put(buffer);
  return out;
}

// How events and commands are told apart: a type, and attributes of its own.
struct Spelling {
  std::string_view type_key;
  std::string_view type_prefix;
  std::string_view suffix;
};

template <class Attributes>
void append_alternative(Schemas& schemas, const Spelling& spelling, std::string& types,
                        std::string& keys) {
  const std::string_view name = Attributes::name;
  if (!types.empty()) types += ',';
  types += '"' + std::string(spelling.type_prefix);
  types += named([name](NameBuffer& buffer) { buffer.put_upper_snake(name); }) + '"';
  keys += ",\"" + named([name](NameBuffer& buffer) { buffer.put_lower_first(name); });
  keys.append(spelling.suffix).append("\":");
  keys += schemas.refer(std::string(name).append(spelling.suffix), typeid(Attributes),
                        &struct_schema<Attributes>);
}

template <class... T>
std::string alternatives(Schemas& schemas, const Spelling& spelling, Is<std::variant<T...>>) {
  std::string types, keys;
  (append_alternative<T>(schemas, spelling, types, keys), ...);
  return std::string(spelling.type_key) + R"({"type":"string","enum":[)" + types + "]}" + keys;
}

std::string user_metadata_schema(Schemas& schemas) {
  return R"(,"userMetadata":)" + schema(schemas, Is<UserMetadata>());
}

}  // namespace

std::string Schemas::refer(const std::string& name, std::type_index type, Maker make) {
  const auto [place, is_new] = types_.emplace(name, type);
  ENSURE(place->second == type);
  if (is_new) {
    std::string made = make(*this);
    definitions_.emplace(name, std::move(made));
  }
  return R"({"$ref":"#/components/schemas/)" + name + "\"}";
}

std::string object_schema(std::string_view properties) {
  std::string out = R"({"type":"object")";
  if (!properties.empty()) {
    out += R"(,"properties":{)";
    out += properties.substr(1);
    out += '}';
  }
  return out + "}";
}

std::string key_of(std::string_view snake_case_name) {
  return ",\"" +
         named([snake_case_name](NameBuffer& buffer) { buffer.put_camel(snake_case_name); }) +
         "\":";
}

std::string string_schema(const EnumCodec& names) {
  std::string out = R"({"type":"string","enum":[)";
  for (const EnumName& name : names.names) {
    if (out.back() != '[') out += ',';
    out.append("\"").append(name.text).append("\"");
  }
  return out + "]}";
}

std::string schema(Schemas&, Is<bool>) { return R"({"type":"boolean"})"; }
std::string schema(Schemas&, Is<std::int32_t>) { return R"({"type":"integer","format":"int32"})"; }
std::string schema(Schemas& schemas, Is<std::int64_t>) {
  return schemas.refer("Int64", typeid(std::int64_t), [](Schemas&) {
    return std::string(R"({"type":"string","format":"int64","pattern":"^-?[0-9]+$"})");
  });
}
std::string schema(Schemas&, Is<double>) { return R"({"type":"number","format":"double"})"; }
std::string schema(Schemas&, Is<Sample>) {
  return R"({"anyOf":[{"type":"number"},{"type":"null"}]})";
}
std::string schema(Schemas&, Is<std::string>) { return R"({"type":"string"})"; }
std::string schema(Schemas&, Is<Time>) { return R"({"type":"string","format":"date-time"})"; }
std::string schema(Schemas& schemas, Is<Duration>) {
  return schemas.refer("Duration", typeid(Duration), [](Schemas&) {
    return std::string(R"({"type":"string","pattern":"^-?[0-9]+(\\.[0-9]+)?s$",)"
                       R"("description":"Seconds.","examples":["90s","0.500s"]})");
  });
}
std::string schema(Schemas&, Is<Bytes>) {
  return R"({"type":"string","contentEncoding":"base64"})";
}
std::string schema(Schemas& schemas, Is<Fence>) { return schema(schemas, Is<Count>()); }
std::string schema(Schemas&, Is<Count>) { return R"({"type":"integer","format":"int64"})"; }

std::string schema(Schemas& schemas, Is<Payload>) {
  return schemas.refer("Payload", typeid(Payload), [](Schemas&) {
    return std::string(R"({"description":"A value of the user's: any JSON, or in the long form )"
                       R"({\"metadata\": {}, \"data\": \"\"} with values in base64."})");
  });
}
std::string schema(Schemas& schemas, Is<Payloads>) {
  return schemas.refer("Payloads", typeid(Payloads), [](Schemas& all) {
    const std::string values = schema(all, Is<std::vector<Payload>>());
    return R"({"description":"Values of the user's: an array of any JSON, or in the long form.",)"
           R"("anyOf":[)" +
           values + R"(,{"type":"object","properties":{"payloads":)" + values + "}}]}";
  });
}

std::string schema(Schemas& schemas, Is<Event>) {
  return schemas.refer("HistoryEvent", typeid(Event), [](Schemas& all) {
    return object_schema(R"(,"eventId":)" + schema(all, Is<std::int64_t>()) + R"(,"eventTime":)" +
                         schema(all, Is<Time>()) +
                         alternatives(all, {",\"eventType\":", "EVENT_TYPE_", "EventAttributes"},
                                      Is<EventVariant>()) +
                         user_metadata_schema(all));
  });
}
std::string schema(Schemas& schemas, Is<Command>) {
  return schemas.refer("Command", typeid(Command), [](Schemas& all) {
    return object_schema(alternatives(all,
                                      {",\"commandType\":", "COMMAND_TYPE_", "CommandAttributes"},
                                      Is<CommandVariant>()) +
                         user_metadata_schema(all));
  });
}
std::string schema(Schemas& schemas, Is<RawHistory>) {
  return schemas.refer("History", typeid(RawHistory), [](Schemas& all) {
    return object_schema(R"(,"events":)" + schema(all, Is<std::vector<Event>>()));
  });
}

}  // namespace permit::http
