// The dice of one seed, and what a check throws when it does not hold.
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

class Chance {
 public:
  explicit Chance(std::uint64_t seed) : random_(seed) {}

  std::uint64_t word() { return random_.next(); }
  std::size_t below(std::size_t bound) { return static_cast<std::size_t>(random_.below(bound)); }
  int between(int low, int high) {
    return low + static_cast<int>(
                     below(static_cast<std::size_t>(high) - static_cast<std::size_t>(low) + 1));
  }
  bool percent(int share) { return below(100) < static_cast<std::size_t>(share); }
  Duration duration(Duration low, Duration high) {
    return low + Duration(static_cast<std::int64_t>(
                     random_.below(static_cast<std::uint64_t>((high - low).count()) + 1)));
  }
  template <class T>
  const T& pick(const std::vector<T>& from) {
    return from[below(from.size())];
  }

 private:
  service::Random random_;
};

}  // namespace permit::simulation
