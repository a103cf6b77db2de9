// How many requests the batches held that were committed: a histogram since the start. How well
// requests share commits decides what the server can do a second.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace permit::service {

class BatchSizes {
 public:
  // Upper bounds, inclusive; a last bucket is without bound.
  static constexpr std::array<std::size_t, 18> bounds = {0,  1,  2,  3,  4,  6,   8,   12,  16,
                                                         24, 32, 48, 64, 96, 128, 256, 512, 1000};

  void note(std::size_t requests) {
    const auto bound = std::lower_bound(bounds.begin(), bounds.end(), requests);
    ++counts_[static_cast<std::size_t>(bound - bounds.begin())];
    requests_ += requests;
  }

  // Batches by bucket, and the requests in all of them.
  const std::array<std::uint64_t, bounds.size() + 1>& counts() const { return counts_; }
  std::uint64_t requests() const { return requests_; }

 private:
  std::array<std::uint64_t, bounds.size() + 1> counts_{};
  std::uint64_t requests_ = 0;
};

}  // namespace permit::service
