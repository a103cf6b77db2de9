#include "orchestrator/protocol/siphash.h"

#include <array>
#include <bit>
#include <cstring>

namespace permit {

namespace {

struct SipState {
  std::uint64_t v0, v1, v2, v3;

  void round() {
    v0 += v1;
    v1 = std::rotl(v1, 13) ^ v0;
    v0 = std::rotl(v0, 32);
    v2 += v3;
    v3 = std::rotl(v3, 16) ^ v2;
    v0 += v3;
    v3 = std::rotl(v3, 21) ^ v0;
    v2 += v1;
    v1 = std::rotl(v1, 17) ^ v2;
    v2 = std::rotl(v2, 32);
  }
  void rounds(int n) {
    while (n-- > 0) round();
  }
  void take(std::uint64_t word, int n) {
    v3 ^= word;
    rounds(n);
    v0 ^= word;
  }
  // All of it, in words, the last with the length.
  void take_all(std::string_view text, int n);
};

// Up to eight bytes, little-endian.
std::uint64_t word_of(std::string_view bytes) {
  std::uint64_t word = 0;
  if (bytes.size() >= 8) {
    std::memcpy(&word, bytes.data(), 8);
    if constexpr (std::endian::native == std::endian::big) word = __builtin_bswap64(word);
    return word;
  }
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    word |= std::uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  }
  return word;
}

void SipState::take_all(std::string_view text, int n) {
  std::size_t at = 0;
  for (; at + 8 <= text.size(); at += 8) take(word_of(text.substr(at, 8)), n);
  take(word_of(text.substr(at)) | (static_cast<std::uint64_t>(text.size()) << 56U), n);
}

constexpr std::size_t hex_size = 16;  // of a word

char* put_hex(std::uint64_t word, char* to) {
  static constexpr char digits[] = "0123456789abcdef";
  for (int byte = 0; byte < 8; ++byte) {
    const auto value = static_cast<unsigned>(word >> (8 * byte)) & 0xffU;
    *to++ = digits[value >> 4U];
    *to++ = digits[value & 0xfU];
  }
  return to;
}

}  // namespace

std::string siphash_hex(std::string_view key, std::string_view text) {
  const std::uint64_t k0 = word_of(key.substr(0, 8));
  const std::uint64_t k1 = key.size() > 8 ? word_of(key.substr(8, 8)) : 0;
  SipState state{k0 ^ 0x736f6d6570736575U, k1 ^ 0x646f72616e646f6dU ^ 0xeeU,
                 k0 ^ 0x6c7967656e657261U, k1 ^ 0x7465646279746573U};
  state.take_all(text, 2);
  std::array<char, 2 * hex_size> hex;
  state.v2 ^= 0xeeU;
  state.rounds(4);
  char* middle = put_hex(state.v0 ^ state.v1 ^ state.v2 ^ state.v3, hex.data());
  state.v1 ^= 0xddU;
  state.rounds(4);
  put_hex(state.v0 ^ state.v1 ^ state.v2 ^ state.v3, middle);
  return std::string(hex.data(), hex.size());
}

bool equal_in_constant_time(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference |=
        static_cast<unsigned>(static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]));
  }
  return difference == 0;
}

std::uint64_t siphash13(std::string_view text) {
  SipState state{0x736f6d6570736575U, 0x646f72616e646f6dU, 0x6c7967656e657261U,
                 0x7465646279746573U};
  state.take_all(text, 1);
  state.v2 ^= 0xffU;
  state.rounds(3);
  return state.v0 ^ state.v1 ^ state.v2 ^ state.v3;
}

}  // namespace permit
