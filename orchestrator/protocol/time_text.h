// Times and durations as text, the way proto3's JSON spells them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "orchestrator/protocol/ids.h"

namespace permit {

// "2026-08-01T12:00:00.123456Z": RFC 3339 in UTC with 0, 3 or 6 digits of fraction. Outside the
// years 1970 to 9999 there is no such text, and it throws InvariantViolated.
void append_time(Time time, std::string& out);
std::string format_time(Time time);
// At `to`; returns its end. It takes 32 bytes at most.
char* put_time(Time time, char* to);
// The same for logs, where times stand below each other: always with six digits of fraction. Throws
// nothing.
void append_moment(Time time, std::string& out);

// Takes an offset for Z and 1 to 9 digits of fraction; what is below a microsecond is cut off.
// Empty for anything else, or outside the years 1970 to 9999.
std::optional<Time> parse_time(std::string_view text);

// "90s", "0.500s", "-0.000001s". Throws InvariantViolated outside ±315,576,000,000 s (10,000
// years), the range of a duration.
void append_duration(Duration duration, std::string& out);
char* put_duration(Duration duration, char* to);  // 32 bytes at most, too
std::string format_duration(Duration duration);

// Takes 1 to 9 digits of fraction; what is below a microsecond is cut off. Empty for anything
// else ("90", "1m") or out of range.
std::optional<Duration> parse_duration(std::string_view text);

}  // namespace permit
