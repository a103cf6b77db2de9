// JSON of every struct in protocol/, by proto3's rules: lowerCamelCase out, both camelCase and
// snake_case in, zero values left out, 64-bit integers as strings, bytes as base64. Light: the
// templates live in json_codec.h, and json_*.cpp instantiate them for all top-level types. A file
// with described structs of its own includes json_codec.h and says PERMIT_JSON(Type) once.
//
// What is written can be read back, and yields the same value. (But for a payload of ours without
// an encoding that is not in a list; none that was read is one.)
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace permit {

struct Event;

// How payloads are written. Shorthand is the user's own JSON, for people; a payload that would not
// read back the same is written in the long form all the same. Reading always takes both.
enum class PayloadForm { shorthand, long_form };

// Appends `value` to `out`. Throws InvariantViolated for what JSON cannot hold: a number that is
// not finite, a time outside 1970…9999.
template <class T>
void write_json(const T& value, std::string& out, PayloadForm form = PayloadForm::long_form);

template <class T>
std::string to_json(const T& value, PayloadForm form = PayloadForm::long_form) {
  std::string out;
  write_json(value, out, form);
  return out;
}

// Reads exactly one value; strict RFC 8259. Throws Error, invalid_argument but for the last:
// - JSON_INVALID: not JSON, with the offset. JSON_DUPLICATE_KEY: one key twice in one object.
// - JSON_TOO_DEEP, JSON_TOO_LARGE: a …Request over 64 levels, or over 50,000 values (the completion
//   of a workflow task: 200,000). All else, which only a server writes, may hold twice the depth
//   and any number of values.
// - FIELD_UNKNOWN, FIELD_INVALID, ENUM_UNKNOWN, COMMAND_UNKNOWN: names the path and what would do.
// - FIELD_UNSUPPORTED (unimplemented): a field of Temporal's that we do not offer.
// Of a text that another program wrote, with fields and enumerators that we have never heard of,
// the unknown can be skipped; an enumerator is then its type's `unspecified`.
enum class Unknown { refuse, skip };
template <class T>
T read_json(std::string_view text, Unknown unknown = Unknown::refuse);

// Events as the store keeps them (long form, comma-separated, no brackets): one after the other.
void read_events(std::string_view events_json, const std::function<void(Event&&)>& take);

// The same, written in shorthand; calls `after_each`, if there is one, after each event.
std::string events_to_shorthand(std::string_view events_json,
                                const std::function<void()>& after_each = nullptr);

}  // namespace permit
