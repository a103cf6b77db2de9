#include "orchestrator/protocol/base64.h"

#include <array>
#include <cstddef>
#include <cstdint>

namespace permit {
namespace {

constexpr std::string_view alphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::uint32_t no_digit = 0xFF;

constexpr std::array<std::uint8_t, 256> make_digits() {
  std::array<std::uint8_t, 256> digits{};
  digits.fill(no_digit);
  for (std::size_t i = 0; i < alphabet.size(); ++i) {
    digits[static_cast<unsigned char>(alphabet[i])] = static_cast<std::uint8_t>(i);
  }
  digits['-'] = 62;
  digits['_'] = 63;
  return digits;
}
constexpr std::array<std::uint8_t, 256> digits = make_digits();

std::uint32_t byte_at(std::string_view bytes, std::size_t i) {
  return static_cast<unsigned char>(bytes[i]);
}

std::uint32_t digit_at(std::string_view text, std::size_t i) {
  return digits[static_cast<unsigned char>(text[i])];
}

char char_of(std::uint32_t bits) { return alphabet[bits & 63]; }

char* put_digits(char* to, std::uint32_t bits) {
  to[0] = char_of(bits >> 18);
  to[1] = char_of(bits >> 12);
  to[2] = char_of(bits >> 6);
  to[3] = char_of(bits);
  return to + 4;
}

char* put_bytes(char* to, std::uint32_t bits, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) *to++ = static_cast<char>(bits >> (16 - 8 * i) & 0xFF);
  return to;
}

// Padding is all or nothing, and only up to a multiple of four.
bool drop_padding(std::string_view& text) {
  const std::size_t last = text.find_last_not_of('=');
  const std::size_t size = last == std::string_view::npos ? 0 : last + 1;
  const std::size_t padding = text.size() - size;
  if (padding > 2 || (padding > 0 && text.size() % 4 != 0)) return false;
  text = text.substr(0, size);
  return text.size() % 4 != 1;
}

bool mixes_alphabets(std::string_view text) {
  return text.find_first_of("+/") != std::string_view::npos &&
         text.find_first_of("-_") != std::string_view::npos;
}

}  // namespace

char* put_base64(std::string_view bytes, char* to) {
  std::size_t i = 0;
  for (; i + 3 <= bytes.size(); i += 3) {
    to = put_digits(to,
                    byte_at(bytes, i) << 16 | byte_at(bytes, i + 1) << 8 | byte_at(bytes, i + 2));
  }
  const std::size_t rest = bytes.size() - i;
  if (rest == 0) return to;
  to = put_digits(to, byte_at(bytes, i) << 16 | (rest == 2 ? byte_at(bytes, i + 1) << 8 : 0));
  to[-1] = '=';
  if (rest == 1) to[-2] = '=';
  return to;
}

std::string to_base64(std::string_view bytes) {
  std::string out(base64_size(bytes.size()), '\0');
  put_base64(bytes, out.data());
  return out;
}

std::optional<std::string> from_base64(std::string_view text) {
  if (!drop_padding(text) || mixes_alphabets(text)) return std::nullopt;
  std::string bytes(text.size() * 3 / 4, '\0');
  char* to = bytes.data();
  std::uint32_t wrong = 0;  // has a bit of 0xC0 once a character was no digit
  const std::size_t whole = text.size() / 4 * 4;
  for (std::size_t i = 0; i < whole; i += 4) {
    const std::uint32_t a = digit_at(text, i), b = digit_at(text, i + 1);
    const std::uint32_t c = digit_at(text, i + 2), d = digit_at(text, i + 3);
    wrong |= a | b | c | d;
    to = put_bytes(to, a << 18 | b << 12 | c << 6 | d, 3);
  }
  std::uint32_t bits = 0;
  for (std::size_t i = whole; i < text.size(); ++i) {
    const std::uint32_t digit = digit_at(text, i);
    wrong |= digit;
    bits |= digit << (18 - 6 * (i - whole));
  }
  const std::size_t rest = text.size() % 4 == 0 ? 0 : text.size() % 4 - 1;
  put_bytes(to, bits, rest);
  const bool has_left_over = (bits & (0xFFFFFFu >> (8 * rest))) != 0;
  if ((wrong & 0xC0) != 0 || (rest != 0 && has_left_over)) return std::nullopt;
  return bytes;
}

}  // namespace permit
