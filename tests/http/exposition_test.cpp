#include "orchestrator/http/exposition.h"

#include <doctest/doctest.h>

namespace permit::http {
namespace {

using Format = Exposition::Format;
using Type = Exposition::Type;
using namespace std::chrono_literals;

constexpr auto bounds = service::histogram_bounds::make(100ms, 1s);

std::string text_of(Format format) {
  Exposition out(format);
  out.family("waits_total", Type::counter, "Waits.");
  out.sample(Labels().add("pool", "a"), std::int64_t{3});
  out.family("wait_seconds", Type::histogram, "How long.");
  service::Histogram<bounds> histogram;
  histogram.observe(50ms);
  histogram.observe(2s);
  out.sample(Labels().add("pool", "a"), histogram);
  out.sample(Labels(), histogram);
  return out.finish();
}

TEST_CASE("the text format has families, cumulative buckets and sums in seconds") {
  CHECK(text_of(Format::prometheus) == R"(# HELP waits_total Waits.
# TYPE waits_total counter
waits_total{pool="a"} 3
# HELP wait_seconds How long.
# TYPE wait_seconds histogram
wait_seconds_bucket{pool="a",le="0.1"} 1
wait_seconds_bucket{pool="a",le="1.0"} 1
wait_seconds_bucket{pool="a",le="+Inf"} 2
wait_seconds_count{pool="a"} 2
wait_seconds_sum{pool="a"} 2.05
wait_seconds_bucket{le="0.1"} 1
wait_seconds_bucket{le="1.0"} 1
wait_seconds_bucket{le="+Inf"} 2
wait_seconds_count 2
wait_seconds_sum 2.05
)");
}

TEST_CASE("OpenMetrics names a counter without its suffix, and ends with EOF") {
  const std::string text = text_of(Format::openmetrics);
  CHECK(text.starts_with("# HELP waits Waits.\n# TYPE waits counter\nwaits_total{"));
  CHECK(text.ends_with("\n# EOF\n"));
}

TEST_CASE("whoever accepts OpenMetrics at least as gladly gets it") {
  const auto format = [](const std::string& accept) { return Exposition::format_for(&accept); };
  CHECK(Exposition::format_for(nullptr) == Format::prometheus);
  CHECK(format("*/*") == Format::prometheus);
  CHECK(format("text/plain") == Format::prometheus);
  CHECK(format("application/openmetrics-text") == Format::openmetrics);
  CHECK(format("application/openmetrics-text;version=1.0.0,text/plain;q=0.5") ==
        Format::openmetrics);
  CHECK(format("text/plain;version=0.0.4,application/openmetrics-text;q=0.3") ==
        Format::prometheus);
  CHECK(format("application/openmetrics-text;q=0") == Format::prometheus);
}

TEST_CASE("labels cannot break out of their quotes") {
  CHECK(Labels().add("a", "x\"} 1\n# \\").text() == R"(a="x\"} 1\n# \\")");
}

}  // namespace
}  // namespace permit::http
