// A second opinion on heads of requests, for the gate to agree with: the rules of RFC 9112 and of
// docs/http.md, read line by line from the whole text. It shares no code with the gate, and nothing
// of it is fast.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "orchestrator/http/gate.h"

namespace permit::fuzz {

struct StrictHead {
  enum class Verdict { accepted, refused, unfinished };

  Verdict verdict = Verdict::unfinished;
  int status = 0;  // of a refusal

  // Of an accepted one:
  std::size_t size = 0;
  std::string method;
  std::string target;
  std::vector<std::pair<std::string, std::string>> headers;  // names in lower case
  std::uint64_t content_length = 0;
  bool keep_alive = true;
  bool expects_continue = false;
};

StrictHead read_strictly(std::string_view bytes, const http::Limits& limits);

}  // namespace permit::fuzz
