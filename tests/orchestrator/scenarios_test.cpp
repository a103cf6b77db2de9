// The protocol as a tutorial: every file of tests/scenarios is one rule, told by what a client, its
// workers and an operator do and see; each is a test case, named by its first sentence. Rewrite the
// files with UPDATE_GOLDEN=1, and commit a difference only if you can explain it.
#include <doctest/doctest.h>

#include <filesystem>

#include "tests/support/golden.h"
#include "tests/support/script.h"

namespace permit::test {
namespace {

const std::string directory = "tests/scenarios";  // tests run at the root of the repository
constexpr std::size_t files_max = 250;

struct Scenario {
  GoldenFile file;
  std::string name;
};

const std::vector<Scenario>& scenarios() {
  static const std::vector<Scenario> all = [] {
    std::vector<Scenario> found;
    if (!std::filesystem::exists(directory)) return found;
    for (const std::string& path : golden_files(directory, ".txt")) {
      GoldenFile file = read_golden(path);
      std::string name = file.intent();
      found.push_back({std::move(file), std::move(name)});
    }
    return found;
  }();
  return all;
}

void play(const Scenario& scenario) {
  Script script;
  const std::string wrong =
      check_golden(scenario.file, [&](const auto& commands) { return script.run(commands); });
  CHECK_MESSAGE(wrong.empty(), wrong);
  script.check();
}

// doctest takes plain functions, so there is one of these a file.
template <std::size_t index>
void play_nth() {
  play(scenarios()[index]);
}

template <std::size_t... index>
int register_all(std::index_sequence<index...>) {
  const auto add = [](std::size_t i, void (*test)()) {
    if (i >= scenarios().size()) return;
    const Scenario& scenario = scenarios()[i];
    doctest::detail::TestSuite suite;
    suite * "scenarios";
    doctest::detail::TestCase test_case(test, scenario.file.path.c_str(), 1, suite);
    doctest::detail::regTest(test_case * scenario.name.c_str());
  };
  (add(index, play_nth<index>), ...);
  return 0;
}

const int registered = register_all(std::make_index_sequence<files_max>());

TEST_CASE("every scenario is found") {
  CHECK(registered == 0);
  CHECK(!scenarios().empty());
  CHECK(scenarios().size() <= files_max);
}

}  // namespace
}  // namespace permit::test
