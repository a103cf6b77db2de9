#include "orchestrator/protocol/json_codec.h"

namespace permit {
namespace {

struct EventSpelling {
  static constexpr std::string_view type_key = ",\"eventType\":";
  static constexpr std::string_view type_prefix = "EVENT_TYPE_";
  static constexpr std::string_view suffix = "EventAttributes";
  static constexpr std::string_view unknown_reason = "ENUM_UNKNOWN";
};
using Table = OneOfTable<EventSpelling, EventVariant>;

}  // namespace

// What stands in an event beside its type and attributes.
struct EventHead {
  std::int64_t event_id = 0;
  Time event_time{};
  Ignored version{};
  Ignored task_id{};
  std::optional<UserMetadata> user_metadata;
  Ignored links{};
  Ignored worker_may_ignore{};
};
BOOST_DESCRIBE_STRUCT(EventHead, (),
                      (event_id, event_time, version, task_id, user_metadata, links,
                       worker_may_ignore))

void read_value(JsonReader& reader, Event& value) {
  EventHead head;
  EventVariant& attributes = value.attributes;
  read_one_of(reader, Table::codec, &attributes, StructTable<EventHead>::codec, &head);
  value.event_id = head.event_id;
  value.event_time = head.event_time;
  value.user_metadata = std::move(head.user_metadata);
}

void write_value(JsonWriter& writer, const Event& value) {
  writer.out += '{';
  if (value.event_id != 0) {
    writer.begin_member(",\"eventId\":");
    write_value(writer, value.event_id);
  }
  if (is_set(value.event_time)) {
    writer.begin_member(",\"eventTime\":");
    write_value(writer, value.event_time);
  }
  const EventVariant& attributes = value.attributes;
  write_one_of(writer, Table::codec, attributes.index(), &attributes);
  if (value.user_metadata) {
    writer.begin_member(",\"userMetadata\":");
    write_value(writer, *value.user_metadata);
  }
  writer.out += '}';
}

void read_events(std::string_view events_json, const std::function<void(Event&&)>& take) {
  std::string list = "[";
  list += events_json;
  list += ']';
  JsonReader reader(list, own_text);
  JsonReader::Array elements(reader);
  while (elements.next()) {
    Event event;
    read_value(reader, event);
    take(std::move(event));
  }
  reader.finish();
}

std::string events_to_shorthand(std::string_view events_json,
                                const std::function<void()>& after_each) {
  std::string out;
  read_events(events_json, [&](const Event& event) {
    if (!out.empty()) out += ',';
    write_json(event, out, PayloadForm::shorthand);
    if (after_each) after_each();
  });
  return out;
}

PERMIT_JSON(Event)
PERMIT_JSON(std::vector<Event>)

}  // namespace permit
