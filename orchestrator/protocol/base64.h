// Base64 (RFC 4648), the wire form of bytes.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace permit {

// Standard alphabet, padded. put_base64() writes so many characters and returns their end.
constexpr std::size_t base64_size(std::size_t bytes) { return (bytes + 2) / 3 * 4; }
char* put_base64(std::string_view bytes, char* to);
std::string to_base64(std::string_view bytes);

// Standard or URL-safe alphabet, padded or not. Empty if it is anything else: white space, both
// alphabets mixed, wrong padding, bits left over that are not zero.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace permit
