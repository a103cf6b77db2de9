// Where programs find their API key, and which files are refused.
#include "worker/api_key.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "orchestrator/protocol/error.h"

namespace permit::worker {

namespace {

struct KeyFile {
  KeyFile(const std::string& text, mode_t mode)
      : path(std::filesystem::temp_directory_path() / ("permit-key-" + std::to_string(getpid()))) {
    std::ofstream(path) << text;
    chmod(path.c_str(), mode);
  }
  ~KeyFile() { std::filesystem::remove(path); }
  std::filesystem::path path;
};

std::string reason_of(const std::string& path) {
  try {
    return "read " + read_api_key(path);
  } catch (const Error& error) {
    return error.reason();
  }
}

}  // namespace

TEST_CASE("a file that others may read is no place for a key") {
  for (const mode_t mode : {0600U, 0400U}) {
    CHECK(reason_of(KeyFile("permit_a\nmore\n", mode).path) == "read permit_a");
  }
  for (const mode_t mode : {0640U, 0604U, 0644U, 0610U, 0601U, 0666U}) {
    CHECK_MESSAGE(reason_of(KeyFile("permit_a\n", mode).path) == "API_KEY_FILE_OPEN", mode);
  }
}

TEST_CASE("what cannot be sent is refused before it is") {
  CHECK(reason_of(KeyFile("", 0600).path) == "API_KEY_INVALID");
  CHECK(reason_of(KeyFile("  \n", 0600).path) == "API_KEY_INVALID");
  CHECK(reason_of(KeyFile("a b\n", 0600).path) == "API_KEY_INVALID");
  CHECK(reason_of("/nowhere/key") == "API_KEY_INVALID");
  CHECK(clean_api_key("key\r\n", "x") == "key");
}

}  // namespace permit::worker
