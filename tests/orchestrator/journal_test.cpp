#include "orchestrator/service/journal.h"

#include <doctest/doctest.h>

#include "orchestrator/service/recent_holds.h"

namespace permit::service {
namespace {

News news_of(const std::string& pool, std::int64_t permit, PoolNews what = {}) {
  News news;
  news.pools[PoolName(pool)] = what;
  if (permit != 0) news.permits.insert(RunNumber{permit});
  return news;
}

TEST_CASE("the journal tells what came after a commit, each thing once") {
  Journal journal(10);
  journal.note(news_of("a", 1), 11);
  journal.note(news_of("b", 2, {true, false}), 12);
  journal.note(news_of("a", 1, {false, true}), 13);

  const auto all = journal.since(10);
  REQUIRE(all);
  CHECK(all->pools.size() == 2);
  CHECK(all->pools.at(PoolName("a")).line);
  CHECK(!all->pools.at(PoolName("a")).settings);
  CHECK(all->pools.at(PoolName("b")).settings);
  CHECK(all->permits == std::set<RunNumber>{RunNumber{1}, RunNumber{2}});

  const auto last = journal.since(12);
  REQUIRE(last);
  CHECK(last->pools.size() == 1);
  CHECK(last->permits == std::set<RunNumber>{RunNumber{1}});
  CHECK(journal.since(13)->pools.empty());
}

TEST_CASE("a later change of another kind does not hide an earlier one") {
  Journal journal(0);
  journal.note(news_of("a", 0, {true, true}), 1);
  journal.note(news_of("a", 0), 2);
  CHECK(journal.since(0)->pools.at(PoolName("a")).settings);
  CHECK(journal.since(0)->pools.at(PoolName("a")).line);
  CHECK(!journal.since(1)->pools.at(PoolName("a")).settings);
}

TEST_CASE("the journal does not know what was before it, nor what is to come") {
  const Journal journal(10);
  CHECK(!journal.since(9));
  CHECK(journal.since(10));
  CHECK(!journal.since(11));
}

TEST_CASE("who was here before the oldest thing remembered begins anew") {
  LatestChanges<int> latest(3);
  for (int key = 1; key <= 5; ++key) latest.note(key, key * 10);
  CHECK(!latest.knows_all_since(19));
  CHECK(latest.knows_all_since(20));  // 10 and 20 are forgotten
  latest.note(3, 60);
  std::vector<int> keys;
  latest.for_each_since(40, [&](int key) { keys.push_back(key); });
  CHECK(keys == std::vector<int>{3, 5});
}

TEST_CASE("runs that are too many are told as that") {
  Journal journal(0);
  for (std::int64_t number = 1; number <= 1'500; ++number) {
    News news;
    news.started.push_back(RunNumber{number});
    journal.note(news, number);
  }
  CHECK(journal.since(100)->more_runs);
  CHECK(journal.since(100)->runs.size() == 1'000);
  CHECK(!journal.since(500)->more_runs);
}

PermitInfo ended_hold(const std::string& slot, std::int64_t fence, Time at) {
  PermitInfo hold;
  hold.pool = PoolName("gpu");
  hold.slot = SlotName(slot);
  hold.fence = Fence{fence};
  hold.outcome = Outcome::released;
  hold.closed_at = at;
  return hold;
}

TEST_CASE("recent holds: the newest, each slot's last, and those of a day") {
  const Time begin = Time(std::chrono::hours(500'000));
  RecentHolds recent;
  for (int number = 1; number <= 30; ++number) {
    recent.ended(
        ended_hold(std::to_string(number % 2), number, begin + number * std::chrono::hours(1)));
  }
  const PoolName gpu("gpu");
  const Time now = begin + std::chrono::hours(30);
  CHECK(recent.of(gpu).size() == RecentHolds::kept);
  CHECK(recent.of(gpu).front()->fence == Fence{30});
  CHECK(recent.last_of(gpu, SlotName("1"))->fence == Fence{29});
  CHECK(recent.last_of(gpu, SlotName("2")) == nullptr);
  REQUIRE(recent.last_day(gpu, now).size() == 1);
  CHECK(recent.last_day(gpu, now).front().holds.value == 24);
  CHECK(recent.last_day(gpu, now + std::chrono::hours(48)).empty());

  PermitInfo late = *recent.of(gpu).front();
  late.late_release_at = now;
  recent.given_back_late(late);
  CHECK(recent.of(gpu).front()->late_release_at == now);
  CHECK(recent.last_of(gpu, SlotName("0"))->late_release_at == now);
}

}  // namespace
}  // namespace permit::service
