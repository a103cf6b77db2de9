#include "orchestrator/service/journal.h"

namespace permit::service {

void Journal::note(const News& news, std::int64_t position) {
  position_ = position;
  for (const auto& [pool, what] : news.pools) {
    pools_.note({pool, Aspect::holders}, position);
    if (what.settings) pools_.note({pool, Aspect::settings}, position);
    if (what.line) pools_.note({pool, Aspect::line}, position);
  }
  for (const RunNumber permit : news.permits) permits_.note(permit, position);
  for (const RunNumber run : news.started) runs_.note(run, position);
  for (const RunNumber run : news.closed) runs_.note(run, position);
}

std::optional<Journal::Changes> Journal::since(std::int64_t position) const {
  if (position < begin_ || position > position_) return std::nullopt;
  if (!pools_.knows_all_since(position) || !permits_.knows_all_since(position)) {
    return std::nullopt;
  }
  Changes changes;
  pools_.for_each_since(position, [&](const PoolAspect& of) {
    PoolNews& news = changes.pools[of.first];
    news.settings = news.settings || of.second == Aspect::settings;
    news.line = news.line || of.second == Aspect::line;
  });
  permits_.for_each_since(position, [&](RunNumber run) { changes.permits.insert(run); });
  runs_.for_each_since(position, [&](RunNumber run) { changes.runs.insert(run); });
  changes.more_runs = !runs_.knows_all_since(position);
  return changes;
}

}  // namespace permit::service
