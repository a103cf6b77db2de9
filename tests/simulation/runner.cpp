#include "tests/simulation/runner.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <iostream>

namespace permit::simulation {

int level_of(const RunOptions& options, std::uint64_t seed) {
  if (options.levels == Levels::both) return seed % 50 == 0 ? 2 : 1;
  return options.levels == Levels::one ? 1 : 2;
}

Plan plan_of_seed(std::uint64_t seed, int level) {
  Chance chance(seed);
  return draw_plan(chance, level);
}

namespace {

std::uint64_t world_seed(std::uint64_t seed) { return Chance(seed ^ 0x5deece66dU).word(); }

void run_once(std::uint64_t seed, const Plan& plan, const RunOptions& options, Totals& totals,
              std::uint64_t& hash) {
  if (options.verbose) std::cout << "plan " << to_text(plan) << std::endl;
  Simulation simulation(world_seed(seed), plan, totals,
                        options.verbose ? Notes::printed : Notes::none);
  try {
    simulation.run();
  } catch (...) {
    if (options.verbose) simulation.tell_open_runs();
    throw;
  }
  hash = simulation.hash();
  if (options.verbose) std::cout << "hash " << hash << std::endl;  // any compiler gives this one
}

void run_seed(std::uint64_t seed, const RunOptions& options, Totals& totals) {
  const int level = level_of(options, seed);
  const Plan plan = plan_of_seed(seed, level);
  ++totals.seeds;
  if (level == 2) ++totals.seeds_level_2;
  std::uint64_t hash = 0;
  run_once(seed, plan, options, totals, hash);
  if (options.repeat_each <= 0 || seed % static_cast<std::uint64_t>(options.repeat_each) != 0) {
    return;
  }
  Totals again;
  std::uint64_t second = 0;
  run_once(seed, plan, options, again, second);
  require(hash == second, "the same seed does not do the same twice");
  ++totals.seeds_repeated;
}

}  // namespace

std::optional<Broken> run_seeds(const RunOptions& options, Totals& totals) {
  for (std::uint64_t i = 0; i < options.seeds; ++i) {
    const std::uint64_t seed = options.first_seed + i;
    try {
      run_seed(seed, options, totals);
    } catch (const std::exception& broken) {
      return Broken{seed, broken.what()};
    }
  }
  return std::nullopt;
}

// --- In several processes ---

namespace {

struct Report {
  Totals totals;
  SometimesCounts counts;
  std::uint64_t seed = 0;  // that broke, and then its promise
  char what[2'000] = {};
};

void add(Totals& to, const Totals& from) {
  // All of them are counts.
  static_assert(sizeof(Totals) % sizeof(std::int64_t) == 0);
  constexpr std::size_t count = sizeof(Totals) / sizeof(std::int64_t);
  std::int64_t sum[count];
  std::int64_t more[count];
  std::memcpy(sum, &to, sizeof to);
  std::memcpy(more, &from, sizeof from);
  for (std::size_t i = 0; i < count; ++i) sum[i] += more[i];
  std::memcpy(&to, sum, sizeof to);
}

// Every jobs-th seed, beginning with the first + place.
Report run_share(const RunOptions& options, int place) {
  Report report;
  RunOptions share = options;
  share.seeds = 1;
  const auto jobs = static_cast<std::uint64_t>(options.jobs);
  for (auto i = static_cast<std::uint64_t>(place); i < options.seeds; i += jobs) {
    share.first_seed = options.first_seed + i;
    const auto broken = run_seeds(share, report.totals);
    if (!broken) continue;
    report.seed = broken->seed;
    std::strncpy(report.what, broken->what.c_str(), sizeof report.what - 1);
    break;
  }
  report.counts = sometimes_counts();
  return report;
}

bool read_whole(int pipe, Report& report) {
  char* to = reinterpret_cast<char*>(&report);
  std::size_t left = sizeof report;
  while (left > 0) {
    const ssize_t got = ::read(pipe, to, left);
    if (got <= 0) return false;
    to += got;
    left -= static_cast<std::size_t>(got);
  }
  return true;
}

}  // namespace

std::optional<Broken> run_jobs(const RunOptions& options, Totals& totals) {
  if (options.jobs <= 1) return run_seeds(options, totals);
  std::vector<std::pair<pid_t, int>> children;
  for (int place = 0; place < options.jobs; ++place) {
    int pipe[2] = {-1, -1};
    require(::pipe(pipe) == 0, "no pipe");
    const pid_t child = ::fork();
    require(child >= 0, "no process");
    if (child == 0) {
      const Report report = run_share(options, place);
      const bool written = ::write(pipe[1], &report, sizeof report) == sizeof report;
      ::_exit(written ? 0 : 1);
    }
    ::close(pipe[1]);
    children.emplace_back(child, pipe[0]);
  }
  std::optional<Broken> broken;
  for (const auto& [child, pipe] : children) {
    Report report;
    const bool whole = read_whole(pipe, report);
    ::close(pipe);
    ::waitpid(child, nullptr, 0);
    if (!whole) return Broken{0, "a process of the simulation has crashed; try --jobs 1"};
    add(totals, report.totals);
    for (std::size_t i = 0; i < sometimes_max; ++i) {
      sometimes_counts().of[i] += report.counts.of[i];
    }
    if (report.seed != 0 && (!broken || report.seed < broken->seed)) {
      broken = Broken{report.seed, report.what};
    }
  }
  return broken;
}

// --- Scripts ---

std::optional<std::string> run_script(const Script& script, Totals& totals, Notes notes,
                                      Script* done) {
  Simulation::complaints().str("");
  Simulation simulation(1, script.plan, totals, notes);
  std::optional<std::string> what;
  try {
    simulation.replay(script);
  } catch (const std::exception& broken) {
    what = broken.what();
  }
  if (done != nullptr) *done = simulation.script();
  return what;
}

namespace {

// What the promise is, whatever the run and the number.
std::string kind_of(const std::string& what) {
  std::string kind;
  for (const char letter : what.substr(0, what.find('\n'))) {
    if (letter < '0' || letter > '9') kind += letter;
    if (kind.size() >= 60) break;
  }
  return kind;
}

class Shrinker {
 public:
  Shrinker(Script script, double seconds)
      : best_(std::move(script)),
        kind_(kind_of(best_.broke)),
        end_(std::chrono::steady_clock::now() +
             std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                 std::chrono::duration<double>(seconds))) {}

  Script shrink() {
    for (std::size_t before = 0; before != size() && !is_over();) {
      before = size();
      drop_options();
      drop_segments();
      shorten_choices();
    }
    return best_;
  }

 private:
  std::size_t size() const { return best_.segments.size() + best_.choices(); }
  bool is_over() const { return std::chrono::steady_clock::now() >= end_; }

  // Whether it breaks the same promise. Then what it has really done is the best so far.
  bool attempt(const Script& script) {
    Totals totals;
    Script done;
    const auto what = run_script(script, totals, Notes::none, &done);
    if (!what || kind_of(*what) != kind_) return false;
    done.broke = *what;
    best_ = std::move(done);
    return true;
  }

  void drop_options() {
    for (bool dropped = true; dropped && !is_over();) {
      dropped = false;
      for (const Plan& plan : simpler(best_.plan)) {
        Script script = best_;
        script.plan = plan;
        if (is_over() || attempt(script)) {
          dropped = !is_over();
          break;
        }
      }
    }
  }

  // Not the first, which is the setup.
  void drop_segments() {
    for (std::size_t width = best_.segments.size() / 2; width > 0; width /= 2) {
      for (std::size_t at = 1; at < best_.segments.size();) {
        if (is_over()) return;
        Script script = best_;
        const auto first = script.segments.begin() + static_cast<std::ptrdiff_t>(at);
        const auto count = std::min(width, script.segments.size() - at);
        script.segments.erase(first, first + static_cast<std::ptrdiff_t>(count));
        if (!attempt(script)) at += width;
      }
    }
  }

  void shorten_choices() {
    for (std::size_t i = 0; i < best_.segments.size(); ++i) {
      if (is_over()) return;
      halve(i);
      zero(i);
    }
  }

  // Leaves out the second half, and so on: what is drawn there is zero.
  void halve(std::size_t segment) {
    for (;;) {
      Script script = best_;
      if (segment >= script.segments.size()) return;
      Choices& choices = script.segments[segment].choices;
      while (!choices.empty() && choices.back() == 0) choices.pop_back();
      if (choices.size() < 2) return;
      choices.resize(choices.size() / 2);
      if (is_over() || !attempt(script)) return;
    }
  }

  void zero(std::size_t segment) {
    for (std::size_t width = 8; width > 0; width /= 4) {
      for (std::size_t at = 0; segment < best_.segments.size(); at += width) {
        Script script = best_;
        Choices& choices = script.segments[segment].choices;
        if (at >= choices.size()) break;
        bool changed = false;
        for (std::size_t i = at; i < std::min(at + width, choices.size()); ++i) {
          changed = changed || choices[i] != 0;
          choices[i] = 0;
        }
        if (is_over()) return;
        if (changed) attempt(script);
      }
    }
  }

  Script best_;
  const std::string kind_;
  const std::chrono::steady_clock::time_point end_;
};

// Zeros at the end of a line say nothing.
void trim(Script& script) {
  for (Segment& segment : script.segments) {
    while (!segment.choices.empty() && segment.choices.back() == 0) segment.choices.pop_back();
  }
}

}  // namespace

Script shrink_seed(std::uint64_t seed, int level, double seconds) {
  Totals totals;
  Simulation simulation(world_seed(seed), plan_of_seed(seed, level), totals);
  std::string what;
  try {
    simulation.run();
  } catch (const std::exception& broken) {
    what = broken.what();
  }
  if (what.empty()) throw std::invalid_argument("this seed breaks nothing");
  Script first = simulation.script();
  first.broke = what;
  Script again;
  const auto repeated = run_script(first, totals, Notes::none, &again);
  if (!repeated) throw std::invalid_argument("its script does not break what the seed breaks");
  std::cout << "seed " << seed << ": " << first.segments.size() << " steps, " << first.choices()
            << " choices\n"
            << what << std::endl;
  Script script = Shrinker(std::move(first), seconds).shrink();
  trim(script);
  Script told;
  script.broke = run_script(script, totals, Notes::kept, &told).value_or("");
  for (std::size_t i = 0; i < script.segments.size() && i < told.segments.size(); ++i) {
    script.segments[i].notes = told.segments[i].notes;
  }
  std::cout << "shrunk to " << script.segments.size() << " steps, " << script.choices()
            << " choices\n";
  return script;
}

}  // namespace permit::simulation
