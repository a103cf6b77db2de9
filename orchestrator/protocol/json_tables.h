// The tables of json_values.h, made of the descriptions of structs, enums and oneofs. Part of
// json_codec.h.
#pragma once

#include <array>
#include <boost/describe.hpp>
#include <cstddef>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include "orchestrator/protocol/json_names.h"
#include "orchestrator/protocol/json_values.h"

namespace permit {

// --- Enums ---

template <class E, class Enumerators = boost::describe::describe_enumerators<E>>
struct EnumTable;

template <class E, template <class...> class List, class... D>
struct EnumTable<E, List<D...>> {
  struct Names {
    static constexpr std::size_t count = sizeof...(D);
    static constexpr std::array<std::string_view, count> enumerators{D::name...};

    static constexpr std::size_t put_prefix(NameBuffer& buffer) {
      if (enum_style<E> != EnumStyle::temporal) return 0;
      const std::size_t before = buffer.size();
      buffer.put_upper_snake(type_name<E>());
      buffer.put('_');
      return buffer.size() - before;
    }
    static constexpr void put(NameBuffer& buffer, std::size_t i) {
      put_prefix(buffer);
      if (enum_style<E> == EnumStyle::lower) {
        buffer.put(enumerators[i]);
      } else {
        buffer.put_upper_snake(enumerators[i]);
      }
    }
  };

  template <std::size_t... I>
  static constexpr std::array<EnumName, sizeof...(D)> make(std::index_sequence<I...>) {
    return {{EnumName{name_table<Names>[I], static_cast<int>(D::value)}...}};
  }
  static constexpr std::size_t prefix_size() {
    NameBuffer buffer(nullptr);
    return Names::put_prefix(buffer);
  }

  static constexpr auto names = make(std::index_sequence_for<D...>());
  static constexpr EnumCodec codec{names, prefix_size()};
};

template <class E>
  requires std::is_enum_v<E>
void read_value(JsonReader& reader, E& value) {
  value = static_cast<E>(read_enum(reader, EnumTable<E>::codec));
}
template <class E>
  requires std::is_enum_v<E>
void write_value(JsonWriter& writer, E value) {
  write_enum(writer, EnumTable<E>::codec, static_cast<int>(value));
}

// --- Structs ---

template <class T>
concept Described = std::is_class_v<T> && boost::describe::has_describe_members<T>::value;

// A type whose JSON null is a value of its own; for all others null means absent.
template <class T>
inline constexpr bool null_is_value = std::is_same_v<T, Payload> || std::is_same_v<T, Payloads> ||
                                      std::is_same_v<T, std::optional<Payload>>;

template <class T>
bool is_zero(const T& value) {
  if constexpr (std::is_same_v<T, Unsupported> || std::is_same_v<T, Ignored>)
    return true;
  else if constexpr (std::is_same_v<T, Bytes> || std::is_same_v<T, Fence> ||
                     std::is_same_v<T, Count>)
    return value == T();
  else if constexpr (std::is_same_v<T, Payload>)
    return value.metadata.empty() && value.data.value.empty();
  else if constexpr (std::is_same_v<T, Payloads>)
    return value.payloads.empty();
  else if constexpr (std::is_same_v<T, RawJson>)
    return value.text.empty();
  else if constexpr (requires { value.empty(); })
    return value.empty();
  else if constexpr (requires { *value; })
    return !value;
  else
    return value == T{};
}

template <class T,
          class Members = boost::describe::describe_members<T, boost::describe::mod_public>>
struct StructTable;

template <class T, class D>
void read_field(JsonReader& reader, void* object) {
  auto& value = static_cast<T*>(object)->*D::pointer;
  if constexpr (!null_is_value<std::remove_reference_t<decltype(value)>>) {
    if (reader.consume_null()) return;
  }
  read_value(reader, value);
}

template <class T, class D>
void write_field(JsonWriter& writer, std::string_view key, const void* object) {
  const auto& value = static_cast<const T*>(object)->*D::pointer;
  using Value = std::remove_cvref_t<decltype(value)>;
  if constexpr (Described<Value>) {
    write_struct_member(writer, key, StructTable<Value>::codec, &value);
  } else if constexpr (!std::is_same_v<Value, Unsupported> && !std::is_same_v<Value, Ignored>) {
    if (is_zero(value)) return;
    writer.begin_member(key);
    write_value(writer, value);
  }
}

template <class T, template <class...> class List, class... D>
struct StructTable<T, List<D...>> {
  static_assert(sizeof...(D) <= 64, "read_struct() keeps track of the fields in 64 bits");

  struct Names {
    static constexpr std::size_t count = sizeof...(D);
    static constexpr std::array<std::string_view, count> members{D::name...};

    static constexpr void put(NameBuffer& buffer, std::size_t i) {
      buffer.put(",\"");
      buffer.put_camel(members[i]);
      buffer.put("\":");
    }
  };

  template <std::size_t... I>
  static constexpr std::array<FieldCodec, sizeof...(D)> make(std::index_sequence<I...>) {
    return {{FieldCodec{name_table<Names>[I], &read_field<T, D>, &write_field<T, D>}...}};
  }

  static constexpr auto fields = make(std::index_sequence_for<D...>());
  static constexpr StructCodec codec{fields};
};

template <Described T>
void read_value(JsonReader& reader, T& value) {
  read_struct(reader, StructTable<T>::codec, &value);
}
template <Described T>
void write_value(JsonWriter& writer, const T& value) {
  write_struct(writer, StructTable<T>::codec, &value);
}

// --- Oneofs ---

// `Spelling` has the texts of OneOfCodec, and `type_prefix` ("EVENT_TYPE_").
template <class Spelling, class Variant>
struct OneOfTable;

template <class Spelling, class... T>
struct OneOfTable<Spelling, std::variant<T...>> {
  using Variant = std::variant<T...>;
  static_assert(sizeof...(T) <= 64, "read_one_of() keeps track of the attributes in 64 bits");

  struct Types {
    static constexpr std::size_t count = sizeof...(T);
    static constexpr std::array<std::string_view, count> alternatives{T::name...};

    static constexpr void put(NameBuffer& buffer, std::size_t i) {
      buffer.put(Spelling::type_prefix);
      buffer.put_upper_snake(alternatives[i]);
    }
  };
  struct Keys {
    static constexpr std::size_t count = sizeof...(T);

    static constexpr void put(NameBuffer& buffer, std::size_t i) {
      buffer.put(Spelling::type_key);
      buffer.put('"');
      Types::put(buffer, i);
      buffer.put("\",\"");
      buffer.put_lower_first(Types::alternatives[i]);
      buffer.put(Spelling::suffix);
      buffer.put("\":");
    }
  };

  template <class A>
  static void* emplace(void* variant) {
    return &static_cast<Variant*>(variant)->template emplace<A>();
  }
  template <class A>
  static const void* get(const void* variant) {
    return std::get_if<A>(static_cast<const Variant*>(variant));
  }

  template <std::size_t... I>
  static constexpr std::array<EnumName, sizeof...(T)> make_types(std::index_sequence<I...>) {
    return {{EnumName{name_table<Types>[I], static_cast<int>(I)}...}};
  }
  static constexpr AlternativeCodec alternative(std::string_view type_and_key,
                                                StructCodec attributes, void* (*emplace)(void*),
                                                const void* (*get)(const void*)) {
    const std::string_view key = type_and_key.substr(type_and_key.rfind(','));
    return {key, type_and_key, attributes, emplace, get};
  }
  template <std::size_t... I>
  static constexpr std::array<AlternativeCodec, sizeof...(T)> make(std::index_sequence<I...>) {
    return {{alternative(name_table<Keys>[I], StructTable<T>::codec, &emplace<T>, &get<T>)...}};
  }

  static constexpr auto types = make_types(std::index_sequence_for<T...>());
  static constexpr auto alternatives = make(std::index_sequence_for<T...>());
  static constexpr OneOfCodec codec{Spelling::type_key, Spelling::suffix, Spelling::unknown_reason,
                                    EnumCodec{types, Spelling::type_prefix.size()}, alternatives};
};

}  // namespace permit
