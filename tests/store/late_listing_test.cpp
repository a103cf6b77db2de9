// Permits that the indexes of lists do not have yet: schema.sql says why.
#include <doctest/doctest.h>

#include <algorithm>

#include "tests/store/rows.h"

namespace permit::store {
namespace {

using namespace test_rows;

TEST_CASE("permits are found from the first moment on, listed in the indexes or not yet") {
  Rows rows;
  Reader reader(rows.database());
  HoldQuery by_slot;
  by_slot.pool = PoolName("gpu");
  by_slot.slot = SlotName("1");
  by_slot.page_size = 7;
  const auto all_of_slot = [&] {
    std::vector<std::int64_t> fences;
    by_slot.page_token = {};
    do {
      const HoldPage page = reader.list_holds(by_slot);
      for (const PermitInfo& permit : page.permits) fences.push_back(permit.fence.value);
      by_slot.page_token = page.next_page_token;
    } while (!by_slot.page_token.value.empty());
    return fences;
  };
  std::vector<std::int64_t> fences;  // newest first
  std::int64_t listed = 0;
  std::size_t times_listed = 0;
  for (int i = 0; i < 1'300; ++i) {
    const std::string slot = std::to_string(i % 40);
    rows.add("order-" + std::to_string(i));
    const RunRow row = rows.grant("gpu", slot);
    rows.close(row, Outcome::released);
    if (slot == "1") fences.insert(fences.begin(), row.permit->fence.value);
    const Counters& counters = rows.store().counters();
    CHECK(counters.fence - counters.listed_fence < 1'000);
    if (std::exchange(listed, counters.listed_fence) != counters.listed_fence) ++times_listed;
    if (i % 100 != 41) continue;
    CHECK(all_of_slot() == fences);
    const WorkflowId id("permit:gpu:1");
    CHECK(rows.store().latest_run("default", id) == RunNumber{fences.front() - 100});
    const std::vector<RunNumber> recent = rows.store().recent_runs("default", id, 3);
    CHECK(recent.size() == std::min<std::size_t>(3, fences.size()));
    for (std::size_t k = 0; k < recent.size(); ++k) CHECK(recent[k].value + 100 == fences[k]);
    CHECK(list_ids(reader, "WorkflowId = 'permit:gpu:1'", 7).size() == fences.size());
    CHECK(list_ids(reader, "WorkflowId STARTS_WITH 'permit:gpu:'").size() ==
          static_cast<std::size_t>(i) + 1);
    CHECK(list_ids(reader, "").size() == 2 * (static_cast<std::size_t>(i) + 1));
  }
  CHECK(times_listed >= 2);
  const auto before = rows.store().counters();
  rows.store().begin();
  rows.store().trim_holds(PoolName("gpu"), SlotName("1"), 5);
  rows.store().roll_back();
  CHECK(all_of_slot() == fences);
  CHECK(rows.store().counters().listed_fence == before.listed_fence);
}

}  // namespace
}  // namespace permit::store
