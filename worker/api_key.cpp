#include "worker/api_key.h"

#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <fstream>

#include "orchestrator/protocol/error.h"

namespace permit::worker {

namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

std::string clean_api_key(std::string key, const std::string& origin) {
  while (!key.empty() && std::isspace(static_cast<unsigned char>(key.back())) != 0) key.pop_back();
  const bool is_plain =
      std::all_of(key.begin(), key.end(), [](char c) { return c > ' ' && c < 127; });
  if (!key.empty() && is_plain) return key;
  throw invalid_argument("API_KEY_INVALID",
                         "the API key from " + origin + " is not one line of plain characters");
}

std::string read_api_key(const std::string& path) {
  struct stat file = {};
  const bool is_file = stat(path.c_str(), &file) == 0 && S_ISREG(file.st_mode);
  if (is_file && (file.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    throw invalid_argument("API_KEY_FILE_OPEN", "others may read the API key in " + path +
                                                    "; make it yours alone: chmod 600 " + path);
  }
  std::ifstream in(path);
  std::string key;
  if (!std::getline(in, key)) {
    throw invalid_argument("API_KEY_INVALID", "cannot read an API key from " + path);
  }
  return clean_api_key(std::move(key), path);
}

std::string default_api_key() {
  const std::string key = variable("PERMIT_API_KEY");
  if (!key.empty()) return clean_api_key(key, "PERMIT_API_KEY");
  const std::string file = variable("PERMIT_API_KEY_FILE");
  return file.empty() ? "" : read_api_key(file);
}

}  // namespace permit::worker
