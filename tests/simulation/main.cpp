// permit_simulation: seeds of a simulated world against the real engine; every seed repeats
// exactly.
//   --seeds N [--first-seed S]   run N of them; --seed S [--verbose]: one
//   --crashes N                  N power losses, each after at least 100 acknowledged writes
// Prints what happened, and exits 1 at the first broken promise (SEED=…) or if too little happened.
#include <charconv>
#include <chrono>
#include <iostream>
#include <string_view>

#include "tests/simulation/simulation.h"
#include "tests/support/complaints.h"

namespace permit::simulation {

namespace {

struct Options {
  std::uint64_t first_seed = 1;
  std::uint64_t seeds = 300;
  int crashes = 0;
  bool verbose = false;
};

Options parse(int argc, char** argv) {
  Options options;
  const auto number = [&](int& i) {
    std::uint64_t value = 0;
    const std::string_view text = i + 1 < argc ? argv[++i] : "";
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) {
      throw std::invalid_argument("a number is missing after " + std::string(argv[i - 1]));
    }
    return value;
  };
  for (int i = 1; i < argc; ++i) {
    const std::string_view option = argv[i];
    if (option == "--seeds") {
      options.seeds = number(i);
    } else if (option == "--first-seed") {
      options.first_seed = number(i);
    } else if (option == "--seed") {
      options.first_seed = number(i);
      options.seeds = 1;
    } else if (option == "--crashes") {
      options.crashes = static_cast<int>(number(i));
    } else if (option == "--verbose") {
      options.verbose = true;
    } else {
      throw std::invalid_argument("unknown option " + std::string(option));
    }
  }
  return options;
}

// Prints each total beside its bound; returns whether all of them reach it.
bool report(const Totals& totals, double seconds) {
  // What a thousand seeds must at least have seen; 0: only shown.
  struct Line {
    const char* name;
    std::int64_t total;
    std::int64_t per_thousand;
  };
  const Line lines[] = {
      {"batches", totals.batches, 30'000},
      {"requests", totals.requests, 50'000},
      {"writes acknowledged", totals.writes_acknowledged, 10'000},
      {"grants", totals.grants, 1'000},
      {"grants after a wait in line", totals.waits_granted, 100},
      {"ended: released", totals.released, 100},
      {"ended: lease expired, by timer", totals.expired_by_timer, 100},
      {"ended: lease expired, by backstop", totals.expired_by_backstop, 100},
      {"ended: holder closed", totals.holder_closed, 100},
      {"ended: force-released", totals.force_released, 20},
      {"stale writes refused by resources", totals.stale_writes_refused, 100},
      {"late releases ignored", totals.late_releases_ignored, 100},
      {"stale task tokens refused", totals.stale_tokens_refused, 200},
      {"sleepers woken", totals.wakes, 50},
      {"renewals", totals.renewals, 50},
      {"activities retried", totals.activities_retried, 10},
      {"children closed with their parent", totals.children_closed_with_parent, 100},
      {"crashes", totals.crashes, 300},
      {"of them with loss of power", totals.power_losses, 100},
      {"refusals on a full disk", totals.disk_full_refusals, 50},
      {"replies lost", totals.replies_lost, 300},
  };
  bool enough = true;
  std::cout << totals.seeds << " seeds in " << seconds << " s\n";
  for (const Line& line : lines) {
    const std::int64_t least = line.per_thousand * totals.seeds / 1000;
    const bool short_of = totals.seeds >= 100 && line.total < least;
    std::cout << "  " << line.name << ": " << line.total << " (at least " << least << ")"
              << (short_of ? "  TOO FEW" : "") << "\n";
    enough = enough && !short_of;
  }
  return enough;
}

Plan crash_plan(Chance& chance) {
  Plan plan = draw_plan(chance);
  plan.on_disk = true;
  plan.crashes = 0;
  plan.sync_failures = 0;
  plan.holders = std::max(plan.holders, 1);
  return plan;
}

// A fresh world now and then, so that none grows without bound.
void run_crashes(const Options& options, Totals& totals, std::uint64_t& seed) {
  constexpr int per_world = 10;
  constexpr int writes_min = 100;
  for (int done = 0; done < options.crashes; done += per_world, ++seed) {
    Chance chance(seed);
    const Plan plan = crash_plan(chance);
    Simulation(chance.word(), plan, totals, options.verbose)
        .run_crashes(std::min(per_world, options.crashes - done), writes_min);
  }
  std::cout << totals.power_losses << " losses of power, " << totals.writes_acknowledged
            << " acknowledged writes, all there\n";
}

void run_seeds(const Options& options, Totals& totals, std::uint64_t& seed) {
  for (; seed < options.first_seed + options.seeds; ++seed) {
    Chance chance(seed);
    const Plan plan = draw_plan(chance);
    Simulation(chance.word(), plan, totals, options.verbose).run();
  }
}

}  // namespace

int run(int argc, char** argv) {
  const Options options = parse(argc, argv);
  const test::Complaints complaints(Simulation::complaints());
  const auto begun = std::chrono::steady_clock::now();
  Totals totals;
  std::uint64_t seed = options.first_seed;
  try {
    if (options.crashes > 0) {
      run_crashes(options, totals, seed);
      return 0;
    }
    run_seeds(options, totals, seed);
  } catch (const std::exception& broken) {
    std::cout << "SEED=" << seed << "\n" << broken.what() << std::endl;
    return 1;
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begun;
  return report(totals, seconds.count()) ? 0 : 1;
}

}  // namespace permit::simulation

int main(int argc, char** argv) {
  try {
    return permit::simulation::run(argc, argv);
  } catch (const std::invalid_argument& error) {
    std::cerr << error.what() << "\n";
    return 2;
  }
}
