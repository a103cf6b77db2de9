// permit_fuzz_replay: every file of the corpora through its target, in any build.
//   permit_fuzz_replay [--corpus DIRECTORY] [--seconds N [--seed S]] [TARGET...]
// With --seconds each target then gets inputs that are bent from those of its corpus, blindly, for
// so long: what can be done without a compiler that fuzzes. Prints what it ran, and exits 1 if a
// target has no corpus. A promise that is broken aborts; the input at hand is written to a file.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "tests/fuzz/targets.h"

namespace permit::fuzz {
namespace {

using Inputs = std::vector<std::string>;
using Clock = std::chrono::steady_clock;

std::string at_hand;       // what the input that runs is called
std::string at_hand_text;  // and what is in it

// Only calls that a signal's handler may make.
void keep_input(int signal) {
  const char* const name = "fuzz-found";
  const int file = open(name, O_CREAT | O_TRUNC | O_WRONLY, 0600);
  auto written = write(file, at_hand_text.data(), at_hand_text.size());
  for (const std::string_view text : {std::string_view("while it ran "), std::string_view(at_hand),
                                      std::string_view(", kept in fuzz-found\n")}) {
    written = write(STDERR_FILENO, text.data(), text.size());
  }
  std::signal(signal, SIG_DFL);
  std::raise(written > 0 ? signal : SIGKILL);
}

void run_one(const Target& target, std::string name, const std::string& text) {
  at_hand = std::move(name);
  at_hand_text = text;
  target.run(text);
}

// The files' names, and what is in them, in order.
std::vector<std::pair<std::string, std::string>> corpus_of(const std::filesystem::path& directory) {
  std::vector<std::pair<std::string, std::string>> files;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(directory, none)) {
    std::ifstream in(entry.path(), std::ios::binary);
    files.emplace_back(entry.path().string(), std::string(std::istreambuf_iterator<char>(in), {}));
  }
  std::sort(files.begin(), files.end());
  return files;
}

class Bender {
 public:
  Bender(std::uint64_t seed, const Inputs& inputs) : random_(seed), inputs_(inputs) {}

  std::string next() {
    std::string text = inputs_[below(inputs_.size())];
    for (std::size_t times = 1 + below(6); times > 0; --times) bend(text);
    return text;
  }

 private:
  std::size_t below(std::size_t limit) { return random_() % limit; }

  void bend(std::string& text) {
    const std::size_t at = below(text.size() + 1);
    const std::size_t size = below(1 + std::min<std::size_t>(text.size() - at, 32));
    const std::string& other = inputs_[below(inputs_.size())];
    switch (below(6)) {
      case 0:
        text.erase(at, size);
        return;
      case 1:
        text.insert(at, 1, static_cast<char>(random_()));
        return;
      case 2:
        text.insert(at, other.substr(below(other.size() + 1), below(40)));
        return;
      case 3:
        text.insert(at, text.substr(below(text.size() + 1), size));
        return;
      case 4:
        text = text.substr(0, at) + other.substr(std::min(other.size(), below(other.size() + 1)));
        return;
      default:
        if (at < text.size()) text[at] = static_cast<char>(random_());
    }
  }

  std::mt19937_64 random_;
  const Inputs& inputs_;
};

struct Options {
  std::filesystem::path corpus = "tests/fuzz/corpus";
  int seconds = 0;
  std::uint64_t seed = std::random_device()();
  std::vector<std::string> names;
};

void bend(const Target& target, const Inputs& inputs, const Options& options) {
  const auto start = Clock::now();
  const auto end = start + std::chrono::seconds(options.seconds);
  Bender bender(options.seed, inputs);
  std::uint64_t count = 0;
  every_input_alone = false;
  while (Clock::now() < end) {
    for (int i = 0; i < 16; ++i, ++count) {
      run_one(target, "input " + std::to_string(count) + " of " + std::string(target.name),
              bender.next());
    }
  }
  every_input_alone = true;
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  std::cout << target.name << ": " << count << " bent inputs, "
            << static_cast<std::int64_t>(static_cast<double>(count) / seconds)
            << " a second, SEED=" << options.seed << std::endl;
}

// How many inputs the corpus has.
std::size_t replay(const Target& target, const Options& options) {
  const auto start = Clock::now();
  Inputs inputs;
  for (auto& [name, text] : corpus_of(options.corpus / target.name)) {
    run_one(target, name, text);
    inputs.push_back(std::move(text));
  }
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start);
  std::cout << target.name << ": " << inputs.size() << " inputs in " << took.count() << " ms"
            << std::endl;
  if (options.seconds > 0 && !inputs.empty()) bend(target, inputs, options);
  return inputs.size();
}

Options options_of(const std::vector<std::string>& arguments) {
  Options options;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const bool has_value = i + 1 < arguments.size();
    if (arguments[i] == "--corpus" && has_value) {
      options.corpus = arguments[++i];
    } else if (arguments[i] == "--seconds" && has_value) {
      options.seconds = std::stoi(arguments[++i]);
    } else if (arguments[i] == "--seed" && has_value) {
      options.seed = std::stoull(arguments[++i]);
    } else {
      options.names.push_back(arguments[i]);
    }
  }
  return options;
}

int run(const Options& options) {
  for (const int signal : {SIGABRT, SIGSEGV}) std::signal(signal, keep_input);
  every_input_alone = true;
  std::size_t inputs = 0;
  bool complete = true;
  for (const Target& target : targets) {
    const auto& names = options.names;
    if (!names.empty() && std::find(names.begin(), names.end(), target.name) == names.end()) {
      continue;
    }
    const std::size_t count = replay(target, options);
    if (count == 0) std::cerr << "no corpus for " << target.name << "\n";
    complete = complete && count > 0;
    inputs += count;
  }
  std::cout << inputs << " inputs, no promise broken" << std::endl;
  return complete && inputs > 0 ? 0 : 1;
}

}  // namespace
}  // namespace permit::fuzz

int main(int argc, char** argv) {
  return permit::fuzz::run(permit::fuzz::options_of({argv + 1, argv + argc}));
}
