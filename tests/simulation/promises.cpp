#include "tests/simulation/promises.h"

#include <algorithm>

namespace permit::simulation {

std::shared_ptr<Promise> Promises::make(Trace trace) {
  auto promise = std::make_shared<Promise>();
  promise->mark = "m" + std::to_string(++last_);
  promise->trace = trace;
  promises_[promise->mark] = promise;
  return promise;
}

void Promises::sent(Promise& promise) {
  ++promise.open;
  ++open_;
  ++totals_.requests;
}

void Promises::acknowledged(Promise& promise) {
  --promise.open;
  --open_;
  ++promise.acknowledged;
  ++totals_.writes_acknowledged;
}

void Promises::refused(Promise& promise, const Error& error) {
  --promise.open;
  --open_;
  ++promise.refused;
  check_error(error);
}

void Promises::check_error(const Error& error) {
  require(error.code() != ErrorCode::internal, "the server found an invariant broken");
  if (error.reason() == "DISK_FULL") ++totals_.disk_full_refusals;
}

void Promises::lost(Promise& promise) {
  --promise.open;
  --open_;
  ++promise.unknown;
}

void Promises::died() {
  for (auto& [mark, promise] : promises_) {
    promise->unknown += promise->open;
    promise->open = 0;
  }
  open_ = 0;
}

void Promises::saw(Trace trace, const std::string& mark, const RunId& run) {
  const auto found = promises_.find(mark);
  if (found == promises_.end() || found->second->trace != trace) return;
  Promise& promise = *found->second;
  ++promise.seen;
  require(promise.named.empty() || promise.named == run, [&] {
    return "request " + mark + " was aimed at run " + promise.named.value + " and changed run " +
           run.value;
  });
}

void Promises::begin_buffered() {
  for (auto& [mark, promise] : promises_) promise->buffered = 0;
}

void Promises::saw_buffered(Trace trace, const std::string& mark) {
  const auto found = promises_.find(mark);
  if (found != promises_.end() && found->second->trace == trace) ++found->second->buffered;
}

void Promises::check() const {
  for (const auto& [mark, promise] : promises_) {
    const int seen = promise->seen + promise->buffered;
    int most = promise->acknowledged + promise->unknown;
    if (promise->once) most = std::min(most, 1);
    int least = promise->acknowledged;
    if (promise->once || promise->alike) least = std::min(least, 1);
    if (!promise->leaves) least = 0;
    require(seen >= least && seen <= most, [&, &mark_ = mark, &one = *promise] {
      return "request " + mark_ + " (trace " + std::to_string(static_cast<int>(one.trace)) +
             ", acknowledged " + std::to_string(one.acknowledged) + ", refused " +
             std::to_string(one.refused) + ", unknown " + std::to_string(one.unknown) +
             ") is there " + std::to_string(seen) + " times";
    });
  }
}

}  // namespace permit::simulation
