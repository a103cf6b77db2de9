#include "orchestrator/protocol/time_text.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <string>

#include "orchestrator/protocol/ensure.h"

namespace permit {
namespace {

constexpr std::int64_t noon = 1'785'585'600'000'000;  // 2026-08-01T12:00:00Z
constexpr std::int64_t last = 253'402'300'799'999'999;

std::int64_t micros_of(const std::string& text) {
  const auto time = parse_time(text);
  REQUIRE_MESSAGE(time.has_value(), text);
  return time->time_since_epoch().count();
}

}  // namespace

TEST_CASE("a time is written with 0, 3 or 6 digits of fraction and read back") {
  const struct {
    std::int64_t micros;
    std::string text;
  } rows[] = {
      {0, "1970-01-01T00:00:00Z"},
      {1, "1970-01-01T00:00:00.000001Z"},
      {noon, "2026-08-01T12:00:00Z"},
      {noon + 100'000, "2026-08-01T12:00:00.100Z"},
      {noon + 123'000, "2026-08-01T12:00:00.123Z"},
      {noon + 123'456, "2026-08-01T12:00:00.123456Z"},
      {951'827'696'000'000, "2000-02-29T12:34:56Z"},
      {last, "9999-12-31T23:59:59.999999Z"},
  };
  for (const auto& row : rows) {
    CHECK(format_time(Time(Duration(row.micros))) == row.text);
    CHECK(micros_of(row.text) == row.micros);
  }
  CHECK_THROWS_AS(format_time(Time(Duration(-1))), InvariantViolated);
  CHECK_THROWS_AS(format_time(Time(Duration(last + 1))), InvariantViolated);
  CHECK_THROWS_AS(format_time(never), InvariantViolated);
}

TEST_CASE("a time is read with an offset and up to nine digits of fraction, cut off") {
  CHECK(micros_of("2026-08-01T14:00:00+02:00") == noon);
  CHECK(micros_of("2026-08-01T06:30:00-05:30") == noon);
  CHECK(micros_of("1969-12-31T23:00:00-01:00") == 0);
  CHECK(micros_of("2026-08-01T12:00:00.5Z") == noon + 500'000);
  CHECK(micros_of("2026-08-01T12:00:00.1234567Z") == noon + 123'456);
  CHECK(micros_of("2026-08-01T12:00:00.999999999Z") == noon + 999'999);
  CHECK(micros_of("2026-08-01T12:00:00.000000999Z") == noon);
  CHECK(micros_of("2026-08-01T12:00:00+00:00") == noon);
}

TEST_CASE("what is not quite a time is refused") {
  for (const std::string text : {"",
                                 "2026-08-01",
                                 "2026-08-01T12:00:00",
                                 "2026-08-01 12:00:00Z",
                                 "2026-08-01t12:00:00z",
                                 "2026-8-01T12:00:00Z",
                                 "2026-02-29T12:00:00Z",
                                 "2026-13-01T00:00:00Z",
                                 "2026-00-01T00:00:00Z",
                                 "2026-01-00T00:00:00Z",
                                 "2026-08-01T24:00:00Z",
                                 "2026-08-01T12:60:00Z",
                                 "2026-08-01T12:00:60Z",
                                 "2026-08-01T12:00:00.Z",
                                 "2026-08-01T12:00:00.1234567890Z",
                                 "2026-08-01T12:00:00+0200",
                                 "2026-08-01T12:00:00+24:00",
                                 "2026-08-01T12:00:00+02:60",
                                 "2026-08-01T12:00:00ZZ",
                                 "2026-08-01T12:00:00Z ",
                                 "-026-08-01T12:00:00Z",
                                 "+2026-08-01T12:00:00Z",
                                 "20260801T120000Z",
                                 "1785585600",
                                 "1969-12-31T23:59:59Z",
                                 "1970-01-01T00:00:00+00:01",
                                 "9999-12-31T23:59:59-00:01",
                                 "10000-01-01T00:00:00Z",
                                 "0000-00-00T00:00:00Z",
                                 "2026-08-01T12:00:00,5Z"}) {
    CAPTURE(text);
    CHECK(!parse_time(text));
  }
}

TEST_CASE("a duration is written in seconds and read back") {
  constexpr std::int64_t longest = 315'576'000'000'000'000;
  const struct {
    std::int64_t micros;
    std::string text;
  } rows[] = {
      {0, "0s"},
      {90'000'000, "90s"},
      {500'000, "0.500s"},
      {1'000'001, "1.000001s"},
      {-1, "-0.000001s"},
      {-1'500'000, "-1.500s"},
      {longest, "315576000000s"},
      {-longest, "-315576000000s"},
  };
  for (const auto& row : rows) {
    CHECK(format_duration(Duration(row.micros)) == row.text);
    CHECK(parse_duration(row.text) == Duration(row.micros));
  }
  CHECK_THROWS_AS(format_duration(Duration(longest + 1)), InvariantViolated);
  CHECK_THROWS_AS(format_duration(Duration::min()), InvariantViolated);
  CHECK(parse_duration("0.5s") == Duration(500'000));
  CHECK(parse_duration("1.123456789s") == Duration(1'123'456));
  CHECK(parse_duration("-0.0000009s") == Duration(0));
}

TEST_CASE("what is not quite a duration is refused") {
  for (const std::string text : {"",
                                 "s",
                                 "-",
                                 "-s",
                                 "90",
                                 "1m",
                                 "1h",
                                 "1ms",
                                 "90 s",
                                 " 90s",
                                 "90s ",
                                 "+90s",
                                 "--90s",
                                 ".5s",
                                 "1.s",
                                 "1.1234567890s",
                                 "1e3s",
                                 "01s",
                                 "00s",
                                 "0x5s",
                                 "1,5s",
                                 "infs",
                                 "nans",
                                 "1.-5s",
                                 "315576000001s",
                                 "315576000000.1s",
                                 "9223372036854775807s",
                                 "99999999999999999999s",
                                 "1000000000000s",
                                 "90S",
                                 "1s1s"}) {
    CAPTURE(text);
    CHECK(!parse_duration(text));
  }
}

}  // namespace permit
