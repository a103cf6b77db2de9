// permit_simulation: seeds of a simulated world against the real engine; every seed repeats
// exactly.
//   --seeds N [--first-seed S] [--level 1|2|both] [--jobs J]   runs N of them
//   --seed S [--verbose]       one, and with --verbose all that it does
//   --seed S --shrink          the smallest script that breaks the same, in S.repro
//   --replay FILE...           scripts; --replay-all DIRECTORY: all *.repro there
//   --crashes N                N power losses, each after at least 100 acknowledged writes
//   --sometimes                prints how often each situation was met
// Prints what happened, and exits 1 at the first broken promise (SEED=…) or if too little happened.
#include <algorithm>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string_view>

#include "tests/simulation/runner.h"
#include "tests/support/complaints.h"

namespace permit::simulation {

namespace {

struct Options : RunOptions {
  int crashes = 0;
  bool one_seed = false;
  bool shrink = false;
  bool sometimes = false;
  std::vector<std::string> scripts;
};

Levels levels_of(std::string_view text) {
  if (text == "1") return Levels::one;
  if (text == "2") return Levels::two;
  if (text == "both") return Levels::both;
  throw std::invalid_argument("--level is 1, 2 or both");
}

std::vector<std::string> scripts_in(const std::string& directory) {
  std::vector<std::string> scripts;
  for (const auto& file : std::filesystem::directory_iterator(directory)) {
    if (file.path().extension() == ".repro") scripts.push_back(file.path().string());
  }
  std::sort(scripts.begin(), scripts.end());
  return scripts;
}

Options parse(const std::vector<std::string>& arguments) {
  Options options;
  std::size_t i = 0;
  const auto value = [&] {
    if (i + 1 >= arguments.size()) throw std::invalid_argument("more is expected at the end");
    return arguments[++i];
  };
  const auto number = [&] {
    const std::string text = value();
    std::uint64_t read = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), read);
    if (error == std::errc() && end == text.data() + text.size()) return read;
    throw std::invalid_argument("a number is missing before " + text);
  };
  for (; i < arguments.size(); ++i) {
    const std::string& option = arguments[i];
    if (option == "--seeds") {
      options.seeds = number();
    } else if (option == "--first-seed") {
      options.first_seed = number();
    } else if (option == "--seed") {
      options.first_seed = number();
      options.seeds = 1;
      options.one_seed = true;
    } else if (option == "--level") {
      options.levels = levels_of(value());
    } else if (option == "--jobs") {
      options.jobs = static_cast<int>(number());
    } else if (option == "--repeat-each") {
      options.repeat_each = static_cast<int>(number());
    } else if (option == "--crashes") {
      options.crashes = static_cast<int>(number());
    } else if (option == "--replay") {
      while (i + 1 < arguments.size()) options.scripts.push_back(value());
    } else if (option == "--replay-all") {
      options.scripts = scripts_in(value());
    } else if (option == "--shrink") {
      options.shrink = true;
    } else if (option == "--sometimes") {
      options.sometimes = true;
    } else if (option == "--verbose") {
      options.verbose = true;
    } else {
      throw std::invalid_argument("unknown option " + option);
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
    std::int64_t of_seeds;
  };
  const std::int64_t all = totals.seeds;
  const std::int64_t two = totals.seeds_level_2;
  const Line lines[] = {
      {"batches", totals.batches, 30'000, all},
      {"requests", totals.requests, 50'000, all},
      {"writes acknowledged", totals.writes_acknowledged, 10'000, all},
      {"grants", totals.grants, 1'000, all},
      {"grants after a wait in line", totals.waits_granted, 100, all},
      {"ended: released", totals.released, 100, all},
      {"ended: lease expired, by timer", totals.expired_by_timer, 100, all},
      {"ended: lease expired, by backstop", totals.expired_by_backstop, 100, all},
      {"ended: holder closed", totals.holder_closed, 100, all},
      {"ended: force-released", totals.force_released, 20, all},
      {"writes to what permits guard", totals.writes_guarded, 1'000, all},
      {"stale writes refused by their fence", totals.stale_writes_refused, 100, all},
      {"stale writes taken", totals.stale_writes_taken, 0, all},
      {"overlaps, had nobody looked at the fence", totals.overlaps_unguarded, 20, all},
      {"late releases ignored", totals.late_releases_ignored, 100, all},
      {"stale task tokens refused", totals.stale_tokens_refused, 200, all},
      {"sleepers woken", totals.wakes, 50, all},
      {"renewals", totals.renewals, 50, all},
      {"activities retried", totals.activities_retried, 10, all},
      {"children closed with their parent", totals.children_closed_with_parent, 100, all},
      {"crashes", totals.crashes, 300, all},
      {"replies lost", totals.replies_lost, 300, all},
      {"runs of the SDK's code", totals.sections, 300, all},
      {"prefixes of their histories replayed", totals.prefixes, 300, all},
      {"their tasks compared with what they asked first", totals.tasks_compared, 1'000, all},
      {"losses of power", totals.power_losses, 300, two},
      {"refusals on a full disk", totals.disk_full_refusals, 50, two},
      {"seeds run twice, with the same outcome", totals.seeds_repeated, 5, all},
  };
  bool enough = true;
  std::cout << totals.seeds << " seeds (" << two << " of level 2) in " << seconds << " s, "
            << static_cast<double>(totals.seeds) / seconds << " a second, " << totals.phases
            << " steps\n";
  for (const Line& line : lines) {
    const std::int64_t least = line.per_thousand * line.of_seeds / 1000;
    const bool short_of = line.of_seeds >= 200 && line.total < least;
    std::cout << "  " << line.name << ": " << line.total << " (at least " << least << ")"
              << (short_of ? "  TOO FEW" : "") << "\n";
    enough = enough && !short_of;
  }
  return enough;
}

// A fresh world now and then, so that none grows without bound.
void run_crashes(const Options& options, Totals& totals, std::uint64_t& seed) {
  constexpr int per_world = 10;
  constexpr int writes_min = 100;
  for (int done = 0; done < options.crashes; done += per_world, ++seed) {
    Plan plan = plan_of_seed(seed, 2);
    plan.crashes = 0;
    plan.sync_failures = 0;
    plan.holders = std::max(plan.holders, 1);
    Simulation(seed, plan, totals)
        .run_crashes(std::min(per_world, options.crashes - done), writes_min);
  }
  std::cout << totals.power_losses << " losses of power, " << totals.writes_acknowledged
            << " acknowledged writes, all there\n";
}

bool replay_file(const std::string& file, const Options& options) {
  std::ifstream in(file);
  std::ostringstream text;
  text << in.rdbuf();
  const Script script = script_of(text.str());
  Totals totals;
  const auto what = run_script(script, totals, options.verbose ? Notes::printed : Notes::none);
  std::cout << file << ": " << (what ? *what : "nothing is broken") << std::endl;
  return !what;
}

int shrink(const Options& options) {
  constexpr double seconds = 60;
  const int level = level_of(options, options.first_seed);
  const Script script = shrink_seed(options.first_seed, level, seconds);
  const std::string file = std::to_string(options.first_seed) + ".repro";
  std::ofstream(file) << to_text(script);
  std::cout << "written to " << file << std::endl;
  return 1;
}

int run_all(const Options& options) {
  const auto begun = std::chrono::steady_clock::now();
  Totals totals;
  if (options.crashes > 0) {
    std::uint64_t seed = options.first_seed;
    try {
      run_crashes(options, totals, seed);
      return 0;
    } catch (const std::exception& broken) {
      std::cout << "SEED=" << seed << "\n" << broken.what() << std::endl;
      return 1;
    }
  }
  if (const auto broken = run_jobs(options, totals)) {
    const int level = level_of(options, broken->seed);
    std::cout << "SEED=" << broken->seed << "\n"
              << broken->what << "\nagain: permit_simulation --seed " << broken->seed << " --level "
              << level << " --verbose (or --shrink)\nplan "
              << to_text(plan_of_seed(broken->seed, level)) << std::endl;
    return 1;
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begun;
  if (options.one_seed) return 0;
  bool enough = report(totals, seconds.count());
  const SeedsRun seeds{totals.seeds - totals.seeds_level_2, totals.seeds_level_2};
  enough = report_sometimes(seeds, options.sometimes) && enough;
  return enough ? 0 : 1;
}

}  // namespace

int run(int argc, char** argv) {
  const Options options = parse(std::vector<std::string>(argv + 1, argv + argc));
  const test::Complaints complaints(Simulation::complaints());
  if (options.shrink) return shrink(options);
  if (options.scripts.empty()) return run_all(options);
  bool kept = true;
  for (const std::string& file : options.scripts) kept = replay_file(file, options) && kept;
  return kept ? 0 : 1;
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
