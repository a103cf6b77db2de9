#include "orchestrator/protocol/time_text.h"

#include <array>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstring>

#include "orchestrator/protocol/ensure.h"
#include "orchestrator/protocol/json_text.h"

namespace permit {
namespace {

using std::chrono::days;
using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;
using std::chrono::sys_days;
using std::chrono::year;
using std::chrono::year_month_day;

constexpr Time time_min{};
constexpr Time time_end = sys_days(year(10000) / 1 / 1);
constexpr std::int64_t duration_seconds_max = 315'576'000'000;
constexpr std::int64_t micros_per_second = 1'000'000;

// Takes text from the front as long as it has the expected form; remembers if it did not.
class Cursor {
 public:
  explicit Cursor(std::string_view text) : text_(text) {}

  bool at_end() const { return text_.empty(); }
  bool take(char c) {
    if (text_.empty() || text_.front() != c) return false;
    text_.remove_prefix(1);
    return true;
  }
  void expect(char c) { ok_ = take(c) && ok_; }

  // Exactly `count` digits.
  int digits(int count) {
    int value = 0;
    for (; count > 0; --count) value = value * 10 + digit();
    return value;
  }

  // As many digits as there are; not more than fit, and no leading zero.
  std::int64_t integer() {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), value);
    const auto size = static_cast<std::size_t>(end - text_.data());
    ok_ = ok_ && error == std::errc() && is_digit(text_.front()) &&
          (size == 1 || text_.front() != '0');
    text_.remove_prefix(size);
    return value;
  }

  // ".5" and the like, if there is one, in microseconds.
  std::int64_t fraction() {
    if (!take('.')) return 0;
    std::int64_t value = 0;
    int count = 0;
    for (; !text_.empty() && is_digit(text_.front()); ++count) {
      const int next = digit();
      if (count < 6) value = value * 10 + next;
    }
    ok_ = ok_ && count >= 1 && count <= 9;
    for (; count < 6; ++count) value *= 10;
    return value;
  }

  bool ok() const { return ok_; }

 private:
  int digit() {
    if (text_.empty() || !is_digit(text_.front())) {
      ok_ = false;
      return 0;
    }
    const int value = text_.front() - '0';
    text_.remove_prefix(1);
    return value;
  }

  std::string_view text_;
  bool ok_ = true;
};

// "Z", or "+02:00" as the minutes to take away.
minutes parse_offset(Cursor& cursor, bool& ok) {
  if (cursor.take('Z')) return minutes(0);
  const bool negative = cursor.take('-');
  if (!negative) cursor.expect('+');
  const int hour = cursor.digits(2);
  cursor.expect(':');
  const int minute = cursor.digits(2);
  ok = ok && hour <= 23 && minute <= 59;
  const minutes offset = hours(hour) + minutes(minute);
  return negative ? -offset : offset;
}

// "000102…99": a history has many times in it, so digits are put in pairs.
constexpr std::array<char, 200> make_digit_pairs() {
  std::array<char, 200> pairs{};
  for (std::size_t i = 0; i < 100; ++i) {
    pairs[2 * i] = static_cast<char>('0' + i / 10);
    pairs[2 * i + 1] = static_cast<char>('0' + i % 10);
  }
  return pairs;
}
constexpr std::array<char, 200> digit_pairs = make_digit_pairs();

void put_2(std::uint32_t value, char* to) {
  std::memcpy(to, &digit_pairs[2 * std::size_t{value}], 2);
}
void put_6(std::uint32_t value, char* to) {
  put_2(value / 10'000, to);
  put_2(value / 100 % 100, to + 2);
  put_2(value % 100, to + 4);
}

// "2026-08-01". Most times are of one day, so the last one is kept.
constexpr std::size_t date_size = 10;
void put_date(sys_days day, char* to) {
  thread_local sys_days last = sys_days::max();
  thread_local char text[] = "0000-00-00";
  if (day != last) {
    const year_month_day date(day);
    const auto years = static_cast<std::uint32_t>(int(date.year()));
    put_2(years / 100 % 100, text);
    put_2(years % 100, text + 2);
    put_2(unsigned(date.month()), text + 5);
    put_2(unsigned(date.day()), text + 8);
    last = day;
  }
  std::memcpy(to, text, date_size);
}

// "2026-08-01T12:00:00"; returns the microseconds that are left.
constexpr std::size_t seconds_size = 19;
std::uint32_t put_seconds(Time time, char* to) {
  const sys_days day = std::chrono::floor<days>(time);
  const auto micros = static_cast<std::uint64_t>((time - day).count());
  const auto second = static_cast<std::uint32_t>(micros / micros_per_second);
  put_date(day, to);
  std::memcpy(to + date_size, "T00:00:00", seconds_size - date_size);
  put_2(second / 3600, to + 11);
  put_2(second / 60 % 60, to + 14);
  put_2(second % 60, to + 17);
  return static_cast<std::uint32_t>(micros % micros_per_second);
}

// ".5", to milliseconds if that is all there is; returns its end.
char* put_fraction(std::uint32_t micros, char* to) {
  if (micros == 0) return to;
  *to++ = '.';
  if (micros % 1000 == 0) {
    put_2(micros / 10'000, to);
    to[2] = static_cast<char>('0' + micros / 1000 % 10);
    return to + 3;
  }
  put_6(micros, to);
  return to + 6;
}

}  // namespace

char* put_time(Time time, char* to) {
  ENSURE(time >= time_min && time < time_end);
  char* end = put_fraction(put_seconds(time, to), to + seconds_size);
  *end++ = 'Z';
  return end;
}

void append_time(Time time, std::string& out) {
  char text[32];
  out.append(text, static_cast<std::size_t>(put_time(time, text) - text));
}

void append_moment(Time time, std::string& out) {
  char text[32];
  const std::uint32_t micros = put_seconds(time, text);
  text[seconds_size] = '.';
  put_6(micros, text + seconds_size + 1);
  text[seconds_size + 7] = 'Z';
  out.append(text, seconds_size + 8);
}

std::string format_time(Time time) {
  std::string out;
  append_time(time, out);
  return out;
}

std::optional<Time> parse_time(std::string_view text) {
  Cursor cursor(text);
  const year y(cursor.digits(4));
  cursor.expect('-');
  const std::chrono::month m(static_cast<unsigned>(cursor.digits(2)));
  cursor.expect('-');
  const std::chrono::day d(static_cast<unsigned>(cursor.digits(2)));
  cursor.expect('T');
  const int hour = cursor.digits(2);
  cursor.expect(':');
  const int minute = cursor.digits(2);
  cursor.expect(':');
  const int second = cursor.digits(2);
  const Duration fraction(cursor.fraction());
  bool ok = hour <= 23 && minute <= 59 && second <= 59;
  const minutes offset = parse_offset(cursor, ok);
  const year_month_day date = y / m / d;
  if (!ok || !cursor.ok() || !cursor.at_end() || !date.ok()) return std::nullopt;
  const Time time =
      sys_days(date) + hours(hour) + minutes(minute) + seconds(second) + fraction - offset;
  if (time < time_min || time >= time_end) return std::nullopt;
  return time;
}

char* put_duration(Duration duration, char* to) {
  const std::int64_t micros = duration.count();
  ENSURE(micros <= duration_seconds_max * micros_per_second);
  ENSURE(micros >= -duration_seconds_max * micros_per_second);
  const std::int64_t size = micros < 0 ? -micros : micros;
  if (micros < 0) *to++ = '-';
  to = std::to_chars(to, to + 20, size / micros_per_second).ptr;
  to = put_fraction(static_cast<std::uint32_t>(size % micros_per_second), to);
  *to++ = 's';
  return to;
}

void append_duration(Duration duration, std::string& out) {
  char text[32];
  out.append(text, static_cast<std::size_t>(put_duration(duration, text) - text));
}

std::string format_duration(Duration duration) {
  std::string out;
  append_duration(duration, out);
  return out;
}

std::optional<Duration> parse_duration(std::string_view text) {
  Cursor cursor(text);
  const bool negative = cursor.take('-');
  if (cursor.at_end()) return std::nullopt;
  const std::int64_t second = cursor.integer();
  const std::int64_t micros = cursor.fraction();
  cursor.expect('s');
  if (!cursor.ok() || !cursor.at_end() || second > duration_seconds_max) return std::nullopt;
  if (second == duration_seconds_max && micros != 0) return std::nullopt;
  const Duration duration(second * micros_per_second + micros);
  return negative ? -duration : duration;
}

}  // namespace permit
