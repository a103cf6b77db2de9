#include "worker/convert.h"

namespace permit::worker {

Payload payload_of(const nlohmann::json& value) { return json_payload(value.dump()); }

nlohmann::json json_of(const Payload& payload) { return nlohmann::json::parse(payload.data.value); }

ConversionFailed does_not_convert(const Payload& payload, const nlohmann::json::exception& error) {
  return ConversionFailed(std::string("a payload does not convert: ") + error.what() + ", in " +
                          payload.data.value.substr(0, 200));
}

}  // namespace permit::worker
