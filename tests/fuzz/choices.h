// Bytes as a row of decisions: what a target that builds its input piece by piece draws from.
// Behind the end every decision is the first alternative.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace permit::fuzz {

class Choices {
 public:
  explicit Choices(std::string_view bytes) : bytes_(bytes) {}

  bool at_end() const { return at_ == bytes_.size(); }

  std::uint8_t byte() { return at_end() ? 0 : static_cast<std::uint8_t>(bytes_[at_++]); }

  // 0 to count - 1; count is 256 at most.
  std::size_t below(std::size_t count) { return byte() % count; }
  bool one_in(std::size_t count) { return below(count) == count - 1; }

  template <class T, std::size_t size>
  const T& pick(const T (&list)[size]) {
    static_assert(size <= 256);
    return list[below(size)];
  }

  std::string_view take(std::size_t size) {
    const std::string_view taken = bytes_.substr(at_, size);
    at_ += taken.size();
    return taken;
  }
  std::string_view rest() { return take(bytes_.size()); }

 private:
  std::string_view bytes_;
  std::size_t at_ = 0;
};

}  // namespace permit::fuzz
