// The files of the operator's page, as an HTTP answer: those that the build put into the binary, or
// those of a directory while somebody works on them.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "orchestrator/http/message.h"

namespace permit::http {

struct Asset {
  std::string_view path;  // below apps/web: "pages/pools.js"
  std::string_view bytes;
  std::string_view gzip;  // the same, compressed; empty if that is no shorter
  std::string_view hash;
};

// Made by the build from apps/web (scripts/embed_assets.cmake).
std::span<const Asset> built_in_assets();

class Assets {
 public:
  // Empty: what the binary has. Throws if there is no such directory.
  explicit Assets(std::string directory);

  // The answer to a GET or HEAD of the file, whose path is in decoded segments; nullopt if there is
  // none. A file of the directory is read anew each time, and never one outside of it: what
  // begins with a dot and what is a symbolic link is not there.
  std::optional<Response> answer(const Request& request,
                                 const std::vector<std::string>& segments) const;

 private:
  std::string directory_;
};

}  // namespace permit::http
