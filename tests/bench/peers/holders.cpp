#include "tests/bench/peers/holders.h"

#include <stdexcept>

namespace permit::bench {

namespace {

[[noreturn]] void fail(const std::string& what) {
  throw std::runtime_error("mutual exclusion is violated: " + what);
}

}  // namespace

void Holders::granted(const std::string& slot, std::int64_t fence) {
  Slot& state = by_name_[slot];
  if (by_name_.size() > slots_) fail("there are more slots than the pool has");
  if (state.held) fail("slot " + slot + " has two holders");
  if (fence <= state.last_fence) fail("the fence of slot " + slot + " does not rise");
  state = {true, fence};
}

void Holders::releasing(const std::string& slot) { by_name_.at(slot).held = false; }

}  // namespace permit::bench
