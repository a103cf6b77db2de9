// The dice of one seed, and what a check throws when it does not hold. What is thrown can be
// recorded, and a record thrown again: that is how a script repeats without its seed.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "orchestrator/protocol/ids.h"
#include "orchestrator/service/identifiers.h"

namespace permit::simulation {

// The engine broke a promise; the message says which.
class Violation : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

inline void require(bool holds, const std::string& promise) {
  if (!holds) throw Violation(promise);
}
// For promises that take long to spell.
template <class Text>
  requires std::is_invocable_v<Text>
void require(bool holds, const Text& promise) {
  if (!holds) throw Violation(promise());
}

using Choices = std::vector<std::uint64_t>;

class Chance {
 public:
  explicit Chance(std::uint64_t seed) : random_(seed) {}

  // From here on what is drawn is also kept there, until the next call.
  void record(Choices& choices) {
    record_ = &choices;
    replay_ = nullptr;
  }
  // From here on what is drawn comes from there, and is zero once there is no more. What is really
  // taken goes to `taken`.
  void replay(const Choices& choices, Choices& taken) {
    replay_ = &choices;
    record_ = &taken;
    at_ = 0;
  }

  std::uint64_t word() { return draw(0); }
  std::size_t below(std::size_t bound) { return static_cast<std::size_t>(draw(bound)); }
  int between(int low, int high) {
    return low + static_cast<int>(
                     below(static_cast<std::size_t>(high) - static_cast<std::size_t>(low) + 1));
  }
  // Zero, where a script ends, is "no".
  bool percent(int share) { return below(100) + static_cast<std::size_t>(share) >= 100; }
  Duration duration(Duration low, Duration high) {
    const auto width = static_cast<std::uint64_t>((high - low).count()) + 1;
    return low + Duration(static_cast<std::int64_t>(draw(width)));
  }
  template <class T>
  const T& pick(const std::vector<T>& from) {
    return from[below(from.size())];
  }

 private:
  // Below the bound; 0: any word.
  std::uint64_t draw(std::uint64_t bound) {
    std::uint64_t value = 0;
    if (replay_ == nullptr) {
      value = bound == 0 ? random_.next() : random_.below(bound);
    } else if (at_ < replay_->size()) {
      value = (*replay_)[at_++];
      if (bound != 0) value %= bound;
    }
    if (record_ != nullptr) record_->push_back(value);
    return value;
  }

  service::Random random_;
  Choices* record_ = nullptr;
  const Choices* replay_ = nullptr;
  std::size_t at_ = 0;
};

}  // namespace permit::simulation
