#include "orchestrator/protocol/trace.h"

#include <algorithm>

namespace permit {

namespace {

// In small letters only.
bool is_hex(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

bool is_id(std::string_view text) {
  return is_hex(text) && text.find_first_not_of('0') != std::string_view::npos;
}

}  // namespace

//   version "-" trace-id "-" parent-id "-" flags        2, 32, 16 and 2 digits
//
// Later versions may have more behind another "-"; version ff does not exist.
std::optional<TraceContext> parse_traceparent(std::string_view text) {
  constexpr std::size_t size = 55;
  if (text.size() < size || text.size() > 512) return std::nullopt;
  const std::string_view version = text.substr(0, 2);
  const std::string_view trace_id = text.substr(3, 32);
  const std::string_view span_id = text.substr(36, 16);
  if (text[2] != '-' || text[35] != '-' || text[52] != '-') return std::nullopt;
  if (!is_hex(version) || version == "ff" || !is_hex(text.substr(53, 2))) return std::nullopt;
  if (!is_id(trace_id) || !is_id(span_id)) return std::nullopt;
  if (text.size() > size && (version == "00" || text[size] != '-')) return std::nullopt;
  return TraceContext{std::string(text.substr(0, size)), std::string(trace_id),
                      std::string(span_id)};
}

}  // namespace permit
