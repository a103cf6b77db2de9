#include "orchestrator/protocol/trace.h"

#include <doctest/doctest.h>

namespace permit {
namespace {

const std::string good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

std::string with(std::size_t at, const std::string& text) {
  std::string changed = good;
  return changed.replace(at, text.size(), text);
}

}  // namespace

TEST_CASE("a traceparent has a trace and a span") {
  const auto trace = parse_traceparent(good);
  REQUIRE(trace);
  CHECK(trace->traceparent == good);
  CHECK(trace->trace_id == "4bf92f3577b34da6a3ce929d0e0e4736");
  CHECK(trace->span_id == "00f067aa0ba902b7");
}

TEST_CASE("what is not exactly a traceparent is none") {
  for (const std::string& bad :
       {std::string(), std::string("00"), good.substr(0, 54), good + "-", good + "0", good + "-00",
        " " + good, good + " ", with(0, "ff"), with(0, "0G"), with(2, "_"),
        with(3, "4BF92F3577B34DA6"), with(35, "_"), with(52, "_"), with(53, "0g"),
        with(3, std::string(32, '0')), with(36, std::string(16, '0')), with(10, "\n"),
        std::string(55, '-')}) {
    CAPTURE(bad);
    CHECK(!parse_traceparent(bad));
  }
}

TEST_CASE("a later version may say more behind what is known") {
  CHECK(parse_traceparent(with(0, "01")));
  CHECK(parse_traceparent(with(0, "cc") + "-what-the-future-will-be-like"));
  CHECK(!parse_traceparent(with(0, "cc") + "."));
  CHECK(!parse_traceparent(with(0, "cc") + "-" + std::string(1'000, 'a')));
}

}  // namespace permit
