#include "apps/cli/config_file.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "apps/cli/command_line.h"
#include "apps/cli/server_config.h"

namespace permit::cli {
namespace {

class TextFile {
 public:
  explicit TextFile(const std::string& text) {
    const int file = mkstemp(path_.data());
    REQUIRE(file >= 0);
    close(file);
    std::ofstream(path_) << text;
  }
  ~TextFile() { unlink(path_.c_str()); }
  const std::string& path() const { return path_; }

 private:
  std::string path_ = "/tmp/permit-config-XXXXXX";
};

// Behind the file's name.
std::string mistake_in(const std::string& text) {
  const TextFile file(text);
  try {
    ServerOptions options;
    read_server_config(file.path(), options);
    return "";
  } catch (const UsageError& error) {
    const std::string said = error.what();
    CHECK(said.starts_with(file.path()));
    return said.substr(file.path().size());
  }
}

// Found by fuzzing: here toml++ 3.3 asserts, and without assertions the behaviour is undefined.
TEST_CASE("a table whose name is none is refused with its line") {
  CHECK(mistake_in("[server]\n\n[@log]\nlevel = \"info\"\n") ==
        ":3: this is not TOML; is it a table's name that needs quotes?");
  CHECK(mistake_in("[[%]]\n").starts_with(":1: this is not TOML"));
  CHECK(mistake_in("a = \"\"\"\n[@\n\"\"\"\n[.x]\n").starts_with(":4: this is not TOML"));
  CHECK(mistake_in("[server]\nlisten = 1\n").starts_with(":2: listen must be a \"text\""));
  const TextFile profiles("[profile.lab]\naddress = \"http://lab:1\"\n[profile.@]\n");
  CHECK_THROWS_AS(read_profiles(profiles.path()), UsageError);
}

// Found by fuzzing: toml++ 3.3 takes it for unreachable to look at such a letter outside of quotes.
TEST_CASE("a letter that no bare key may have is refused with its line") {
  CHECK(mistake_in("[server]\na.b\xCC\x9C = 1\n").starts_with(":2: "));
  CHECK(mistake_in("\xC3\xBC = 1\n").starts_with(":1: "));
  CHECK(mistake_in("[server]\ndatabase = \"/tmp/\xC3\xBC\"  # \xC3\xBC\n").empty());
}

}  // namespace
}  // namespace permit::cli
