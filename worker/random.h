// Random numbers that replay: a stream is a pure function of the run's first run id and the
// stream's name, so it is the same on every replay, worker, compiler and version.
//
// Seed: SipHash-1-3 with a zero key over the ASCII of original_execution_run_id, then byte 0xFF,
// and for a named stream its name, then 0xFF once more. Words: SplitMix64 (Steele, Lea, Flood)
// from that seed. below(n): words of the smallest mask that covers n - 1, until one is below n.
// shuffle: Fisher-Yates from the end, i = n-1 … 1, swap with below(i + 1).
// tests/worker/random_test.cpp has vectors; what is drawn here is in histories, so it never
// changes.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace permit::worker {

std::uint64_t stream_seed(std::string_view run_id, std::string_view stream);

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t word();
  // Uniform in 0 … n - 1; n must not be 0.
  std::uint64_t below(std::uint64_t n);
  // Uniform in [0, 1), of 53 bits.
  double fraction();

  template <class T>
  void shuffle(std::vector<T>& values) {
    for (std::size_t i = values.size(); i > 1; --i) {
      std::swap(values[i - 1], values[static_cast<std::size_t>(below(i))]);
    }
  }

 private:
  std::uint64_t state_;
};

}  // namespace permit::worker
