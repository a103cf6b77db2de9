// The bytes of JSON strings, for the reader and the writer.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace permit {

// A byte that stands for itself in a JSON string: ASCII but control characters, '"' and '\'.
inline bool is_plain(char c) {
  const unsigned char byte = static_cast<unsigned char>(c);
  return byte >= 0x20 && byte < 0x80 && c != '"' && c != '\\';
}

static_assert(std::endian::native == std::endian::little);

// Of the eight bytes at `at` the first that is not plain; 8 if there is none.
inline std::ptrdiff_t plain_bytes_of_8(const char* at) {
  constexpr std::uint64_t ones = 0x0101010101010101u;
  std::uint64_t word = 0;
  std::memcpy(&word, at, 8);
  const std::uint64_t quote = word ^ (ones * '"');
  const std::uint64_t slash = word ^ (ones * '\\');
  const std::uint64_t special = word | (word - ones * 0x20) | (quote - ones) | (slash - ones);
  const std::uint64_t found = special & (ones * 0x80);  // the lowest bit is the first byte's
  return std::countr_zero(found) / 8;
}

// The first byte of [at, end) that is not plain, or `end`. Eight at a time: most text is plain.
inline const char* plain_end(const char* at, const char* end) {
  if (end - at < 8) {
    while (at != end && is_plain(*at)) ++at;
    return at;
  }
  for (; end - at >= 8; at += 8) {
    const std::ptrdiff_t plain = plain_bytes_of_8(at);
    if (plain < 8) return at + plain;
  }
  return end - 8 + plain_bytes_of_8(end - 8);  // those in front of `at` are known to be plain
}

// The length of the UTF-8 character at `at`, 0 if it is none: cut off, overlong, a surrogate, or
// above U+10FFFF.
std::size_t utf8_size(const char* at, const char* end);

// -1 if it is no hexadecimal digit.
int hex_value(char c);
// Of four digits.
std::uint32_t hex4(const char* at);

// Appends what `raw`, the inside of a string whose escapes are known to be in order, stands for.
void append_unescaped(std::string_view raw, std::string& out);

inline bool is_digit(char c) { return c >= '0' && c <= '9'; }

inline bool is_json_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

}  // namespace permit
