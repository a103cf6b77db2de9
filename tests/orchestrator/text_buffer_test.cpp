#include "orchestrator/protocol/text_buffer.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

namespace permit {
namespace {

TEST_CASE("a text of any pieces is what a string of them is") {
  for (const std::size_t piece : {1U, 7U, 2047U, 2048U, 2049U, 5000U}) {
    CAPTURE(piece);
    TextBuffer text;
    std::string same;
    for (char c = 'a'; c <= 'k'; ++c) {
      text += std::string(piece, c);
      text += ',';
      same += std::string(piece, c) + ',';
      REQUIRE(text.size() == same.size());
      REQUIRE(text.back() == ',');
    }
    CHECK(text.view() == same);
    text.cut_to(piece);
    CHECK(text.view() == std::string(piece, 'a'));
    text += "end";
    CHECK(text.view() == std::string(piece, 'a') + "end");
  }
}

TEST_CASE("there is room for as much as was asked for, and what was written of it stays") {
  TextBuffer text;
  std::string same;
  for (std::size_t size = 1; size < 10'000; size *= 3) {
    char* const to = text.room(size);
    std::fill(to, to + size, 'x');
    text.wrote_to(to + size / 2);
    same += std::string(size / 2, 'x');
  }
  CHECK(text.view() == same);
}

}  // namespace
}  // namespace permit
