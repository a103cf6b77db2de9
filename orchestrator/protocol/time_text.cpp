#include "orchestrator/protocol/time_text.h"

#include <array>
#include <charconv>
#include <chrono>
#include <cstdint>

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

// Text of a bounded length, so that it is appended as a whole: a history has many times in it.
class ShortText {
 public:
  void put(char c) { text_[size_++] = c; }
  // With zeros in front.
  void put(std::uint32_t value, std::size_t width) {
    for (std::size_t at = size_ + width; at > size_; value /= 10) {
      text_[--at] = static_cast<char>('0' + value % 10);
    }
    size_ += width;
  }
  void put_fraction(std::uint32_t micros) {
    if (micros == 0) return;
    put('.');
    if (micros % 1000 == 0) {
      put(micros / 1000, 3);
    } else {
      put(micros, 6);
    }
  }
  void append_to(std::string& out) const { out.append(text_.data(), size_); }

 private:
  std::array<char, 32> text_;
  std::size_t size_ = 0;
};

}  // namespace

void append_time(Time time, std::string& out) {
  ENSURE(time >= time_min && time < time_end);
  const sys_days day = std::chrono::floor<days>(time);
  const year_month_day date(day);
  const auto micros = (time - day).count();
  const auto second = static_cast<std::uint32_t>(micros / micros_per_second);
  ShortText text;
  text.put(static_cast<std::uint32_t>(int(date.year())), 4);
  text.put('-');
  text.put(unsigned(date.month()), 2);
  text.put('-');
  text.put(unsigned(date.day()), 2);
  text.put('T');
  text.put(second / 3600, 2);
  text.put(':');
  text.put(second / 60 % 60, 2);
  text.put(':');
  text.put(second % 60, 2);
  text.put_fraction(static_cast<std::uint32_t>(micros % micros_per_second));
  text.put('Z');
  text.append_to(out);
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

void append_duration(Duration duration, std::string& out) {
  const std::int64_t micros = duration.count();
  ENSURE(micros <= duration_seconds_max * micros_per_second);
  ENSURE(micros >= -duration_seconds_max * micros_per_second);
  const std::int64_t size = micros < 0 ? -micros : micros;
  if (micros < 0) out += '-';
  char digits[20];
  const auto end = std::to_chars(digits, digits + sizeof digits, size / micros_per_second).ptr;
  out.append(digits, end);
  ShortText fraction;
  fraction.put_fraction(static_cast<std::uint32_t>(size % micros_per_second));
  fraction.put('s');
  fraction.append_to(out);
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
