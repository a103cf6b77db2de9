#include "orchestrator/service/metrics.h"

#include <doctest/doctest.h>

#include "orchestrator/service/metric_ring.h"

namespace permit::service {
namespace {

using namespace std::chrono_literals;

constexpr auto bounds = histogram_bounds::make(1s, 2s, 4s);
using Small = Histogram<bounds>;

TEST_CASE("a histogram's bounds are inclusive, and what is beyond the last is counted too") {
  Small histogram;
  for (const Duration took : {Duration(0), Duration(1s), Duration(1s + 1us), Duration(4s)}) {
    histogram.observe(took);
  }
  histogram.observe(1h);
  histogram.observe(-5s);  // a clock that went back: nothing
  CHECK(histogram.counts() == Small::Counts{3, 1, 1, 1});
  CHECK(histogram.count() == 6);
  CHECK(histogram.sum() == Duration(1h + 6s + 1us));
}

TEST_CASE("bounds rise, or the search for a bucket would go astray") {
  const auto rise = [](const auto& all) {
    return std::is_sorted(all.begin(), all.end()) &&
           std::adjacent_find(all.begin(), all.end()) == all.end();
  };
  CHECK(rise(histogram_bounds::request));
  CHECK(rise(histogram_bounds::long_poll));
  CHECK(rise(histogram_bounds::wait));
  CHECK(rise(histogram_bounds::hold));
  CHECK(rise(histogram_bounds::end_to_end));
  CHECK(rise(histogram_bounds::schedule_to_start));
  CHECK(rise(histogram_bounds::lateness));
  CHECK(rise(histogram_bounds::store));
  CHECK(rise(histogram_bounds::fine));
  CHECK(histogram_bounds::fine.front() == 100us);
}

TEST_CASE("a quantile is interpolated within its bucket") {
  Small histogram;
  const Small empty;
  CHECK(!histogram.quantile_since(empty, 0.5));
  for (int i = 0; i < 4; ++i) histogram.observe(1500ms);
  CHECK(*histogram.quantile_since(empty, 0.5) == doctest::Approx(1.5));
  CHECK(*histogram.quantile_since(empty, 0.25) == doctest::Approx(1.25));
  CHECK(*histogram.quantile_since(empty, 1.0) == doctest::Approx(2.0));
  for (int i = 0; i < 4; ++i) histogram.observe(500ms);
  CHECK(*histogram.quantile_since(empty, 0.5) == doctest::Approx(1.0));
  CHECK(*histogram.quantile_since(empty, 0.25) == doctest::Approx(0.5));
}

TEST_CASE("a quantile beyond the last bound is the last bound") {
  Small histogram;
  histogram.observe(1h);
  CHECK(*histogram.quantile_since(Small(), 0.5) == doctest::Approx(4.0));
}

TEST_CASE("a quantile since then knows nothing of what was before") {
  Small histogram;
  for (int i = 0; i < 1000; ++i) histogram.observe(3s);
  const Small before = histogram;
  CHECK(!histogram.quantile_since(before, 0.95));
  histogram.observe(500ms);
  CHECK(*histogram.quantile_since(before, 0.95) == doctest::Approx(0.95));
}

TEST_CASE("fine quantiles are right to a tenth of their value") {
  using Fine = Histogram<histogram_bounds::fine>;
  for (const Duration took : {Duration(350us), Duration(7ms), Duration(1300ms), Duration(2h)}) {
    Fine histogram;
    for (int i = 0; i < 100; ++i) histogram.observe(took);
    const double exact = static_cast<double>(took.count()) / 1e6;
    CHECK(*histogram.quantile_since(Fine(), 0.5) == doctest::Approx(exact).epsilon(0.17));
  }
}

TEST_CASE("beyond a thousand names the rest share one series") {
  SeriesTable<std::string, std::int64_t> table;
  for (int i = 0; i < 1'500; ++i) ++table.of("queue " + std::to_string(i));
  CHECK(table.named().size() == 1'000);
  REQUIRE(table.other() != nullptr);
  CHECK(*table.other() == 500);
  ++table.of("queue 999");
  CHECK(table.named().at("queue 999") == 2);
  table.erase("queue 3");
  ++table.of("another");
  CHECK(table.named().at("another") == 1);
}

// --- The ring ---

Time at(double seconds) {
  return Time(std::chrono::hours(100)) + Duration(static_cast<std::int64_t>(seconds * 1e6));
}

std::vector<std::optional<double>> values(const ServerHistory& history, const std::string& name) {
  std::vector<std::optional<double>> found;
  for (const HistorySeries& series : history.series) {
    if (series.name != name) continue;
    for (const Sample& sample : series.values) found.push_back(sample.value);
  }
  return found;
}

using Values = std::vector<std::optional<double>>;

TEST_CASE("the ring is empty at the start, and says so") {
  MetricRing ring;
  CHECK(ring.history("1s")->series.size() == MetricRing::series);
  ring.observe(at(0.3), {});
  const ServerHistory history = *ring.history("1s");
  CHECK(!is_set(history.end));
  CHECK(values(history, "acquires").empty());
  CHECK(!ring.history("2s"));
}

TEST_CASE("the ring tells rates, levels and percentiles of each second") {
  MetricRing ring;
  Observation seen;
  ring.observe(at(0), seen);
  seen.totals.acquires = 30;
  seen.totals.expiries = 2;
  seen.requests = 5;
  seen.holds = 7;
  for (int i = 0; i < 100; ++i) seen.totals.wait.observe(1s);
  ring.observe(at(1), seen);
  seen.holds = 3;
  ring.observe(at(2), seen);

  const ServerHistory history = *ring.history("1s");
  CHECK(history.step == "1s");
  CHECK(history.end == at(2));
  CHECK(values(history, "acquires") == Values{30.0, 0.0});
  CHECK(values(history, "expiries") == Values{7200.0, 0.0});
  CHECK(values(history, "requests") == Values{5.0, 0.0});
  CHECK(values(history, "holds") == Values{7.0, 3.0});
  const Values waits = values(history, "wait_p95");
  REQUIRE(waits.size() == 2);
  CHECK(*waits[0] == doctest::Approx(1.0).epsilon(0.17));
  CHECK(!waits[1]);  // nobody was granted anything
}

TEST_CASE("a second in which nobody looked is empty, and what came in it is spread over the gap") {
  MetricRing ring;
  Observation seen;
  ring.observe(at(0), seen);
  seen.totals.acquires = 40;
  ring.observe(at(4), seen);
  CHECK(values(*ring.history("1s"), "acquires") ==
        Values{std::nullopt, std::nullopt, std::nullopt, 10.0});
  CHECK(ring.next_due() == at(5));
}

TEST_CASE("a look in between changes nothing") {
  MetricRing ring;
  Observation seen;
  ring.observe(at(0), seen);
  seen.totals.acquires = 10;
  ring.observe(at(0.9), seen);
  ring.observe(at(1), seen);
  CHECK(values(*ring.history("1s"), "acquires") == Values{10.0});
}

TEST_CASE("minutes have their own percentiles, and all series are equally long") {
  MetricRing ring;
  Observation seen;
  for (int second = 0; second <= 120; ++second) {
    ring.observe(at(second), seen);
    seen.totals.acquires += 2;
    seen.totals.timer_lag.observe(10ms);
  }
  const ServerHistory history = *ring.history("60s");
  CHECK(history.step == "60s");
  CHECK(values(history, "acquires") == Values{2.0, 2.0});
  CHECK(*values(history, "timer_lag_p99")[0] == doctest::Approx(0.01).epsilon(0.17));
  for (const HistorySeries& series : history.series) CHECK(series.values.size() == 2);
}

TEST_CASE("the ring keeps 15 minutes of seconds and forgets what is older") {
  MetricRing ring;
  Observation seen;
  for (int second = 0; second < 2'000; ++second) {
    ring.observe(at(second), seen);
    seen.totals.acquires += second;
  }
  const Values rates = values(*ring.history("1s"), "acquires");
  REQUIRE(rates.size() == 900);
  CHECK(rates.front() == 1'099.0);
  CHECK(rates.back() == 1'998.0);
  CHECK(values(*ring.history("60s"), "acquires").size() == 33);
}

TEST_CASE("who was away for longer than the ring remembers begins anew") {
  MetricRing ring;
  ring.observe(at(0), {});
  ring.observe(at(1), {});
  ring.observe(at(1'000'000), {});
  CHECK(values(*ring.history("1s"), "holds") == Values{0.0});
  CHECK(ring.history("1s")->end == at(1'000'000));
}

}  // namespace
}  // namespace permit::service
