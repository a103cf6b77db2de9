// Where in whose trace a request stands: W3C Trace Context, https://www.w3.org/TR/trace-context/.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace permit {

struct TraceContext {
  std::string traceparent;  // as it came
  std::string trace_id;     // 32 hexadecimal digits
  std::string span_id;      // 16: the caller's
};

// "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"; empty for whatever is not exactly one.
std::optional<TraceContext> parse_traceparent(std::string_view text);

// The field of a Temporal header in which its SDKs pass trace contexts on.
inline constexpr std::string_view trace_header_field = "_tracer-data";

}  // namespace permit
