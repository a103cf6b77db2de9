// permit_programs: random workflows, disturbed at random, must ask for the same when they are
// replayed from every prefix of their histories. Every seed, a world of 2 to 6 programs, repeats.
//   --programs N [--first-seed S]   worlds until they have run N programs; --seed S: one world
// Prints what happened, and exits 1 at the first difference (SEED=…) or if too little happened.
#include <charconv>
#include <chrono>
#include <iostream>
#include <stdexcept>
#include <string_view>

#include "tests/programs/world.h"
#include "tests/support/complaints.h"

namespace permit::programs {

namespace {

struct Options {
  std::uint64_t first_seed = 1;
  std::int64_t programs = 500;
};

Options parse(int argc, char** argv) {
  Options options;
  const auto number = [&](int& i) {
    std::int64_t value = 0;
    const std::string_view text = i + 1 < argc ? argv[++i] : "";
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value < 0) {
      throw std::invalid_argument("a number is missing after " + std::string(argv[i - 1]));
    }
    return value;
  };
  for (int i = 1; i < argc; ++i) {
    const std::string_view option = argv[i];
    if (option == "--programs") {
      options.programs = number(i);
    } else if (option == "--first-seed") {
      options.first_seed = static_cast<std::uint64_t>(number(i));
    } else if (option == "--seed") {
      options.first_seed = static_cast<std::uint64_t>(number(i));
      options.programs = 1;
    } else {
      throw std::invalid_argument("unknown option " + std::string(option));
    }
  }
  return options;
}

// Prints each total beside its bound; returns whether all of them reach it.
bool report(const Totals& totals, std::uint64_t worlds, double seconds) {
  // What a thousand programs must at least have seen.
  struct Line {
    const char* name;
    std::int64_t total;
    std::int64_t per_thousand;
  };
  const Line lines[] = {
      {"runs", totals.runs, 1'500},
      {"activities", totals.activities, 2'000},
      {"activities that failed or timed out", totals.activities_failed, 200},
      {"activities asked to cancel", totals.activities_canceled, 50},
      {"timers", totals.timers, 2'000},
      {"timers canceled", totals.timers_canceled, 200},
      {"children", totals.children, 500},
      {"children that did not start", totals.children_refused, 10},
      {"signals received", totals.signals, 500},
      {"signals sent by workflows", totals.signals_sent, 50},
      {"cancellations", totals.cancellations, 100},
      {"side effects", totals.side_effects, 200},
      {"patches", totals.patches, 100},
      {"continued as new", totals.continued, 100},
      {"completed", totals.completed, 500},
      {"failed", totals.failed, 50},
      {"canceled", totals.canceled, 50},
      {"terminated", totals.terminated, 10},
      {"worker deaths", totals.worker_deaths, 500},
      {"server restarts", totals.server_restarts, 200},
      {"workflow tasks lost", totals.tasks_lost, 100},
      {"queries", totals.queries, 50},
      {"workflow tasks", totals.tasks, 5'000},
      {"prefixes replayed", totals.prefixes, 5'000},
      {"tasks compared", totals.tasks_compared, 20'000},
  };
  bool enough = true;
  std::cout << totals.programs << " programs in " << worlds << " worlds in " << seconds << " s\n";
  for (const Line& line : lines) {
    const std::int64_t least = line.per_thousand * totals.programs / 1'000;
    const bool short_of = totals.programs >= 300 && line.total < least;
    std::cout << "  " << line.name << ": " << line.total << " (at least " << least << ")"
              << (short_of ? "  TOO FEW" : "") << "\n";
    enough = enough && !short_of;
  }
  return enough;
}

int run(int argc, char** argv) {
  const Options options = parse(argc, argv);
  const auto begun = std::chrono::steady_clock::now();
  Totals totals;
  std::uint64_t seed = options.first_seed;
  try {
    std::ostringstream said;
    const test::Complaints complaints(said);
    for (; totals.programs < options.programs; ++seed) {
      World(seed, totals).run();
      if (!said.view().empty()) throw std::runtime_error("the engine says: " + said.str());
    }
  } catch (const std::exception& broken) {
    std::cout << "SEED=" << seed << "\n" << broken.what() << std::endl;
    return 1;
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begun;
  return report(totals, seed - options.first_seed, seconds.count()) ? 0 : 1;
}

}  // namespace

}  // namespace permit::programs

int main(int argc, char** argv) {
  try {
    return permit::programs::run(argc, argv);
  } catch (const std::invalid_argument& error) {
    std::cerr << error.what() << "\n";
    return 2;
  }
}
