#include "orchestrator/protocol/json_text.h"

#include <algorithm>

namespace permit {
namespace {

void append_utf8(std::uint32_t code, std::string& out) {
  const auto put = [&](std::uint32_t byte) { out += static_cast<char>(byte); };
  if (code < 0x80) return put(code);
  if (code < 0x800) {
    put(0xC0 | code >> 6);
  } else if (code < 0x10000) {
    put(0xE0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3F));
  } else {
    put(0xF0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3F));
    put(0x80 | (code >> 6 & 0x3F));
  }
  put(0x80 | (code & 0x3F));
}

// `at` is behind "\u"; returns the end of the escape, with its second half if it has one.
const char* append_unicode_escape(const char* at, std::string& out) {
  std::uint32_t code = hex4(at);
  at += 4;
  if (code >= 0xD800 && code < 0xDC00) {
    code = 0x10000 + ((code - 0xD800) << 10) + (hex4(at + 2) - 0xDC00);
    at += 6;
  }
  append_utf8(code, out);
  return at;
}

char simple_escape(char c) {
  switch (c) {
    case 'b':
      return '\b';
    case 'f':
      return '\f';
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    default:
      return c;
  }
}

}  // namespace

std::size_t utf8_size(const char* at, const char* end) {
  const auto byte = [&](std::ptrdiff_t i) { return static_cast<unsigned char>(at[i]); };
  const auto follows = [&](std::ptrdiff_t i, unsigned from, unsigned to) {
    return end - at > i && byte(i) >= from && byte(i) <= to;
  };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first < 0xC2 || first > 0xF4) return 0;
  if (first < 0xE0) return follows(1, 0x80, 0xBF) ? 2 : 0;
  if (first < 0xF0) {
    const unsigned from = first == 0xE0 ? 0xA0 : 0x80;
    const unsigned to = first == 0xED ? 0x9F : 0xBF;
    return follows(1, from, to) && follows(2, 0x80, 0xBF) ? 3 : 0;
  }
  const unsigned from = first == 0xF0 ? 0x90 : 0x80;
  const unsigned to = first == 0xF4 ? 0x8F : 0xBF;
  return follows(1, from, to) && follows(2, 0x80, 0xBF) && follows(3, 0x80, 0xBF) ? 4 : 0;
}

int hex_value(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::uint32_t hex4(const char* at) {
  std::uint32_t code = 0;
  for (int i = 0; i < 4; ++i) code = code << 4 | static_cast<std::uint32_t>(hex_value(at[i]));
  return code;
}

void append_unescaped(std::string_view raw, std::string& out) {
  const char* at = raw.data();
  const char* const end = at + raw.size();
  while (at != end) {
    const char* const escape = std::find(at, end, '\\');
    out.append(at, escape);
    if (escape == end) return;
    at = escape + 2;
    if (escape[1] == 'u') {
      at = append_unicode_escape(at, out);
    } else {
      out += simple_escape(escape[1]);
    }
  }
}

}  // namespace permit
