// What users hand us: opaque bytes with metadata. The server never looks inside and never writes
// user JSON anew: a value given in shorthand is kept as the bytes it came as.
#pragma once

#include <boost/describe.hpp>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace permit {

// Raw bytes; base64 on the wire.
struct Bytes {
  std::string value;
  auto operator<=>(const Bytes&) const = default;
};

// JSON shorthand (in and out): a value of the user's. Long form: {"metadata":{},"data":""}.
struct Payload {
  std::vector<std::pair<std::string, Bytes>> metadata;  // "encoding" first
  Bytes data;
  bool operator==(const Payload&) const = default;
};

// JSON shorthand: an array of values. Long form: {"payloads":[…]}.
struct Payloads {
  std::vector<Payload> payloads;
  bool operator==(const Payloads&) const = default;
};

using PayloadMap = std::map<std::string, Payload>;

struct Header {
  PayloadMap fields;
};
BOOST_DESCRIBE_STRUCT(Header, (), (fields))

struct Memo {
  PayloadMap fields;
};
BOOST_DESCRIBE_STRUCT(Memo, (), (fields))

struct SearchAttributes {
  PayloadMap indexed_fields;
};
BOOST_DESCRIBE_STRUCT(SearchAttributes, (), (indexed_fields))

struct UserMetadata {
  Payload summary;
  Payload details;
};
BOOST_DESCRIBE_STRUCT(UserMetadata, (), (summary, details))

// A JSON value of the plain/json encoding; `json` must be valid JSON text.
inline Payload json_payload(std::string json) {
  Payload payload;
  payload.metadata.emplace_back("encoding", Bytes{"json/plain"});
  payload.data.value = std::move(json);
  return payload;
}
inline Payloads json_payloads(std::string json) {
  Payloads payloads;
  payloads.payloads.push_back(json_payload(std::move(json)));
  return payloads;
}

}  // namespace permit
