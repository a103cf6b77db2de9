// permit_bench: loads a real server and prints what it does a second beside what the machine
// allows.
#include <CLI/CLI.hpp>
#include <fstream>
#include <iostream>

#include "tests/bench/docs_page.h"
#include "tests/bench/machine.h"
#include "tests/bench/scenarios.h"

namespace {

using permit::bench::Report;
using permit::bench::Scenario;
using permit::bench::Setting;
using permit::bench::Target;

struct Options {
  std::string server = "build/permit";
  std::string baseline;
  std::string directory = ".";
  std::string json;
  std::string only;
  std::string docs;
  std::string from;
  std::string commit = "unknown";
  int repetitions = 3;
  bool quick = false;
};

void set_targets(Report& report) {
  report.set_target(permit::bench::starts_at_64, {Target::Kind::at_least, 15'000});
  report.set_target("starts, 64 connections: of the lower limit", {Target::Kind::at_least, 0.5});
  report.set_target("hand-off, 8 pairs: p99", {Target::Kind::at_most, 5});
  report.set_target("memory, 100,000 idle runs", {Target::Kind::at_most, 600});
  report.set_target("restart, 100,000 open", {Target::Kind::at_most, 1});
  report.set_target("replay, with its JSON", {Target::Kind::at_least, 300'000});
  report.set_target("hand-over, fair, 10 workflows: p99", {Target::Kind::at_most, 10});
  report.set_target("hand-over, any with wake-up, 10 workflows: p99", {Target::Kind::at_most, 50});
  report.set_target(permit::bench::command_run, {Target::Kind::at_most, 25});
  report.set_target("memory, idle workflow in a worker", {Target::Kind::at_most, 20 * 1024});
  permit::bench::set_outside_targets(report);
  permit::bench::set_scale_targets(report);
}

// Variants and figures take turns, so that what else the machine does meets all of them alike.
void run(const Options& options, Report& report, Report& baseline) {
  const auto wanted = [&](const Scenario& scenario) {
    return options.only.empty() || scenario.name.find(options.only) != std::string::npos;
  };
  const Setting server{options.server, options.directory};
  const Setting other{options.baseline, options.directory};
  const int repetitions = options.quick ? 1 : options.repetitions;
  for (int i = 0; i < repetitions; ++i) {
    for (const Scenario& scenario : permit::bench::server_scenarios()) {
      if (!wanted(scenario)) continue;
      std::cerr << "repetition " << i + 1 << ": " << scenario.name << std::endl;
      const bool baseline_first = i % 2 == 0;
      if (!options.baseline.empty() && baseline_first) scenario.run(other, baseline);
      scenario.run(server, report);
      if (!options.baseline.empty() && !baseline_first) scenario.run(other, baseline);
    }
    for (const auto& scenarios :
         {permit::bench::worker_scenarios(), permit::bench::permit_scenarios(),
          permit::bench::command_scenarios(), permit::bench::outside_scenarios(),
          permit::bench::scale_scenarios()}) {
      for (const Scenario& scenario : scenarios) {
        if (!wanted(scenario)) continue;
        std::cerr << "repetition " << i + 1 << ": " << scenario.name << std::endl;
        scenario.run(server, report);
      }
    }
    if (!options.only.empty()) continue;
    for (const Scenario& scenario : permit::bench::limit_scenarios()) scenario.run(server, report);
  }
}

Report measure(const Options& options) {
  Report report;
  Report baseline;
  set_targets(report);
  permit::bench::add_machine(options.commit, report);
  run(options, report, baseline);
  std::cout << report.table(baseline);
  return report;
}

Report read_report(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  return Report::from_json(text);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("permit_bench: figures of the server beside other systems and the machine's limits");
  app.add_option("--server", options.server, "The permit binary");
  app.add_option("--baseline", options.baseline, "Another one, to print the ratio to");
  app.add_option("--directory", options.directory, "For databases; what is in it is deleted");
  app.add_option("--json", options.json, "Write the figures to this file, too");
  app.add_option("--docs", options.docs,
                 "Write them into performance.md and plots/ of this directory");
  app.add_option("--from", options.from, "Measure nothing: take the figures from this file");
  app.add_option("--commit", options.commit, "Of the sources, for the report");
  app.add_option("--only", options.only, "Only scenarios with this in their name, and no limits");
  app.add_option("--repetitions", options.repetitions)->check(CLI::Range(1, 20));
  app.add_flag("--quick", options.quick, "One repetition");
  CLI11_PARSE(app, argc, argv);

  try {
    const Report report = options.from.empty() ? measure(options) : read_report(options.from);
    std::cout << '\n' << permit::bench::outside_tables(report);
    if (!options.docs.empty()) permit::bench::write_docs(report, options.docs);
    if (options.json.empty()) return 0;
    std::ofstream file(options.json);
    file << report.json();
    file.close();
    if (!file) throw std::runtime_error("cannot write " + options.json);
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "permit_bench: " << error.what() << std::endl;
    return 1;
  }
}
