// permit_lock_check [OPTIONS] FILE...: whether the locks of a history behaved; see history.h and
// checker.h. Prints what it found; 1: a violation, or too little of the history is worth anything.
#include <CLI/CLI.hpp>
#include <chrono>
#include <fstream>
#include <iostream>

#include "tests/lock_history/checker.h"

namespace {

using permit::lock_history::BadHistory;
using permit::lock_history::CheckOptions;
using permit::lock_history::Reader;
using permit::lock_history::Report;

struct Options {
  std::vector<std::string> files;
  std::uint64_t grants_min = 1;
  int ok_percent_min = 30;
  CheckOptions check{20};
};

Report check_files(const Options& options) {
  Reader reader;
  for (const std::string& file : options.files) {
    std::ifstream stream(file);
    if (!stream) throw BadHistory("cannot read " + file);
    reader.read(stream);
  }
  return permit::lock_history::check(reader.take(), options.check);
}

// A run in which everything failed must not count as one in which all went well.
bool is_alive(const Report& report, const Options& options) {
  const auto share = static_cast<std::uint64_t>(options.ok_percent_min) * report.operations;
  return report.grants >= options.grants_min && report.ok * 100 >= share;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("permit_lock_check: whether the locks of a history behaved");
  app.add_option("files", options.files)->required();
  app.add_option("--min-grants", options.grants_min, "Fewer prove nothing");
  app.add_option("--min-ok-percent", options.ok_percent_min, "Of all operations");
  app.add_option("--clock-error-us", options.check.clock_error);
  CLI11_PARSE(app, argc, argv);
  try {
    const auto began = std::chrono::steady_clock::now();
    const Report report = check_files(options);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
    for (const std::string& violation : report.violations) std::cout << violation << "\n";
    std::cout << report.operations << " operations: " << report.ok << " ok, " << report.unknown
              << " without an answer; " << report.grants << " grants, " << report.expired
              << " expired; " << report.violations.size() << " violations; checked in "
              << took.count() << " s\n";
    if (!report.violations.empty()) return 1;
    if (is_alive(report, options)) return 0;
    std::cout << "too little was done to mean something\n";
    return 1;
  } catch (const std::exception& error) {
    std::cerr << "permit_lock_check: " << error.what() << "\n";
    return 2;
  }
}
