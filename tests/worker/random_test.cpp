#include "worker/random.h"

#include <doctest/doctest.h>

#include "orchestrator/protocol/siphash.h"

using namespace permit;
using namespace permit::worker;

// What is drawn is in histories: these vectors never change.

TEST_CASE("the seed of a run is the one that Temporal's SDKs use") {
  CHECK(siphash13("\xff") == 3476900567878811119U);
  CHECK(stream_seed("00000000-0000-0000-0000-000000000000", "") == 13908316863725478721U);
  CHECK(stream_seed("b3481d08-84c0-4afa-bcea-0f29a5c62b2f", "") == 5651634849619530159U);
}
