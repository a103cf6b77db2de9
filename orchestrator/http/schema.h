// What our structs look like in JSON, as JSON Schema for /openapi.json: made of the same
// descriptions and the same tables of names as the codec (protocol/json_codec.h), so that the two
// agree.
#pragma once

#include <boost/describe.hpp>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <typeindex>
#include <vector>

#include "orchestrator/protocol/json_tables.h"
#include "orchestrator/protocol/request.h"

namespace permit::http {

class Schemas;
template <class T>
struct Is {};  // stands for the type in the overloads of schema()

// The schemas that others refer to by name.
class Schemas {
 public:
  using Maker = std::string (*)(Schemas&);

  // A reference to the schema of that name, which `make` makes the first time. One name is one
  // type: anything else throws InvariantViolated.
  std::string refer(const std::string& name, std::type_index type, Maker make);

  const std::map<std::string, std::string>& definitions() const { return definitions_; }

 private:
  std::map<std::string, std::string> definitions_;
  std::map<std::string, std::type_index> types_;
};

// An object: `,"name":schema` after `,"name":schema`.
std::string object_schema(std::string_view properties);
std::string string_schema(const EnumCodec& names);

std::string schema(Schemas& schemas, Is<bool>);
std::string schema(Schemas& schemas, Is<std::int32_t>);
std::string schema(Schemas& schemas, Is<std::int64_t>);  // a string
std::string schema(Schemas& schemas, Is<double>);
std::string schema(Schemas& schemas, Is<std::string>);
std::string schema(Schemas& schemas, Is<Time>);
std::string schema(Schemas& schemas, Is<Duration>);
std::string schema(Schemas& schemas, Is<Bytes>);
std::string schema(Schemas& schemas, Is<Fence>);
std::string schema(Schemas& schemas, Is<Count>);
std::string schema(Schemas& schemas, Is<Payload>);
std::string schema(Schemas& schemas, Is<Payloads>);
std::string schema(Schemas& schemas, Is<Event>);
std::string schema(Schemas& schemas, Is<Command>);
std::string schema(Schemas& schemas, Is<RawHistory>);  // its text is that of events
std::string schema(Schemas& schemas, Is<Sample>);

template <class Tag>
std::string schema(Schemas& schemas, Is<Name<Tag>>) {
  return schema(schemas, Is<std::string>());
}
template <class T>
std::string schema(Schemas& schemas, Is<std::optional<T>>) {
  return schema(schemas, Is<T>());
}
template <class T>
std::string schema(Schemas& schemas, Is<Box<T>>) {
  return schema(schemas, Is<T>());
}
template <class T>
std::string schema(Schemas& schemas, Is<std::vector<T>>) {
  return R"({"type":"array","items":)" + schema(schemas, Is<T>()) + "}";
}
template <class T>
std::string schema(Schemas& schemas, Is<std::map<std::string, T>>) {
  return R"({"type":"object","additionalProperties":)" + schema(schemas, Is<T>()) + "}";
}

template <class E>
  requires std::is_enum_v<E>
std::string schema(Schemas& schemas, Is<E>) {
  return schemas.refer(std::string(type_name<E>()), typeid(E),
                       [](Schemas&) { return string_schema(EnumTable<E>::codec); });
}

// `,"runId":` for run_id, by the codec's own rule.
std::string key_of(std::string_view snake_case_name);

// Nothing for a field of Temporal's that we do not offer.
template <class Member>
void append_property(Schemas& schemas, std::string_view name, std::string& out) {
  if constexpr (!std::is_same_v<Member, Unsupported> && !std::is_same_v<Member, Ignored>) {
    out += key_of(name);
    out += schema(schemas, Is<Member>());
  }
}

template <class T, template <class...> class List, class... D>
std::string struct_schema(Schemas& schemas, Is<List<D...>>) {
  std::string out;
  (append_property<std::remove_cvref_t<decltype(std::declval<T&>().*D::pointer)>>(schemas, D::name,
                                                                                  out),
   ...);
  return object_schema(out);
}
template <class T>
std::string struct_schema(Schemas& schemas) {
  using Members = boost::describe::describe_members<T, boost::describe::mod_public>;
  return struct_schema<T>(schemas, Is<Members>());
}

template <Described T>
std::string schema(Schemas& schemas, Is<T>) {
  return schemas.refer(std::string(type_name<T>()), typeid(T), &struct_schema<T>);
}

template <class T>
std::string schema_of(Schemas& schemas) {
  return schema(schemas, Is<T>());
}

}  // namespace permit::http
