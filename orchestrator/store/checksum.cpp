#include "orchestrator/store/checksum.h"

#include <array>
#include <bit>
#include <cstring>

namespace permit::store {

std::uint64_t word_at(const Byte* bytes) {
  std::uint64_t word = 0;
  std::memcpy(&word, bytes, sizeof word);
  if constexpr (std::endian::native == std::endian::big) word = __builtin_bswap64(word);
  return word;
}

void put_word(Byte* bytes, std::uint64_t word) {
  if constexpr (std::endian::native == std::endian::big) word = __builtin_bswap64(word);
  std::memcpy(bytes, &word, sizeof word);
}

namespace {

std::uint64_t mixed(std::uint64_t word) {
  word = (word ^ (word >> 31U)) * 0x9fb21c651e98df25U;
  return word ^ (word >> 29U);
}

}  // namespace

// Each step is a bijection, so a change within one word never goes unseen; the four lanes are four
// multiplications at once.
std::uint64_t checksum(const Byte* bytes, std::size_t size, std::int64_t number) {
  constexpr std::uint64_t odd = 0x9e3779b97f4a7c15U;
  std::array<std::uint64_t, 4> lanes{};
  const std::uint64_t seed = mixed(static_cast<std::uint64_t>(number) * odd + size);
  for (std::size_t i = 0; i < lanes.size(); ++i) lanes[i] = seed + i * 0xd1b54a32d192ed03U;
  const auto step = [](std::uint64_t lane, std::uint64_t word) {
    return std::rotl((lane ^ word) * odd, 29);
  };
  std::size_t at = 0;
  for (; at + 32 <= size; at += 32) {
    for (std::size_t i = 0; i < 4; ++i) lanes[i] = step(lanes[i], word_at(bytes + at + 8 * i));
  }
  for (std::size_t i = 0; at + 8 <= size; at += 8, ++i)
    lanes[i] = step(lanes[i], word_at(bytes + at));
  std::uint64_t sum = 0;
  for (const std::uint64_t lane : lanes) sum = std::rotl(sum, 17) ^ mixed(lane);
  return sum;
}

}  // namespace permit::store
