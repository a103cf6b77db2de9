// Strict decoding of what a request target holds. Everything here is pure; nothing is repaired:
// what is not exactly right is nullopt, and the request is refused.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace permit::http {

// Well-formed UTF-8: no overlong form, no surrogate, nothing past U+10FFFF.
bool is_utf8(std::string_view bytes);

// nullopt for a bad escape, for %00 and for a result that is not UTF-8. Decodes once: "%2541" is
// "%41".
std::optional<std::string> percent_decode(std::string_view text);

// The decoded segments after the leading '/': "/" has none, "/a/" has "a" and "". An escaped slash
// stays inside its segment. Dots have no meaning here: ".." is a segment like any other.
std::optional<std::vector<std::string>> split_path(std::string_view path);

// Names and values in order, duplicates kept; '+' is a space, a part without '=' has an empty
// value, an empty part is skipped.
std::optional<std::vector<std::pair<std::string, std::string>>> parse_query(std::string_view query);

}  // namespace permit::http
