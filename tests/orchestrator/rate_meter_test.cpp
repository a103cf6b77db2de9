#include "orchestrator/service/rate_meter.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

namespace permit::service {
namespace {

using namespace std::chrono_literals;

constexpr Time start{Duration(1'785'585'600'000'000)};  // on a whole step

TEST_CASE("a rate is what happened in the last minute, by the second") {
  RateMeter meter;
  CHECK(meter.per_second(start) == 0);
  for (int second = 0; second < 600; ++second) {
    meter.note(start + second * 1s);
    meter.note(start + second * 1s);
  }
  CHECK(meter.per_second(start + 599s) == doctest::Approx(2).epsilon(0.05));
  CHECK(meter.per_second(start + 630s) == doctest::Approx(1).epsilon(0.1));
  CHECK(meter.per_second(start + 660s) == 0);
  CHECK(meter.per_second(start + 24h) == 0);
}

TEST_CASE("a young meter takes its age for the minute, and five seconds at least") {
  RateMeter meter;
  for (int i = 0; i < 100; ++i) meter.note(start + 2s);
  CHECK(meter.per_second(start + 2s) == 20);
  CHECK(meter.per_second(start + 7s) == 20);
  CHECK(meter.per_second(start + 12s) == 10);
  CHECK(meter.per_second(start + 42s) == 2.5);
}

TEST_CASE("after a long pause a meter counts only what came since") {
  RateMeter meter;
  for (int i = 0; i < 1000; ++i) meter.note(start);
  const Time later = start + 24h + 17s;
  for (int i = 0; i < 57; ++i) meter.note(later);
  CHECK(meter.per_second(later) == 1);  // 55 s and the 2 s of the step that is under way
  CHECK(meter.per_second(later + 58s) == 0);
}

TEST_CASE("pauses of every length leave nothing behind in the ring") {
  for (int pause = 1; pause < 200; ++pause) {
    CAPTURE(pause);
    RateMeter meter;
    meter.note(start);
    const Time later = start + pause * 1s;
    meter.note(later);
    const double counted = pause < 60 ? 2 : 1;
    const double seconds = pause < 60 ? std::max(pause, 5) : 55 + pause % 5;
    CHECK(std::abs(meter.per_second(later) - counted / seconds) <= 0.0051);
    CHECK(meter.per_second(later + 60s) == 0);
  }
}

}  // namespace
}  // namespace permit::service
