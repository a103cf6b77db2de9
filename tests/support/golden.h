// Text tests: a first comment that says the intent, then blocks of commands, `----`, and what they
// print. With UPDATE_GOLDEN=1 in the environment the file is rewritten with what they do print.
//
//   # A signal that comes while a worker has the task waits until the task is closed.
//   start w
//   poll q
//   ----
//   w#1 ...
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace permit::test {

struct GoldenFile {
  struct Block {
    std::vector<std::string> comments;
    std::vector<std::string> commands;
    std::vector<std::string> expected;
    int line = 0;  // of the first command
  };

  std::string path;
  std::vector<std::string> header;  // comments and blank lines before the first command
  std::vector<Block> blocks;

  // The first sentence of the header: the name of the test.
  std::string intent() const;
};

GoldenFile read_golden(const std::string& path);

// Every file of a directory that ends with `suffix`, sorted by name.
std::vector<std::string> golden_files(const std::string& directory, const std::string& suffix);

// Runs every block; `run` executes its commands and returns the lines they print. Returns what is
// wrong, empty if nothing is: the first block that prints something else than the file says.
using RunBlock = std::function<std::vector<std::string>(const std::vector<std::string>& commands)>;
std::string check_golden(GoldenFile file, const RunBlock& run);

}  // namespace permit::test
