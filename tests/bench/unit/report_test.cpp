// What the load generator says of what it has found: nothing that was not measured has a figure,
// and no violation of mutual exclusion goes unseen.
#include "tests/bench/report.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "tests/bench/docs_page.h"
#include "tests/bench/outside_names.h"
#include "tests/bench/peers/holders.h"
#include "tests/bench/plots.h"
#include "tests/support/temporary_directory.h"

namespace permit::bench {
namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Of Permit and Redis at each number of clients; ZooKeeper is missing.
Report some_report() {
  Report report;
  report.set_fact("cores", "2");
  report.set_target(outside_ratio(redis_name, 64), {Target::Kind::at_least, 0.7});
  report.set_target(outside_ratio(zookeeper_name, 64), {Target::Kind::at_least, 1.2});
  for (const double repetition : {1.0, 2.0, 3.0}) {
    for (const int clients : outside_clients) {
      report.add(outside_figure(permit_name, clients), "cycles/s", 1'000 * repetition);
      report.add(outside_figure(redis_name, clients), "cycles/s", 2'000 * repetition);
      report.mark_detail(outside_figure(redis_name, clients));
      report.add_missing(outside_figure(zookeeper_name, clients), "cycles/s", "there is no java");
      report.mark_detail(outside_figure(zookeeper_name, clients));
      report.add(outside_ratio(redis_name, clients), "ratio", 0.5);
      report.add_missing(outside_ratio(zookeeper_name, clients), "ratio", "there is no java");
    }
  }
  return report;
}

struct Directory : test::TemporaryDirectory {
  std::string read(const std::string& name) const {
    std::ifstream stream(path / name);
    return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(path / name) << text;
  }
};

constexpr const char* empty_page =
    "before\n<!-- figures: scripts/bench --docs writes from here -->\nold\n"
    "<!-- figures: to here -->\nafter\n";

}  // namespace

TEST_CASE("a figure that is missing once is not measured, whatever else was measured") {
  Report report;
  report.add("x", "ms", 1);
  report.add_missing("x", "ms", "it broke");
  report.add("x", "ms", 2);
  CHECK(!report.summary("x"));
  CHECK(report.shown("x") == "not measured: it broke");
  CHECK_THROWS(report.last("x"));
}

TEST_CASE("a target of what is not measured is neither met nor missed") {
  const Report report = some_report();
  CHECK(report.verdict(outside_ratio(redis_name, 64)) == ">= 0.700  NOT MET");
  CHECK(report.verdict(outside_ratio(zookeeper_name, 64)) == ">= 1.20  not measured");
}

TEST_CASE("a report is the same after it was written and read") {
  const std::string text = some_report().json();
  const Report again = Report::from_json(text);
  CHECK(again.json() == text);
  CHECK(again.table({}) == some_report().table({}));
  CHECK(has(text, "\"notMeasured\": \"there is no java\""));
}

TEST_CASE("the table leaves out the details") {
  const std::string table = some_report().table({});
  CHECK(has(table, "outside, 64 clients: Permit, cycles/s"));
  CHECK(has(table, "2,000 [1,000..3,000]"));
  CHECK(!has(table, "outside, 64 clients: Redis"));
}

TEST_CASE("the systems stand in tables, those that are missing with a reason") {
  const std::string tables = outside_tables(some_report());
  CHECK(has(tables, "| **Permit** | 2,000 [1,000..3,000] |"));
  CHECK(has(tables, "| " + zookeeper_name + " | not measured | not measured |"));
  CHECK(has(tables, "Not measured: " + zookeeper_name + ": there is no java"));
  CHECK(outside_tables(Report()).empty());
}

TEST_CASE("only what is between the marks of the page changes") {
  const Directory directory;
  directory.write("performance.md", empty_page);
  write_docs(some_report(), directory.path);
  const std::string page = directory.read("performance.md");
  CHECK(page.starts_with("before\n<!-- figures: scripts/bench"));
  CHECK(page.ends_with("<!-- figures: to here -->\nafter\n"));
  CHECK(!has(page, "old"));
  CHECK(has(page, "(plots/throughput.svg)"));
  CHECK(!has(page, "(plots/cost.svg)"));  // nothing of it was measured
  write_docs(some_report(), directory.path);
  CHECK(directory.read("performance.md") == page);
  directory.write("performance.md", "a page without marks\n");
  CHECK_THROWS(write_docs(some_report(), directory.path));
  CHECK(directory.read("performance.md") == "a page without marks\n");
}

TEST_CASE("a plot has a line for each system that was measured") {
  const std::string plot = plot_throughput(some_report());
  CHECK(has(plot, ">Permit</text>"));
  CHECK(has(plot, ">" + redis_name + "</text>"));
  CHECK(!has(plot, zookeeper_name));
  CHECK(plot_latency(some_report()).empty());
}

TEST_CASE("cost is drawn for what was measured at two or more numbers of open runs") {
  Report report;
  report.add("start, 1,000 open: p50", "ms", 0.2);
  report.add("start, 100,000 open: p50", "ms", 0.3);
  report.add("restart, 100,000 open", "s", 0.5);
  const std::string plot = plot_cost(report);
  CHECK(has(plot, ">start: p50</text>"));
  CHECK(!has(plot, "restart"));
}

TEST_CASE("a slot with two holders is seen, and so is a fence that does not rise") {
  Holders holders(2);
  holders.granted("0", 1);
  holders.granted("1", 2);
  CHECK_THROWS(holders.granted("0", 3));
  CHECK_THROWS(holders.granted("2", 4));
  Holders others(2);
  others.granted("0", 5);
  others.releasing("0");
  CHECK_THROWS(others.granted("0", 5));
  others.granted("0", 6);
}

}  // namespace permit::bench
