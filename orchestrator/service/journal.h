// Which things have changed since which commit: what a reader of the event stream, who was here at
// a commit, has to be told. Which things, and not what: readers are told how they are now. In
// memory and bounded; whoever was here too long ago begins anew.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

#include "orchestrator/service/news.h"

namespace permit::service {

template <class Key>
struct KeyChange {
  std::int64_t position = 0;
  Key key;
};

// The keys of what changed after `position`, the latest first.
template <class Changes, class Visit>
void visit_since(const Changes& changes, std::int64_t position, Visit visit) {
  for (auto it = changes.rbegin(); it != changes.rend() && it->position > position; ++it) {
    visit(it->key);
  }
}

// Keys by their last change, each once. The oldest is forgotten when there are too many.
template <class Key, class Hash = std::hash<Key>>
class LatestChanges {
 public:
  explicit LatestChanges(std::size_t keys_max) : keys_max_(keys_max) {}

  void note(const Key& key, std::int64_t position) {
    const auto [known, is_new] = entries_.try_emplace(key);
    if (!is_new) {
      known->second->position = position;
      by_position_.splice(by_position_.end(), by_position_, known->second);
      return;
    }
    by_position_.push_back({position, key});
    known->second = std::prev(by_position_.end());
    if (entries_.size() <= keys_max_) return;
    complete_since_ = by_position_.front().position;
    entries_.erase(by_position_.front().key);
    by_position_.pop_front();
  }

  bool knows_all_since(std::int64_t position) const { return position >= complete_since_; }

  template <class Visit>
  void for_each_since(std::int64_t position, Visit visit) const {
    visit_since(by_position_, position, visit);
  }

 private:
  using Entry = KeyChange<Key>;

  const std::size_t keys_max_;
  std::int64_t complete_since_ = 0;  // the last change of a key that was forgotten
  std::list<Entry> by_position_;
  std::unordered_map<Key, typename std::list<Entry>::iterator, Hash> entries_;
};

// The same for keys that hardly change again, as runs: a key is in it as often as it has changed,
// so that to note one is to write it down.
template <class Key>
class ChangeList {
 public:
  explicit ChangeList(std::size_t changes_max) : changes_max_(changes_max) {}

  void note(const Key& key, std::int64_t position) {
    changes_.push_back({position, key});
    if (changes_.size() <= changes_max_) return;
    complete_since_ = changes_.front().position;
    changes_.pop_front();
  }

  bool knows_all_since(std::int64_t position) const { return position >= complete_since_; }

  template <class Visit>
  void for_each_since(std::int64_t position, Visit visit) const {
    visit_since(changes_, position, visit);
  }

 private:
  const std::size_t changes_max_;
  std::int64_t complete_since_ = 0;  // the last change that was forgotten
  std::deque<KeyChange<Key>> changes_;
};

class Journal {
 public:
  // From the commit at `position` on.
  explicit Journal(std::int64_t position) : begin_(position), position_(position) {}

  // The commit that was told last.
  std::int64_t position() const { return position_; }
  void note(const News& news, std::int64_t position);

  struct Changes {
    std::map<PoolName, PoolNews> pools;
    std::set<RunNumber> permits;
    std::set<RunNumber> runs;  // started or closed
    bool more_runs = false;    // than are remembered
  };
  // nullopt: nobody remembers what came after that.
  std::optional<Changes> since(std::int64_t position) const;

 private:
  enum class Aspect { holders, settings, line };
  using PoolAspect = std::pair<PoolName, Aspect>;

  struct HashOf {
    std::size_t operator()(const PoolAspect& of) const {
      constexpr std::size_t aspects = 3;
      return aspects * std::hash<std::string>()(of.first.value) +
             static_cast<std::size_t>(of.second);
    }
  };

  const std::int64_t begin_;
  std::int64_t position_;
  LatestChanges<PoolAspect, HashOf> pools_{30'000};
  ChangeList<RunNumber> permits_{60'000};  // most change twice: granted, ended
  ChangeList<RunNumber> runs_{1'000};
};

}  // namespace permit::service
