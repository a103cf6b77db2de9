#include "orchestrator/service/matching.h"

#include <algorithm>

#include "orchestrator/protocol/ensure.h"

namespace permit::service {

void Matching::offer(const QueueKey& queue, Offer offer) { queues_[queue].offers.push_back(offer); }

void Matching::return_offer(const QueueKey& queue, Offer offer) {
  queues_[queue].offers.push_front(offer);
}

std::optional<Offer> Matching::take_offer(const QueueKey& key) {
  const auto queue = queues_.find(key);
  if (queue == queues_.end() || queue->second.offers.empty()) return std::nullopt;
  const Offer offer = queue->second.offers.front();
  queue->second.offers.pop_front();
  return offer;
}

void Matching::insert(const QueueKey& key, Poller poller, bool first) {
  Queue& queue = queues_[key];
  const auto deadline = deadlines_.emplace(poller.deadline, poller.id);
  const std::int64_t id = poller.id;
  const auto at =
      queue.pollers.insert(first ? queue.pollers.begin() : queue.pollers.end(), std::move(poller));
  ENSURE(where_.emplace(id, Place{&queue, at, deadline}).second);
}

void Matching::park(const QueueKey& key, Poller poller) { insert(key, std::move(poller), false); }

void Matching::return_poller(const QueueKey& key, Poller poller) {
  insert(key, std::move(poller), true);
}

void Matching::erase(std::int64_t id) {
  const auto place = where_.find(id);
  ENSURE(place != where_.end());
  deadlines_.erase(place->second.deadline);
  place->second.queue->pollers.erase(place->second.poller);
  where_.erase(place);
}

std::optional<Poller> Matching::take_poller(const QueueKey& key) {
  const auto queue = queues_.find(key);
  if (queue == queues_.end() || queue->second.pollers.empty()) return std::nullopt;
  Poller poller = queue->second.pollers.front();
  erase(poller.id);
  return poller;
}

bool Matching::remove_poller(std::int64_t id, Time now) {
  const auto place = where_.find(id);
  if (place == where_.end()) return false;
  Queue& queue = *place->second.queue;
  if (queue.seen.erase(place->second.poller->identity) > 0) queue.left = now;
  erase(id);
  return true;
}

std::vector<Poller> Matching::take_expired(std::chrono::steady_clock::time_point now) {
  std::vector<Poller> expired;
  while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
    const std::int64_t id = deadlines_.begin()->second;
    expired.push_back(*where_.at(id).poller);
    erase(id);
  }
  return expired;
}

std::vector<Poller> Matching::take_all_pollers() {
  return take_expired(std::chrono::steady_clock::time_point::max());
}

std::vector<Poller> Matching::take_pollers_of(const std::string& identity) {
  std::vector<Poller> taken;
  for (const auto& [id, place] : where_) {
    if (place.poller->identity == identity) taken.push_back(*place.poller);
  }
  for (const Poller& poller : taken) erase(poller.id);
  return taken;
}

std::optional<std::chrono::steady_clock::time_point> Matching::next_deadline() const {
  if (deadlines_.empty()) return std::nullopt;
  return deadlines_.begin()->first;
}

void Matching::note_poll(const QueueKey& key, const std::string& identity, Time now,
                         std::uint64_t connection, const std::string& normal_name) {
  constexpr std::size_t identities_max = 1000;
  Queue& queue = queues_[key];
  queue.normal_name = normal_name;
  auto& seen = queue.seen;
  if (seen.size() >= identities_max && !seen.contains(identity)) seen.erase(seen.begin());
  Queue::Seen& poller = seen[identity];
  poller.at = now;
  if (connection == 0) return;
  auto& polled = polled_by_[connection];
  if (polled.size() >= identities_max) return;
  polled.emplace(key, identity);
  poller.connections.insert(connection);
}

std::string Matching::normal_name(const QueueKey& key) const {
  const auto queue = queues_.find(key);
  return queue == queues_.end() ? "" : queue->second.normal_name;
}

void Matching::forget_polls(const QueueKey& key, Time now) {
  const auto queue = queues_.find(key);
  if (queue == queues_.end()) return;
  queue->second.seen.clear();
  queue->second.left = now;
}

void Matching::connection_closed(std::uint64_t connection, EndedBy end, Time now) {
  const auto polled = polled_by_.extract(connection);
  if (polled.empty()) return;
  for (const auto& [key, identity] : polled.mapped()) {
    const auto queue = queues_.find(key);
    if (queue == queues_.end()) continue;
    const auto seen = queue->second.seen.find(identity);
    if (seen == queue->second.seen.end()) continue;
    seen->second.connections.erase(connection);
    if (end == EndedBy::server || !seen->second.connections.empty()) continue;
    queue->second.seen.erase(seen);
    queue->second.left = now;
  }
}

std::optional<Time> Matching::deserted_since(const QueueKey& key, Time now) const {
  constexpr Duration poll_pause_max = std::chrono::seconds(70);  // a long poll and a little
  const auto queue = queues_.find(key);
  if (queue == queues_.end()) return Time{};
  if (!queue->second.pollers.empty()) return std::nullopt;
  Time since = queue->second.left;
  for (const auto& [identity, seen] : queue->second.seen) {
    if (seen.at >= now - poll_pause_max) return std::nullopt;
    since = std::max(since, seen.at);
  }
  return since;
}

void Matching::forget_idle(Time since) {
  std::erase_if(queues_, [&](const auto& entry) {
    const Queue& queue = entry.second;
    if (!queue.offers.empty() || !queue.pollers.empty()) return false;
    for (const auto& [identity, seen] : queue.seen) {
      if (seen.at >= since) return false;
    }
    return queue.left < since;
  });
}

bool Matching::polled_since(const QueueKey& key, Time since) const {
  const auto queue = queues_.find(key);
  if (queue == queues_.end()) return false;
  if (!queue->second.pollers.empty()) return true;
  for (const auto& [identity, seen] : queue->second.seen) {
    if (seen.at >= since) return true;
  }
  return false;
}

std::vector<std::pair<std::string, Time>> Matching::pollers(const QueueKey& key, Time since) const {
  std::vector<std::pair<std::string, Time>> recent;
  const auto queue = queues_.find(key);
  if (queue == queues_.end()) return recent;
  for (const auto& [identity, seen] : queue->second.seen) {
    if (seen.at >= since) recent.emplace_back(identity, seen.at);
  }
  return recent;
}

std::vector<Matching::QueueKey> Matching::queues() const {
  std::vector<QueueKey> keys;
  keys.reserve(queues_.size());
  for (const auto& [key, queue] : queues_) keys.push_back(key);
  return keys;
}

std::optional<Offer> Matching::oldest(const QueueKey& key,
                                      const std::function<bool(const Offer&)>& stands) {
  const auto queue = queues_.find(key);
  if (queue == queues_.end()) return std::nullopt;
  std::deque<Offer>& offers = queue->second.offers;
  while (!offers.empty() && !stands(offers.front())) offers.pop_front();
  if (offers.empty()) return std::nullopt;
  return offers.front();
}

std::size_t Matching::backlog(const QueueKey& key) const {
  const auto queue = queues_.find(key);
  return queue == queues_.end() ? 0 : queue->second.offers.size();
}

Matching::Rates Matching::rates(const QueueKey& key, Time now) const {
  const auto queue = queues_.find(key);
  if (queue == queues_.end()) return {};
  return {queue->second.added.per_second(now), queue->second.dispatched.per_second(now)};
}

void Matching::forget_offers() {
  for (auto& [key, queue] : queues_) queue.offers.clear();
}

}  // namespace permit::service
