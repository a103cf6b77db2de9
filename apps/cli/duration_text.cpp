#include "apps/cli/duration_text.h"

#include <array>
#include <charconv>
#include <cstdio>

#include "apps/cli/command_line.h"

namespace permit::cli {

namespace {

using namespace std::chrono_literals;

struct Unit {
  std::string_view name;
  Duration length;
};
constexpr std::array<Unit, 5> units = {
    {{"d", 24h}, {"h", 1h}, {"m", 1min}, {"s", 1s}, {"ms", 1ms}}};

constexpr double longest_seconds = 365.0 * 24 * 3600;

std::string two(std::int64_t large, const char* large_unit, std::int64_t small,
                const char* small_unit) {
  char text[64];
  std::snprintf(text, sizeof text, "%lld%s %02lld%s", static_cast<long long>(large), large_unit,
                static_cast<long long>(small), small_unit);
  return text;
}

}  // namespace

Duration parse_human_duration(const std::string& what, std::string_view text) {
  const auto fail = [&](const std::string& why) -> UsageError {
    return UsageError(what + ": \"" + std::string(text) + "\" is not a duration; " + why);
  };
  if (text.empty()) throw fail("write 45s, 10m, 1h30m");
  double seconds = 0;
  std::size_t last_unit = 0;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at != end) {
    double number = 0;
    const auto [after, error] = std::from_chars(at, end, number, std::chars_format::fixed);
    if (error != std::errc() || number < 0) throw fail("write 45s, 10m, 1h30m");
    const char* unit_end = after;
    while (unit_end != end && *unit_end >= 'a' && *unit_end <= 'z') ++unit_end;
    const std::string_view name(after, static_cast<std::size_t>(unit_end - after));
    if (name.empty()) {
      const std::string digits(at, static_cast<std::size_t>(after - at));
      std::string advice = "say " + digits;
      advice += "s or " + digits;
      throw fail(advice + "m");
    }
    std::size_t unit = 0;
    while (unit < units.size() && units[unit].name != name) ++unit;
    if (unit == units.size()) throw fail("its units are d, h, m, s and ms");
    if (at != text.data() && unit <= last_unit) throw fail("its units go from large to small");
    last_unit = unit;
    seconds += number * std::chrono::duration<double>(units[unit].length).count();
    at = unit_end;
  }
  if (seconds > longest_seconds) throw fail("the longest is 365d");
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds + 5e-7));
}

std::string show_duration(Duration duration) {
  if (duration < Duration(0)) return "-" + show_duration(-duration);
  if (duration < 1s) {
    return std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(duration).count()) +
           "ms";
  }
  const std::int64_t seconds = std::chrono::duration_cast<std::chrono::seconds>(duration).count();
  if (seconds < 60) return std::to_string(seconds) + "s";
  if (seconds < 3600) return two(seconds / 60, "m", seconds % 60, "s");
  if (seconds < 24 * 3600) return two(seconds / 3600, "h", seconds / 60 % 60, "m");
  return two(seconds / 86400, "d", seconds / 3600 % 24, "h");
}

std::string type_duration(Duration duration) {
  std::string text;
  for (const Unit& unit : units) {
    const std::int64_t count = duration / unit.length;
    if (count == 0) continue;
    text += std::to_string(count) + std::string(unit.name);
    duration -= count * unit.length;
  }
  return text.empty() ? "0s" : text;
}

}  // namespace permit::cli
