// What the shell offers after a TAB: words of the tables, and live names from the server.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "apps/cli/command.h"

namespace permit::cli {

struct Candidate {
  std::string word;
  std::string what{};  // one line, for shells that show it
};

// Asked for names that begin with `prefix`; slow, and may answer nothing.
using LiveNames =
    std::function<std::vector<std::string>(Completes kind, const std::string& prefix)>;

// Of what may stand in the place of the last of `words`, which is begun or empty. A word ":file"
// means names of files, ":command" names of programs.
std::vector<Candidate> complete(const std::vector<std::string>& words, const LiveNames& live);

// What a shell reads, "bash", "zsh" or "fish".
std::string completion_script(const std::string& shell);

}  // namespace permit::cli
