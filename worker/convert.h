// User values ↔ payloads: plain JSON by nlohmann, member names as written, numbers as numbers.
// One payload an argument; void is no payload at all.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "orchestrator/protocol/payload.h"
#include "worker/failures.h"

namespace permit::worker {

// In convert.cpp, so that not every file compiles a parser.
Payload payload_of(const nlohmann::json& value);
nlohmann::json json_of(const Payload& payload);
ConversionFailed does_not_convert(const Payload& payload, const nlohmann::json::exception& error);

template <class T>
Payload to_payload(const T& value) {
  return payload_of(nlohmann::json(value));
}

template <class T>
T from_payload(const Payload& payload) {
  try {
    return json_of(payload).get<T>();
  } catch (const nlohmann::json::exception& error) {
    throw does_not_convert(payload, error);
  }
}

template <class... Args>
std::optional<Payloads> to_payloads(const Args&... args) {
  if constexpr (sizeof...(Args) == 0) return std::nullopt;
  Payloads payloads;
  (payloads.payloads.push_back(to_payload(args)), ...);
  return payloads;
}

// The one value in `payloads`.
template <class T>
T from_payloads(const std::optional<Payloads>& payloads) {
  if (!payloads || payloads->payloads.empty()) {
    throw ConversionFailed("a value is expected and there is none");
  }
  return from_payload<T>(payloads->payloads.front());
}

// All arguments of a call. More than it takes is an error, as is less.
template <class... Args>
std::tuple<Args...> arguments_from(const std::optional<Payloads>& payloads) {
  const std::size_t given = payloads ? payloads->payloads.size() : 0;
  if (given != sizeof...(Args)) {
    throw ConversionFailed("takes " + std::to_string(sizeof...(Args)) + " arguments, was given " +
                           std::to_string(given));
  }
  return [&]<std::size_t... i>(std::index_sequence<i...>) {
    return std::tuple<Args...>{from_payload<Args>(payloads->payloads[i])...};
  }(std::index_sequence_for<Args...>());
}

}  // namespace permit::worker
