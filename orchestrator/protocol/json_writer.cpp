#include "orchestrator/protocol/json_writer.h"

#include <algorithm>
#include <cstddef>

#include "orchestrator/protocol/json_text.h"

namespace permit {
namespace {

// U+2028 and U+2029 end a line in JavaScript.
bool is_line_separator(const char* at) {
  return at[0] == '\xE2' && at[1] == '\x80' && (at[2] == '\xA8' || at[2] == '\xA9');
}

template <class Text>
void append_escape(char c, Text& out) {
  constexpr std::string_view hex = "0123456789abcdef";
  switch (c) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    case '\0':
      out += "\\ufffd";
      return;
    default:
      break;
  }
  const auto byte = static_cast<std::size_t>(static_cast<unsigned char>(c));
  out += "\\u00";
  out += hex[byte >> 4];
  out += hex[byte & 15];
}

template <class Text>
void append_string(std::string_view text, Text& out) {
  const char* at = text.data();
  const char* const end = at + text.size();
  const char* copied = at;  // up to here
  const auto copy_to = [&](const char* to) {
    out.append(copied, static_cast<std::size_t>(to - copied));
    copied = to;
  };
  out += '"';
  while ((at = plain_end(at, end)) != end) {
    const std::size_t size = utf8_size(at, end);
    if (size > 1 && !(size == 3 && is_line_separator(at))) {
      at += size;
      continue;
    }
    copy_to(at);
    if (size == 3) {
      out += at[2] == '\xA8' ? "\\u2028" : "\\u2029";
    } else if (size == 1) {
      append_escape(*at, out);
    } else {
      out += "\\ufffd";
    }
    at += std::max<std::size_t>(size, 1);
    copied = at;
  }
  copy_to(end);
  out += '"';
}

}  // namespace

void append_json_string(std::string_view text, std::string& out) { append_string(text, out); }
void append_json_string(std::string_view text, TextBuffer& out) { append_string(text, out); }

}  // namespace permit
