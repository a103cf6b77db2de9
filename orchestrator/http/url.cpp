#include "orchestrator/http/url.h"

#include <algorithm>
#include <cstdint>

#include "orchestrator/protocol/json_text.h"

namespace permit::http {
namespace {

// Length of the character that `first` opens, 0 if none may open with it.
std::size_t utf8_length(unsigned char first) {
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) return 2;
  if (first >= 0xe0 && first <= 0xef) return 3;
  if (first >= 0xf0 && first <= 0xf4) return 4;
  return 0;
}

// The least code point that needs `length` bytes; below it the form is overlong.
std::uint32_t utf8_least(std::size_t length) {
  if (length == 2) return 0x80;
  return length == 3 ? 0x800 : 0x10000;
}

bool is_utf8_character(std::string_view bytes) {
  if (bytes.size() == 1) return true;
  std::uint32_t code = static_cast<unsigned char>(bytes[0]) & (0x7fU >> bytes.size());
  for (const char byte : bytes.substr(1)) {
    const auto value = static_cast<unsigned char>(byte);
    if ((value & 0xc0U) != 0x80U) return false;
    code = code << 6 | (value & 0x3fU);
  }
  const bool surrogate = code >= 0xd800 && code <= 0xdfff;
  return code >= utf8_least(bytes.size()) && code <= 0x10ffff && !surrogate;
}

// Calls `take` with each part between separators; stops and returns false when it does.
template <class Take>
bool for_each_part(std::string_view text, char separator, Take take) {
  while (true) {
    const std::size_t end = text.find(separator);
    if (!take(text.substr(0, end))) return false;
    if (end == std::string_view::npos) return true;
    text.remove_prefix(end + 1);
  }
}

std::optional<std::string> decode_query_text(std::string_view text) {
  std::string spaced(text);
  std::replace(spaced.begin(), spaced.end(), '+', ' ');
  return percent_decode(spaced);
}

}  // namespace

bool is_utf8(std::string_view bytes) {
  for (;;) {
    const char* plain = plain_end(bytes.data(), bytes.data() + bytes.size());
    bytes.remove_prefix(static_cast<std::size_t>(plain - bytes.data()));
    if (bytes.empty()) return true;
    const std::size_t length = utf8_length(static_cast<unsigned char>(bytes[0]));
    if (length == 0 || length > bytes.size()) return false;
    if (!is_utf8_character(bytes.substr(0, length))) return false;
    bytes.remove_prefix(length);
  }
}

namespace {

// Whether there is nothing to decode, and nothing to refuse.
bool is_literal(std::string_view text) {
  const char* const plain = plain_end(text.data(), text.data() + text.size());
  return plain == text.data() + text.size() && text.find('%') == std::string_view::npos;
}

}  // namespace

std::optional<std::string> percent_decode(std::string_view text) {
  std::string decoded;
  decoded.reserve(text.size());
  for (;;) {
    const std::size_t escape = text.find('%');
    decoded += text.substr(0, escape);
    if (escape == std::string_view::npos) break;
    text.remove_prefix(escape);
    if (text.size() < 3) return std::nullopt;
    const int high = hex_value(text[1]);
    const int low = hex_value(text[2]);
    if (high < 0 || low < 0) return std::nullopt;
    decoded += static_cast<char>(high * 16 + low);
    text.remove_prefix(3);
  }
  if (decoded.find('\0') != std::string::npos || !is_utf8(decoded)) return std::nullopt;
  return decoded;
}

std::optional<std::vector<std::string>> split_path(std::string_view path) {
  std::vector<std::string> segments;
  if (!path.starts_with('/')) return std::nullopt;
  if (path == "/") return segments;
  segments.reserve(8);  // few paths have more
  const bool literal = is_literal(path);
  const bool ok = for_each_part(path.substr(1), '/', [&](std::string_view part) {
    if (literal) {
      segments.emplace_back(part);
      return true;
    }
    std::optional<std::string> segment = percent_decode(part);
    if (segment) segments.push_back(std::move(*segment));
    return segment.has_value();
  });
  if (!ok) return std::nullopt;
  return segments;
}

std::optional<std::vector<std::pair<std::string, std::string>>> parse_query(
    std::string_view query) {
  std::vector<std::pair<std::string, std::string>> parameters;
  const bool ok = for_each_part(query, '&', [&](std::string_view part) {
    if (part.empty()) return true;
    const std::size_t equals = part.find('=');
    const bool has_value = equals != std::string_view::npos;
    std::optional<std::string> name = decode_query_text(part.substr(0, equals));
    std::optional<std::string> value =
        decode_query_text(has_value ? part.substr(equals + 1) : std::string_view());
    if (!name || !value) return false;
    parameters.emplace_back(std::move(*name), std::move(*value));
    return true;
  });
  if (!ok) return std::nullopt;
  return parameters;
}

}  // namespace permit::http
